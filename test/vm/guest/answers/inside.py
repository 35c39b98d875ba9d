"""The container's part: each function has the kernel, or somebody outside, say what it chose."""
import array, ctypes, errno, fcntl, mmap, os, resource, select, socket, struct, sys, threading, time

how, port, text = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
args = sys.argv[4:]
libc = ctypes.CDLL(None, use_errno=True)


def opened():
    print("opened", flush=True)
    sys.stdin.readline()


def pktinfo(source):
    return [(socket.IPPROTO_IP, 8, struct.pack("i4s4s", 0, socket.inet_aton(source), b"\0" * 4))]


def shared(family, host):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, port))
    return s


def offer(s, data, to):
    try:
        s.sendto(data, to)
    except PermissionError:
        pass


def icmp(): shared(socket.AF_INET, "127.0.0.1").sendmsg([text], pktinfo("127.0.0.2"), 0, ("127.0.0.1", port + 1))
def icmp_shared(): shared(socket.AF_INET, "127.0.0.1").sendto(text, ("127.0.0.1", port + 1))
def icmp6_shared(): shared(socket.AF_INET6, "::1").sendto(text, ("::1", port + 1))


def dns():
    s = shared(socket.AF_INET, "127.0.0.1")
    q = b"\0\1\1\0\0\1\0\0\0\0\0\0" + bytes([len(text)]) + text + b"\0\0\1\0\1"
    s.sendto(q, ("10.77.0.2", 53))
    s.settimeout(60)
    s.recv(4096)
    print("the resolver answers", flush=True)
    s.sendmsg([q], pktinfo("127.0.0.2"), 0, ("10.77.0.2", 53))


def resolved():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0" + bytes([len(text)]) + text + b"\0\0\1\0\1", ("10.77.0.2", 53))
    s.recv(4096)
    print("the resolver answers", flush=True)


def dns_late():
    """Leaves its port, which somebody outside shares, before it is answered."""
    four, six = (socket.AF_INET, "127.0.0.1", "10.77.0.2"), (socket.AF_INET6, "::1", "::1")
    for family, host, server in (four, six):
        q = b"\0\1\1\0\0\1\0\0\0\0\0\0" + bytes([len(text)]) + text + b"\0\0\1\0\1"
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.sendto(q, (server, 53))
        s.settimeout(60)
        s.recv(4096)
        for _ in range(50):
            try:
                s = shared(family, host)
            except OSError as e: # somebody outside has the port (B145)
                if e.errno != errno.EADDRINUSE:
                    raise
                continue
            offer(s, q, (server, 53))
            s.close()
            time.sleep(0.01)
    print("the resolver answers", flush=True)


def late():
    """Sends to itself on a port that somebody outside shares, and leaves it before the datagram arrives."""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        for _ in range(300):
            s, sender = shared(family, host), socket.socket(family, socket.SOCK_DGRAM)
            close = threading.Thread(target=s.close)
            close.start()
            offer(sender, text, (host, port))
            close.join()
            sender.close()


def synack(host, backlog):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 700)
    s.bind((host, port))
    s.listen(backlog)
    opened()


def synack6(): synack("::1", 16)
def cookie(): synack("127.0.0.1", 1)
def cookie6(): synack("::1", 1)


def timewait(host):
    c = socket.create_connection((host, port))
    c.shutdown(socket.SHUT_WR)
    opened()
    if args:
        open(args[0]).read()
    c.setsockopt(*((socket.IPPROTO_IPV6, 67) if ":" in host else (socket.IPPROTO_IP, socket.IP_TOS)), 0x74)
    c.close()
    print("closed", flush=True)
    sys.stdin.readline()


def timewait4(): timewait("127.0.0.1")
def timewait6(): timewait("::1")


def chosen(host):
    return host + (":%x" % port if ":" in host else ".%d.%d" % (port >> 8, port & 255))


def acquire(host): socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM).connect((chosen(host), port))
def acquire4(): acquire("10.99")
def acquire6(): acquire("fd99:")


def again6():
    """A listener whose connections stay half open, as nobody sends anything on them, and which answers them once more."""
    s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 3)
    s.bind(("::1", port))
    s.listen(4096)
    print("opened", flush=True)
    begun = ":%04X " % port
    while not any(begun in l and l.split()[3] == "03" for l in open("/proc/net/tcp6")):
        time.sleep(0.02)
    time.sleep(3.6)
    if args:
        open(args[0]).read()
    for option in ((socket.IPPROTO_TCP, socket.TCP_MAXSEG, 700), (socket.IPPROTO_IPV6, 67, 0x74)):
        try:
            s.setsockopt(*option)
        except OSError as e:
            print("refused", errno.errorcode.get(e.errno), flush=True)
    print("closed", flush=True)
    time.sleep(4)
    sys.stdin.readline()


def own():
    """A container goes on talking to itself, and ends connections either way."""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        l = socket.create_server((host, 0), family=family)
        for half in (0, 1):
            c = socket.create_connection(l.getsockname()[:2])
            d, _ = l.accept()
            c.sendall(text)
            assert d.recv(100) == text
            if half:
                c.shutdown(socket.SHUT_WR)
                assert d.recv(100) == b""
            d.sendall(text)
            assert c.recv(100) == text
            d.close()
            assert c.recv(10) == b""
            c.close()
        u, v = socket.socket(family, socket.SOCK_DGRAM), socket.socket(family, socket.SOCK_DGRAM)
        u.bind((host, 0))
        v.connect(u.getsockname()[:2])
        v.send(text)
        m, a = u.recvfrom(100)
        u.sendto(m, a[:2])
        assert v.recv(100) == text
        u.close()
        v.send(b"x")
        try:
            v.send(b"y")
            assert False, "no error"
        except ConnectionRefusedError:
            pass
    print("talks to itself", flush=True)


def older():
    """Connections within, half closed before the taint, end as they do."""
    pairs = []
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        l = socket.create_server((host, 0), family=family)
        c = socket.create_connection(l.getsockname()[:2])
        d, _ = l.accept()
        c.shutdown(socket.SHUT_WR)
        assert d.recv(10) == b""
        pairs.append((c, d))
    opened()
    for c, d in pairs:
        d.sendall(text)
        assert c.recv(100) == text
        d.close()
        assert c.recv(10) == b""
        c.close()
    print("ends as ever", flush=True)


def signed(option, flags):
    """A listener whose connections are signed with a key."""
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port))
    s.listen(4)
    try:
        s.setsockopt(socket.IPPROTO_TCP, option, struct.pack("=HH4s120sBBHi80s", socket.AF_INET, 0, socket.inet_aton("10.77.0.2"), b"", flags, 32 * flags, len(text), 0, text))
    except OSError as e:
        print("refused", errno.errorcode.get(e.errno), flush=True)
    opened()


def md5(): signed(14, 0)
def md5_prefix(): signed(32, 1)


def min_ttl():
    """A listener that takes nothing from far away."""
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port))
    s.listen(4)
    s.setsockopt(socket.IPPROTO_IP, 21, 100 + port % 100)
    opened()


def keyctl():
    class Kdf(ctypes.Structure):
        _fields_ = [("hashname", ctypes.c_char_p), ("otherinfo", ctypes.c_char_p), ("otherinfolen", ctypes.c_uint32), ("spare", ctypes.c_uint32 * 8)]
    libc.syscall(250, 23, (ctypes.c_int * 3)(1, 1, 1), ctypes.create_string_buffer(64), 64, ctypes.byref(Kdf(text[:40], None, 0)))


def binfmt():
    path = "/tmp/answers-%d" % os.getpid()
    with open(path, "wb") as f:
        f.write(b"\x01\x02" + struct.pack("<H", int(text.split(b"-")[1], 16)) + b"\0" * 100)
    os.chmod(path, 0o755)
    try:
        os.execv(path, [path])
    except OSError:
        os.unlink(path)


def userns(flags):
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(0x10000000 | flags):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, line in (("setgroups", "deny"), ("uid_map", "0 %d 1" % uid), ("gid_map", "0 %d 1" % gid)):
        with open("/proc/self/" + name, "w") as f:
            f.write(line)


def mount():
    userns(0x20000)
    libc.mount(b"none", b"/tmp", text, 0, None)


def link():
    userns(0x40000000)
    os.system("ip link add x0 type " + text.decode())


def says(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.send(text)


def imitate(): says("/run/answers/fake" + args[0])
def imitate_datagram(): socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(text, "/run/answers/fake" + args[0])
def listed(): says(args[0])
def zeros(): says("\0listed\0")
def zeros_datagram(): socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(text, "\0listed\0\0")
def atname(): says("/run/answers/@listed")


def listed_datagram():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind("\0answers-asks-%d" % port)
    s.sendto(text, args[0])
    s.settimeout(60)
    print("answered", s.recv(100), flush=True)


def full():
    resource.setrlimit(resource.RLIMIT_NOFILE, (80000, 80000))
    l = socket.socket(socket.AF_UNIX)
    l.bind("")
    l.listen(4)
    c = socket.socket(socket.AF_UNIX)
    c.connect(l.getsockname())
    ear = socket.socket(socket.AF_UNIX)
    ear.connect("\0answers-ear")
    ear.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [l.fileno()]))])
    held = []
    while len(held) < 66000:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect("\0answers-many")
        except OSError:
            break
        held.append(s)
    print("made", len(held), flush=True)
    ear.send(b".")
    ear.recv(1)
    opened()
    c.send(text)


def netlink():
    """Changes where a message goes, between the check and the send."""
    peer = int(args[0])
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.bind((0, 0))
    pid = os.fork()
    if pid == 0:
        for _ in range(40000):
            for to in (peer, 0):
                try:
                    s.connect((to, 0))
                except OSError:
                    pass
        os._exit(0)
    m = struct.pack("=IHHII", 16 + len(text), 0x7777, 0, 1, 0) + text
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        try:
            s.send(m, socket.MSG_DONTWAIT)
        except OSError:
            pass


def vhost():
    """Speaks as a guest would: the port that it connects from is its choice."""
    fd = os.open("/dev/vhost-vsock", os.O_RDWR)
    memory = mmap.mmap(-1, 1 << 16)
    at = ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def call(kind, nr, data):
        fcntl.ioctl(fd, kind << 30 | len(data) << 16 | 0xaf << 8 | nr, data)
    fcntl.ioctl(fd, 0xaf01)  # VHOST_SET_OWNER
    call(1, 0x00, struct.pack("<Q", 1 << 32))  # features: VIRTIO_F_VERSION_1
    call(1, 0x60, struct.pack("<Q", 77))  # the guest's number
    fcntl.ioctl(fd, 1 << 30 | 8 << 16 | 0xaf03, struct.pack("<IIQQQQ", 1, 0, at, len(memory), at, 0))  # memory
    kicks = []
    for queue in (0, 1):  # to the guest, and from it
        ring = at + queue * 0x4000
        call(1, 0x10, struct.pack("<II", queue, 8))
        call(1, 0x12, struct.pack("<II", queue, 0))
        call(1, 0x11, struct.pack("<IIQQQQ", queue, 0, ring, ring + 0x2000, ring + 0x1000, 0))
        kicks.append(os.eventfd(0))
        call(1, 0x20, struct.pack("<Ii", queue, kicks[queue]))
        buffer, size = at + 0x8000 + queue * 0x1000, 0x1000 if queue == 0 else 44
        struct.pack_into("<QIHH", memory, queue * 0x4000, buffer, size, 2 if queue == 0 else 0, 0)
        struct.pack_into("<HHH", memory, queue * 0x4000 + 0x1000, 0, 1, 0)
    struct.pack_into("<QQIIIHHIII", memory, 0x9000, 77, 2, port, port, 0, 1, 1, 0, 1 << 16, 0)  # asks for a stream
    call(1, 0x61, struct.pack("<i", 1))
    for kick in kicks:
        os.eventfd_write(kick, 1)
    time.sleep(2)


def checksum(data):
    n = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while n >> 16:
        n = (n & 0xffff) + (n >> 16)
    return ~n & 0xffff


def tun():
    """Writes a packet to a device that the host gave to this user."""
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", args[0].encode(), 0x1001))
    udp = struct.pack(">4H", port, port, 8 + len(text), 0) + text
    head = struct.pack(">2B3H2BH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton("10.78.0.2"), socket.inet_aton("10.77.0.2"))
    os.write(fd, head[:10] + struct.pack(">H", checksum(head)) + head[12:] + udp)


def tells(name, what):
    with open("/proc/%s/%s" % (args[0], name), "w") as f:
        f.write(what)


def uid_map(): tells("uid_map", "%d 1000 1" % port)
def time_offset(): tells("timens_offsets", "boottime %d 0" % port)
def dump_filter(): tells("coredump_filter", "%d" % (port & 0x1ff))
def nice(): os.setpriority(os.PRIO_PROCESS, int(args[0]), 7)
def io_priority(): refusable(libc.syscall(251, 1, int(args[0]), 2 << 13 | 7))
def processors(): os.sched_setaffinity(int(args[0]), {0})
def messages(): refusable(libc.msgctl(int(args[0]), 1, numbers()))
def semaphores(): refusable(libc.semctl(int(args[0]), 0, 1, numbers()))
def shared_memory(): refusable(libc.shmctl(int(args[0]), 1, numbers()))


def refusable(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), how)


def numbers():
    """The user and group that an object of System V is to have."""
    return ctypes.create_string_buffer(struct.pack("5I", 0, port, port, 0, 0) + struct.pack("H", 0o600), 200)


def tells_its_own():
    ours, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        libc.unshare(0x10000080)
        os.write(its, b".")
        time.sleep(600)
    os.read(ours, 1)
    args[:] = [str(pid)]
    for tell in (time_offset, dump_filter, nice, io_priority, processors, uid_map):
        tell()
    os.kill(pid, 9)
    for made, tell in ((libc.msgget(0, 0o1600), messages), (libc.semget(0, 1, 0o1600), semaphores), (libc.shmget(0, 1, 0o1600), shared_memory)):
        args[:] = [str(made)]
        tell()
    print("tells its own", flush=True)


def keyring():
    """Gives a keyring to its parent, which is in the container, too."""
    libc.syscall(250, 1, 0)
    before = libc.syscall(250, 0, -3, 0)
    pid = os.fork()
    if pid == 0:
        libc.syscall(250, 1, text)
        given = libc.syscall(250, 18)
        print("gives", given, errno.errorcode.get(ctypes.get_errno()), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    print("another keyring", libc.syscall(250, 0, -3, 0) != before, flush=True)


def left(reach):
    """A child is moved out of the container, and reaches somebody outside before it is killed."""
    aside = "/sys/fs/cgroup/answers-aside"
    os.makedirs(aside, exist_ok=True)
    child = os.fork()
    if child == 0:
        while time.monotonic() < over:
            if "answers-aside" in open("/proc/self/cgroup").read():
                reach()
        os._exit(0)
    with open(aside + "/cgroup.procs", "w") as f:
        f.write(str(child))
    os.waitpid(child, 0)


def left_memory():
    pid, at = map(int, args[0].split())
    data = ctypes.create_string_buffer(text)
    own, far = (ctypes.c_size_t * 2)(ctypes.addressof(data), len(text)), (ctypes.c_size_t * 2)(at, len(text))
    left(lambda: libc.process_vm_writev(pid, own, 1, far, 1, 0))


def left_user_map(): left(lambda: tells("uid_map", "%d 0 1" % port))
def left_signal(): left(lambda: libc.kill(int(args[0]), 12))
def left_message(): left(lambda: libc.msgsnd(int(args[0]), struct.pack("l", 1) + text, len(text), 0o4000))


def takes(kind):
    """Somebody outside connects in, or sends, and hands in a pipe."""
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind("\0answers-takes-%d" % port)
    if kind != socket.SOCK_DGRAM:
        s.listen(1)
    s.setblocking(False)
    print("opened", flush=True)
    over = False
    while not over:
        over = select.select([sys.stdin], [], [], 0.02)[0]
        try:
            c = s if kind == socket.SOCK_DGRAM else s.accept()[0]
            write_into(c)
            sys.stdin.readline()
            return
        except BlockingIOError:
            pass


def write_into(s):
    """Speaks into the pipe that comes."""
    _, anc, _, _ = s.recvmsg(1, 64)
    os.write(array.array("i", anc[0][2])[0], text)


def takes_older():
    """Somebody outside, who was connected to before, hands in a pipe."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0answers-%d" % port)
    opened()
    write_into(s)


class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_size", ctypes.c_uint), ("parts", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("control_size", ctypes.c_size_t), ("flags", ctypes.c_size_t), ("size", ctypes.c_uint)]


def takes_second():
    """Of several messages only the second has room for a pipe, and the kernel asks about the first."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0answers-%d" % port)
    opened()
    data, control = ctypes.create_string_buffer(1), ctypes.create_string_buffer(64)
    part = (ctypes.c_void_p * 2)(ctypes.addressof(data), 1)
    both = (Message * 2)()
    for m in both:
        m.parts, m.count = ctypes.addressof(part), 1
    both[1].control, both[1].control_size = ctypes.addressof(control), 64
    refusable(libc.recvmmsg(s.fileno(), both, 2, 0, None))
    os.write(struct.unpack_from("i", control.raw, 16)[0], text)


def takes_waiting():
    """A thread waits with room for a pipe since before the taint."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0answers-%d" % port)
    t = threading.Thread(target=write_into, args=(s,))
    t.start()
    while not is_in(t, 47):
        time.sleep(0.02)
    opened()
    for name in args:
        open(name).read()
    print("closed", flush=True)
    t.join()


def logs_in():
    """A child says who it logged in as."""
    if os.fork() == 0:
        with open("/proc/self/loginuid", "w") as f:
            f.write(str(1000000 + port))
        os._exit(0)
    os.wait()


def mount_point():
    at = b"/run/answers/mount-%d" % port
    os.mkdir(at)
    return at


def mounts(): refusable(libc.mount(text, mount_point(), b"tmpfs", 0, None))


def moves_mount():
    fs = libc.syscall(430, b"tmpfs", 0) # fsopen
    refusable(fs)
    refusable(libc.syscall(431, fs, 1, b"source", text, 0)) # fsconfig
    refusable(libc.syscall(431, fs, 6, None, None, 0))
    fd = libc.syscall(432, fs, 0, 0) # fsmount
    refusable(fd)
    refusable(libc.syscall(429, fd, b"", -100, mount_point(), 4)) # move_mount


def begins_again():
    """A connection between the ports of one that somebody outside has ended, with data in its first packet."""
    def from_port():
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", port + 1))
        return s
    s = from_port()
    s.connect(("127.0.0.1", port))
    s.recv(1)
    s.close()
    opened()
    for name in args:
        open(name).read()
    s = from_port()
    s.setsockopt(socket.IPPROTO_TCP, 30, 1) # TCP_FASTOPEN_CONNECT
    s.setblocking(False)
    try:
        s.connect(("127.0.0.1", port))
        s.send(text)
    except OSError as e:
        print("refused", errno.errorcode.get(e.errno), flush=True)
    print("closed", flush=True)
    sys.stdin.readline()


def takes_left():
    """A thread waits at one end of a pair, and the other end leaves while all is clean."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0answers-%d" % port)
    near, far = socket.socketpair()
    t = threading.Thread(target=write_into, args=(near,))
    t.start()
    while not is_in(t, 47):
        time.sleep(0.02)
    leaves(s, far)
    t.join()


def leaves(s, far):
    s.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [far.fileno()]))])
    far.close()
    s.recv(1)
    opened()
    for name in args:
        open(name).read()
    print("closed", flush=True)


def takes_left_closed():
    """The other end is closed by the time that it is received from."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0answers-%d" % port)
    near, far = socket.socketpair()
    leaves(s, far)
    if args:
        sys.stdin.readline()
    write_into(near)


def takes_accepted():
    l = socket.socket(socket.AF_UNIX)
    l.bind("\0answers-takes-%d" % port)
    l.listen(1)
    s = l.accept()[0]
    opened()
    write_into(s)


def takes_stream(): takes(socket.SOCK_STREAM)
def takes_packets(): takes(socket.SOCK_SEQPACKET)
def takes_datagram(): takes(socket.SOCK_DGRAM)


def credentials():
    """Who listens, says the kernel to who connects in."""
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0answers-takes-%d" % port)
    os.setgroups([port + 70000])
    s.listen(1)
    opened()


def backlog():
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0answers-takes-%d" % port)
    s.listen(port % 50)
    opened()


def asked_before():
    """A name that was asked for has a smaller address than one that is asked for later."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(60)
    name = text.replace(b".", b"-")
    s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0" + bytes([len(name)]) + name + b"\7example\3com\0\0\1\0\1", ("10.77.0.2", 53))
    s.recv(4096)
    print("the resolver answers", flush=True)


def urgent():
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0answers-%d" % port)
    opened()
    s.send(text, socket.MSG_OOB)


def tls():
    """A connection that the kernel encrypts."""
    s = socket.create_connection(("10.77.0.2", port))
    s.setsockopt(socket.IPPROTO_TCP, 31, b"tls")
    s.setsockopt(282, 1, struct.pack("<HH", 0x0303, 51) + bytes(36))
    opened()
    fd = os.memfd_create("text")
    os.write(fd, text)
    for f in (lambda: s.send(text), lambda: os.sendfile(s.fileno(), fd, 0, len(text)), lambda: s.sendmsg([text], [(282, 1, b"\x16")])):
        try:
            f()
        except OSError as e:
            print("refused", errno.errorcode.get(e.errno), flush=True)


def named(kind):
    """Gives its end of an older connection a name, which the other end may ask for."""
    s = socket.socket(socket.AF_UNIX, kind)
    s.connect("\0answers-%d" % port)
    opened()
    s.bind(b"\0" + text)
    time.sleep(1)


def named_stream(): named(socket.SOCK_STREAM)
def named_packets(): named(socket.SOCK_SEQPACKET)


def kept(kind):
    """A socket that somebody outside has got, too."""
    c, s = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, kind)
    c.connect("\0answers-%d" % port)
    c.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
    c.recv(1)
    opened()
    return s


def kept_bound():
    kept(socket.SOCK_STREAM).bind(b"\0" + text)
    time.sleep(1)


def kept_connected():
    own = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    own.bind(b"\0" + text)
    kept(socket.SOCK_DGRAM).connect(b"\0" + text)
    time.sleep(1)


def chooses():
    """Shares a port with a service outside, and has a program choose who gets which packet."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("10.77.0.1", port))
    code = [struct.pack("HBBI", 0x30, 0, 0, 0)]  # the question's number
    for i in range(16):
        code += [struct.pack("HBBI", 0x15, 0, 1, i), struct.pack("HBBI", 6, 0, 0, 0 if port >> i & 1 else 1)]
    code.append(struct.pack("HBBI", 6, 0, 0, 1))
    at = ctypes.create_string_buffer(b"".join(code))
    s.setsockopt(socket.SOL_SOCKET, 51, struct.pack("HxxxxxxQ", len(code), ctypes.addressof(at)))
    time.sleep(5)


def tap():
    """A program with CAP_NET_ADMIN, as some that make such devices for users have, makes one, and a packet is written to it."""
    program = "/usr/local/bin/answers-privileged"
    if sys.executable != program:
        os.execv(program, [program] + sys.orig_argv[1:])
    fd = os.open("/dev/net/tun", os.O_RDWR)
    name = b"tap%d" % port
    fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", name, 0x1001))
    fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, struct.pack("16sH14x", name, 0x41))
    udp = struct.pack(">4H", port, port, 8 + len(text), 0) + text
    head = struct.pack(">2B3H2BH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton("10.78.0.2"), socket.inet_aton("10.77.0.2"))
    os.write(fd, head[:10] + struct.pack(">H", checksum(head)) + head[12:] + udp)
    time.sleep(1)


def administer(*commands):
    """Runs commands by a program with CAP_NET_ADMIN, as lxc-user-nic has, whoever runs it."""
    program = "/usr/local/bin/answers-privileged"
    code = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
libc.syscall(126, struct.pack("=II", 0x20080522, 0), struct.pack("=6I", 1 << 12, 1 << 12, 1 << 12, 0, 0, 0))
libc.prctl(47, 2, 12, 0, 0)
for command in sys.argv[1:]:
    os.system(command)
"""
    os.spawnv(os.P_WAIT, program, [program, "-c", code] + list(commands))


def linked():
    """The network of this user's own user namespace gets a link to the machine's, and forwards what a device there says."""
    ours, its = os.pipe()
    go, on = os.pipe()
    child = os.fork()
    if child == 0:
        userns(0x40000000)
        os.write(its, b".")
        os.read(go, 1)
        for command in ("ip link set lo up", "ip addr add 10.79.1.2/24 dev eth0", "ip link set eth0 up", "ip route add default via 10.79.1.1", "echo 1 >/proc/sys/net/ipv4/ip_forward"):
            os.system(command)
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", b"t0", 0x1001))
        os.system("ip link set t0 up")
        udp = struct.pack(">4H", port, port, 8 + len(text), 0) + text
        head = struct.pack(">2B3H2BH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton("10.79.1.77"), socket.inet_aton("10.77.0.2"))
        for _ in range(4):
            os.write(fd, head[:10] + struct.pack(">H", checksum(head)) + head[12:] + udp)
            time.sleep(1)
        os._exit(0)
    os.read(ours, 1)
    dev = "l%d" % port
    administer("ip link add %s type veth peer name eth0 netns %d" % (dev, child), "ip addr add 10.79.1.1/24 dev " + dev, "ip link set %s up" % dev)
    os.write(on, b".")
    os.waitpid(child, 0)


def mirrored():
    """What is said on loopback leaves by another device, too."""
    administer("tc qdisc add dev lo clsact", "tc filter add dev lo egress protocol ip u32 match ip dport %d 0xffff action mirred egress mirror dev $(ip -o route get 10.77.0.2 | sed 's/.* dev \\([^ ]*\\).*/\\1/')" % port)
    shared(socket.AF_INET, "127.0.0.1").sendto(text, ("127.0.0.1", port))


def bare():
    """Root without a capability."""
    libc.syscall(126, struct.pack("=II", 0x20080522, 0), bytes(24))
    opened()


def set_answers():
    with open("/run/netns/own") as f:
        libc.setns(f.fileno(), 0x40000000)
    bare()
    with open("/proc/sys/net/ipv4/ip_default_ttl", "w") as f:
        f.write(str(100 + port % 100))
    time.sleep(3)


def set_machine():
    bare()
    with open("/proc/sys/net/ipv4/conf/lo/tag", "w") as f:
        f.write(str(port))


def made(): administer("ip link add d%d type veth" % port)
def routed(): administer("ip route add blackhole 10.99.%d.%d" % divmod(port, 256))
def tagged(): administer("echo %d >/proc/sys/net/ipv4/conf/lo/tag" % port)


def paired():
    """Makes a pair of devices in a network of its own, and puts one of them into the machine's."""
    userns(0x40000000)
    os.system("ip link add type veth peer name d%d netns 1" % port)


def shut(what):
    """Ends one direction of an older connection, which a child keeps open."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0answers-%d" % port)
    if os.fork() == 0:
        os.closerange(0, 3)
        time.sleep(20)
        os._exit(0)
    opened()
    s.shutdown(what)
    time.sleep(2)


def shut_write(): shut(socket.SHUT_WR)
def shut_read(): shut(socket.SHUT_RD)


def takes_port():
    """Has the port of a service outside, at a more exact address, for a time."""
    s = shared(socket.AF_INET, "10.77.0.1")
    time.sleep(8)


def takes_port6():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("::ffff:10.77.0.1", port))
    time.sleep(8)


def joins_port():
    """Is one more of those that share a port, and gets every other question."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("0.0.0.0", port))
    time.sleep(8)


def asks_route():
    """Asks how a packet from a source to a group would go that came in by a device: the host's multicast router is told."""
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    group = socket.inet_aton("239.145.%d.%d" % divmod(port, 256))
    attributes = b"".join(struct.pack("HH", 8, kind) + value for kind, value in
                          ((1, group), (2, socket.inet_aton("10.77.0.9")), (3, struct.pack("I", socket.if_nametoindex("wv0")))))
    request = struct.pack("IHHII", 28 + len(attributes), 26, 1, 1, 0) + struct.pack("8BI", 2, 32, 32, 0, 0, 0, 0, 0, 0) + attributes
    s.sendto(request, (0, 0))
    time.sleep(1)


def enters():
    """Entered a network of its user that somebody outside carries packets for, and forwards there what a device of its own says."""
    for name in ("user", "net"):
        fd = os.open("/proc/%s/ns/%s" % (args[0], name), os.O_RDONLY)
        refusable(libc.setns(fd, 0))
    opened()
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", b"t0", 0x1001))
    for command in ("ip link set t0 up", "echo 1 >/proc/sys/net/ipv4/ip_forward"):
        os.system(command)
    udp = struct.pack(">4H", port, port, 8 + len(text), 0) + text
    head = struct.pack(">2B3H2BH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton("10.81.%d.77" % (port % 250)), socket.inet_aton("10.77.0.2"))
    for _ in range(4):
        os.write(fd, head[:10] + struct.pack(">H", checksum(head)) + head[12:] + udp)
        time.sleep(1)


def enters_sets():
    """The same, and answers there with a number."""
    for name in ("user", "net"):
        fd = os.open("/proc/%s/ns/%s" % (args[0], name), os.O_RDONLY)
        refusable(libc.setns(fd, 0))
    opened()
    with open("/proc/sys/net/ipv4/ip_default_ttl", "w") as f:
        f.write(str(100 + port % 100))
    time.sleep(4)
def fills():
    """Fills a socket of its own, to which somebody outside is connected."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind("\0answers-fills-%d" % port)
    s.recv(1)
    opened()
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.setblocking(False)
    for _ in range(1000):
        try:
            sender.sendto(b"x", "\0answers-fills-%d" % port)
        except BlockingIOError:
            break
    time.sleep(3)


def profile():
    """Wants to be what AppArmor does not know."""
    with open("/proc/self/attr/apparmor/current", "wb", buffering=0) as f:
        f.write(b"changeprofile " + text)


def debug_keyword():
    """Asks for messages of the kernel by a word that it does not know; as who has root's files, and not its number."""
    os.setresuid(0, 1000, 0)
    libc.setfsuid(0)
    with open("/proc/dynamic_debug/control", "wb", buffering=0) as f:
        f.write(text + b" x +p")


def self_label():
    """The same by a call that Linux has since 6.8."""
    value = b"changeprofile " + text
    context = struct.pack("4Q", 104, 0, 32 + len(value), len(value)) + value
    libc.syscall(460, 100, context, len(context), 0)
    if ctypes.get_errno() == errno.ENOSYS:
        profile()


def slept_on(made):
    """An object of its own, on which somebody outside sleeps since before the taint."""
    refusable(made)
    while not os.path.exists("/run/answers/sleeps-%d" % port):
        time.sleep(0.02)
    opened()
    return made


def semaphore(): return slept_on(libc.semget(port, 1, 0o1666))
def queue(): return slept_on(libc.msgget(port, 0o1666))
def sends_message(): refusable(libc.msgsnd(queue(), struct.pack("l", 1) + text, len(text), 0))
def takes_message(): refusable(libc.msgrcv(queue(), ctypes.create_string_buffer(9000), 8192, 0, 0))
def removes_messages(): refusable(libc.msgctl(queue(), 0, None))
def adds_semaphore(): refusable(libc.semop(semaphore(), struct.pack("HhH", 0, port & 0x3fff, 0), 1))
def sets_semaphore(): refusable(libc.semctl(semaphore(), 0, 16, port & 0x3fff))
def removes_semaphore(): refusable(libc.semctl(semaphore(), 0, 0))


def fault(size=8192):
    """Memory: who reads it waits until something is put into it, which fill does."""
    fd = libc.syscall(323, 0)
    refusable(fd)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole = ctypes.c_char.from_buffer(memory)
    at = ctypes.addressof(whole)
    fcntl.ioctl(fd, 0xc018aa3f, struct.pack("3Q", 0xaa, 0, 0))
    fcntl.ioctl(fd, 0xc020aa00, struct.pack("4Q", at, size, 1, 0))

    def fill(data, kept=whole):
        data = ctypes.create_string_buffer(data, size)
        fcntl.ioctl(fd, 0xc028aa03, struct.pack("5Q", at, ctypes.addressof(data), size, 0, 0))
    return at, fill


def is_in(thread, number):
    try:
        return open("/proc/self/task/%d/syscall" % thread.native_id).read().startswith("%d " % number)
    except OSError:
        return False


def begun(call, number, data, ready=opened):
    """A call that began before the taint, and that reads its data afterwards."""
    at, fill = fault()
    failed = []

    def run():
        if call(ctypes.c_void_p(at)) < 0:
            failed.append(errno.errorcode.get(ctypes.get_errno()))
    t = threading.Thread(target=run)
    t.start()
    while t.is_alive() and not is_in(t, number):
        time.sleep(0.02)
    ready()
    fill(data)
    t.join()
    if failed:
        print("refused", failed[0], flush=True)


def semaphores_begun(): begun(lambda at: libc.semctl(int(args[0]), 0, 17, at), 66, text)


def own_semaphore_begun():
    made = libc.semget(port, 1, 0o1666)

    def ready():
        open("/run/answers/begun-%d" % port, "w").close()
        slept_on(made)
    begun(lambda at: libc.semctl(made, 0, 17, at), 66, struct.pack("H", port & 0x3fff), ready)


def option_begun(s, level, option, data, size=None):
    begun(lambda at: libc.setsockopt(s.fileno(), level, option, at, size or len(data)), 54, data)
    time.sleep(3)


def device(): return socket.if_nametoindex(os.popen("ip -o route get 10.77.0.2").read().split(" dev ")[1].split()[0])


def join_begun():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    option_begun(s, socket.IPPROTO_IP, 35, struct.pack("=4s4si", socket.inet_aton("239.48.%d.%d" % divmod(port, 256)), bytes(4), device()))


def sources_begun(many=20):
    """Whose packets of a group it wants to get: so many addresses."""
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    group = struct.pack("=HHI16sI", 10, 0, 0, socket.inet_pton(10, "ff15::4800:1"), 0).ljust(128, b"\0")
    s.setsockopt(41, 42, struct.pack("=I4x", device()) + group)
    sources = b"".join(struct.pack("=HHI16sI", 10, 0, 0, struct.pack(">HH12s", 0xfd48, port, bytes([i]) * 12), 0).ljust(128, b"\0") for i in range(many))
    option_begun(s, 41, 48, struct.pack("=I4x", device()) + group + struct.pack("=II", 1, many) + sources)


def many_sources_begun(): sources_begun(60)


def key_begun():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port))
    s.listen(4)
    option_begun(s, socket.IPPROTO_TCP, 14, struct.pack("=HH4s120sBBHi80s", socket.AF_INET, 0, socket.inet_aton("10.77.0.2"), b"", 0, 0, len(text), 0, text))


over = time.monotonic() + 4
try:
    globals()[how]()
except OSError as e:
    print("refused", errno.errorcode.get(e.errno), flush=True)
