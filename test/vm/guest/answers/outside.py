"""Somebody outside who helps the container: he listens where the kernel, or a service, may tell him what the container chose."""
import array, ctypes, errno, hashlib, os, select, shutil, signal, socket, struct, subprocess, sys, threading, time

how, port, text = sys.argv[1], int(sys.argv[2]), sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)


def until(poll, what=""):
    """Says when poll gives something; ends, after a last look, when the test says so."""
    print("listens", what, flush=True)
    over = False
    while True:
        got = poll()
        if got:
            print("heard", got, flush=True)
            return
        if over:
            print("nothing", flush=True)
            return
        over = bool(select.select([sys.stdin], [], [], 0.02)[0])


def received(s, flags=0):
    def poll():
        try:
            return s.recvmsg(4096, 4096, flags | socket.MSG_DONTWAIT)[0]
        except OSError:
            return None
    return poll


def datagrams(family, host, peer=None, level=None, option=None):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if option:
        s.setsockopt(level, option, 1)
    s.bind((host, port))
    if peer:
        s.connect((peer, port + 1))
    return s


# What the kernel answers to who sent to a closed port has the payload in it.
def icmp(): until(received(datagrams(socket.AF_INET, "127.0.0.2", None, socket.IPPROTO_IP, 11), socket.MSG_ERRQUEUE))
def icmp_shared(): until(received(datagrams(socket.AF_INET, "127.0.0.1", "127.0.0.1", socket.IPPROTO_IP, 11), socket.MSG_ERRQUEUE))
def icmp6_shared(): until(received(datagrams(socket.AF_INET6, "::1", "::1", socket.IPPROTO_IPV6, 25), socket.MSG_ERRQUEUE))
def dns(): until(received(datagrams(socket.AF_INET, "127.0.0.2")))


def ears():
    socks = [received(datagrams(f, h)) for f, h in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::"))]
    until(lambda: socks[0]() or socks[1]())


def synack(host):
    """Reads what the listener's segment size says."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socks = []

    def poll():
        if len(socks) < 8:
            s = socket.socket(family, socket.SOCK_STREAM)
            s.setblocking(False)
            s.connect_ex((host, port))
            socks.append(s)
            if len(socks) == 8:
                print("tried", flush=True)
        for s in socks:
            try:
                s.getpeername()
            except OSError:
                continue
            return s.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    until(poll)


def synack6(): synack("::1")
def cookie(): synack("127.0.0.1")
def cookie6(): synack("::1")


def timewait(host):
    """Closes after the container has, and reads with what class the kernel acknowledges."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    lo = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x86dd if ":" in host else 0x0800))
    lo.bind(("lo", 0))
    lo.setblocking(False)
    s = socket.create_server((host, port), family=family)
    print("serves", flush=True)
    c, _ = s.accept()
    while c.recv(100):
        pass
    sys.stdin.readline()
    c.close()

    def poll():
        while True:
            try:
                p = lo.recv(4096)
            except OSError:
                return None
            proto, tos, t = (p[9], p[1], p[20:]) if family == socket.AF_INET else (p[6], (p[0] << 4 | p[1] >> 4) & 255, p[40:])
            if proto == 6 and tos == 0x74 and struct.unpack_from(">H", t, 2)[0] == port:
                return "class"
    until(poll)


def timewait4(): timewait("127.0.0.1")
def timewait6(): timewait("::1")


def acquire(source, host, peer, route):
    """Stands in for the host's key daemon, which hears whom it is to ask for."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    at = host + (":%x" % port if ":" in host else ".%d.%d" % (port >> 8, port & 255))
    subprocess.run("modprobe xfrm_user; ip route replace %s && ip xfrm policy update dir out dst %s tmpl src %s dst %s proto esp mode tunnel"
                   % (route, route.split()[0], source, peer), shell=True, check=True)
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 6)
    s.bind((0, 1))
    wanted = socket.inet_pton(family, at)
    until(lambda: wanted in (received(s)() or b"") and at)


# the kernel asks one peer for one association at a time
def acquire4(): acquire("10.77.0.1", "10.99", "10.98.%d.%d" % (port >> 8, port & 255), "10.99.0.0/16 via 10.77.0.2")
def acquire6(): acquire("fd77::1", "fd99:", "fd98::%x" % port, "fd99::/64 via fd77::2")


def again6():
    """Begins many connections, and reads what the listener answers them with, time and again."""
    lo = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x86dd))
    lo.bind(("lo", 0))
    lo.setblocking(False)
    heard, begun = [], []

    def listen():
        while not heard:
            try:
                p = lo.recv(4096)
            except OSError:
                return None
            mss = struct.unpack_from(">H", p, 62)[0] if p[6] == 6 and p[53] & 0x12 == 0x12 else 0
            if struct.unpack_from(">H", p, 40)[0] == port and ((p[0] << 4 | p[1] >> 4) & 255 == 0x74 or mss == 700):
                heard.append("segment size %d" % mss)
        return heard[0]
    for i in range(400):
        s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        s.setblocking(False)
        s.connect_ex(("::1", port))
        begun.append(s)
        listen()
        time.sleep(0.006)
    print("tried", flush=True)
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        listen()
    sys.stdin.readline()
    until(listen)


def module():
    """Stands in for the host's modprobe, and reads what it is asked for."""
    path, log = "/run/answers-modprobe", "/run/answers-modprobe.log"
    open(log, "w").close()
    with open(path, "w") as f:
        f.write('#!/bin/sh\necho "$*" >>%s\n' % log)
    os.chmod(path, 0o755)
    with open("/proc/sys/kernel/modprobe", "w") as f:
        f.write(path)
    until(lambda: text in open(log, errors="replace").read() and text)


def accepts(s):
    s.listen(5)
    s.setblocking(False)
    got = []

    def poll():
        try:
            got.append(s.accept()[0])
            got[-1].setblocking(True)
        except OSError:
            pass
        return got and got[0].recv(4096)
    until(poll)


def userns(flags):
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(0x10000000 | flags):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, line in (("setgroups", "deny"), ("uid_map", "0 %d 1" % uid), ("gid_map", "0 %d 1" % gid)):
        with open("/proc/self/" + name, "w") as f:
            f.write(line)


def imitated(kind):
    """Binds the name of a socket that containers may talk to, below another root."""
    path = sys.argv[4]
    root = "/run/answers" + "/fake"
    os.makedirs(root + os.path.dirname(path), exist_ok=True)
    subprocess.run(["chmod", "-R", "777", root], check=True)
    if os.path.exists(root + path):
        os.unlink(root + path)
    os.setgroups([]), os.setresgid(1000, 1000, 1000), os.setresuid(1000, 1000, 1000)
    libc.prctl(4, 1, 0, 0, 0)
    userns(0x20000)
    os.chroot(root)
    os.chdir("/")
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    os.chmod(path, 0o777)
    return s


def imitate(): accepts(imitated(socket.SOCK_STREAM))
def imitate_datagram(): until(received(imitated(socket.SOCK_DGRAM)))


def listens_listed(kind):
    """Listens where the policy says that somebody may; the directory is a new one."""
    path = sys.argv[4]
    directory = os.path.realpath(os.path.dirname(path))
    shutil.rmtree(directory)
    os.mkdir(directory)
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    os.chmod(path, 0o777)
    return s


def listed(): accepts(listens_listed(socket.SOCK_STREAM))


def listed_datagram():
    s = listens_listed(socket.SOCK_DGRAM)
    s.setblocking(False)

    def poll():
        try:
            m, who = s.recvfrom(4096)
        except OSError:
            return None
        s.sendto(m, who)
        return m
    until(poll)


def vhost():
    s = socket.socket(socket.AF_VSOCK)
    s.bind((socket.VMADDR_CID_ANY, port))
    s.listen()
    s.setblocking(False)

    def poll():
        try:
            return s.accept()[1]
        except OSError:
            return None
    until(poll)


def atname():
    """A file whose name looks like a listed abstract one."""
    os.chdir("/run/answers")
    if os.path.exists("@listed"):
        os.unlink("@listed")
    s = socket.socket(socket.AF_UNIX)
    s.bind("@listed")
    os.chmod("@listed", 0o777)
    accepts(s)


def zeros():
    """A name that has a zero byte more than a listed one."""
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0listed\0")
    accepts(s)


def zeros_datagram():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind("\0listed\0\0")
    until(received(s))


def parent():
    """A child goes into the container, and gives its keyring to its parent outside."""
    def ring():
        return libc.syscall(250, 0, -3, 0), ctypes.get_errno()
    libc.syscall(250, 1, 0)
    before = ring()
    pid = os.fork()
    if pid == 0:
        with open(sys.argv[4] + "/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))
        libc.syscall(250, 1, text.encode())
        libc.syscall(250, 18)
        os._exit(0)
    os.waitpid(pid, 0)
    until(lambda: ring() != before and "another keyring")


def full():
    """Accepts a connection that waited in the container's own listener, when nobody has room any more to note that."""
    many = socket.socket(socket.AF_UNIX)
    many.bind("\0answers-many")
    many.listen(4096)
    if os.fork() == 0:
        libc.prctl(1, 9, 0, 0, 0)
        while True:
            many.accept()[0].close()
    ear = socket.socket(socket.AF_UNIX)
    ear.bind("\0answers-ear")
    ear.listen(4)
    print("serves", flush=True)
    c = ear.accept()[0]
    _, anc, _, _ = c.recvmsg(1, 64)
    listener = socket.socket(fileno=array.array("i", anc[0][2])[0])
    c.recv(1)  # all is full
    end = listener.accept()[0]
    c.send(b".")
    until(received(end))


def inworld():
    with open("/run/netns/world") as f:
        if libc.setns(f.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")


def tun():
    """Listens at the far side of the link, behind a device that belongs to the container's user."""
    dev = "tun%d" % port
    for words in ("tuntap add dev %s mode tun user 1000", "addr add 10.78.0.1/24 dev %s", "link set %s up"):
        subprocess.run(["ip"] + (words % dev).split(), check=True)
    inworld()
    try:
        until(received(datagrams(socket.AF_INET, "10.77.0.2")), dev)
    finally:
        with open("/proc/%d/ns/net" % os.getppid()) as f:
            libc.setns(f.fileno(), 0x40000000)
        subprocess.run(["ip", "link", "del", dev], check=True)


def checksum(data):
    n = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while n >> 16:
        n = (n & 0xffff) + (n >> 16)
    return ~n & 0xffff


def segment(sport, dport, seq, sign=None):
    """A lone acknowledgement, from the world to this machine; sign is the key of its signature."""
    options = b"\1\1\x13\x12" + bytes(16) if sign else b""
    pseudo = socket.inet_aton("10.77.0.2") + socket.inet_aton("10.77.0.1") + struct.pack(">2H", 6, 20 + len(options))
    head = struct.pack(">2H2I4H", sport, dport, seq, 1, (5 + len(options) // 4) << 12 | 0x10, 1000, 0, 0)
    if sign:
        options = options[:4] + hashlib.md5(pseudo + head + sign).digest()
    return head[:16] + struct.pack(">H", checksum(pseudo + head + options)) + head[18:] + options


def resets(send, heard):
    """Sends from the world eight times, and looks which ports of this machine have reset what comes from which."""
    inworld()
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    s.setblocking(False)
    tries, reset = [], set()

    def poll():
        if len(tries) < 8:
            tries.append(send(s, len(tries)))
            if len(tries) == 8:
                print("tried", flush=True)
        while True:
            try:
                t = s.recv(4096)[20:]
            except OSError:
                return len(tries) == 8 and heard(reset)
            if t[13] & 4:
                reset.add(struct.unpack(">2H", t[:4]))
    until(poll)


def md5():
    """Tries a key: the machine answers who signs with that of the listener at the port that he comes from."""
    resets(lambda s, i: s.sendto(segment(port, port + 1, i, text.encode()), ("10.77.0.1", 0)), lambda reset: (port + 1, port) in reset and "the key")


def md5_prefix(): md5()


def min_ttl():
    """Looks from how far away somebody must come for the listener's answer."""
    least = 100 + port % 100

    def send(s, i):
        for ttl in (least - 1, least):
            s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
            s.sendto(segment(4000 + ttl, port, i), ("10.77.0.1", 0))
    resets(send, lambda reset: (port, 4000 + least) in reset and (port, 3999 + least) not in reset and "how far")


def as_user():
    os.setgroups([]), os.setresgid(1000, 1000, 1000), os.setresuid(1000, 1000, 1000)
    libc.prctl(4, 1, 0, 0, 0)


def told(flags, poll):
    """A process of the container's user, with namespaces of its own, that somebody may tell something."""
    as_user()
    ours, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        libc.prctl(1, 9, 0, 0, 0)
        libc.unshare(flags)
        os.write(its, b".")
        while True:
            signal.pause()
    os.read(ours, 1)
    until(lambda: poll(pid), pid)


def uid_map(): told(0x10000000, lambda pid: open("/proc/%d/uid_map" % pid).read().split())
def time_offset(): told(0x10000080, lambda pid: str(port) in open("/proc/%d/timens_offsets" % pid).read())
def dump_filter(): told(0, lambda pid: int(open("/proc/%d/coredump_filter" % pid).read(), 16) == port & 0x1ff)
def nice(): told(0, lambda pid: os.getpriority(os.PRIO_PROCESS, pid) == 7)
def io_priority(): told(0, lambda pid: libc.syscall(252, 1, pid) == 2 << 13 | 7)
def processors(): told(0, lambda pid: len(os.sched_getaffinity(pid)) == 1)


def numbered(kind, make):
    """An object of System V, whose user anybody may look up."""
    as_user()
    made = make(0, *(() if kind == "msg" else (1,)), 0o1600)

    def poll():
        for line in list(open("/proc/sysvipc/" + kind))[1:]:
            words = line.split()
            if int(words[1]) == made:
                return str(port) in words[3:]
    until(poll, made)


def messages(): numbered("msg", libc.msgget)
def semaphores(): numbered("sem", libc.semget)
def shared_memory(): numbered("shm", libc.shmget)


def netlink():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.bind((0, 0))
    until(received(s), s.getsockname()[0])


def memory():
    b = ctypes.create_string_buffer(100)
    until(lambda: b.value, "%d %d" % (os.getpid(), ctypes.addressof(b)))


def signalled():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    until(lambda: signal.sigtimedwait([signal.SIGUSR2], 0), os.getpid())


def message():
    queue, b = libc.msgget(0, 0o1666), ctypes.create_string_buffer(100)
    until(lambda: libc.msgrcv(queue, b, 90, 0, 0o4000) > 0 and b.raw[8:].rstrip(b"\0"), queue)


def hands_over(s, connect=lambda: None, after=lambda: None):
    """Hands in a pipe over a connection."""
    r, w = os.pipe()
    os.set_blocking(r, False)
    try:
        connect()
        s.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w]))])
        after()
    except OSError as e:
        print("outside:", e, flush=True)
    print("tried", flush=True)

    def poll():
        try:
            return os.read(r, 4096)
        except OSError:
            return None
    until(poll)


def hands_in(kind):
    """Connects to the container's listener first."""
    s = socket.socket(socket.AF_UNIX, kind)
    hands_over(s, lambda: s.connect("\0answers-takes-%d" % port))


def accepted():
    """A connection of the container's, to a listener outside."""
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0answers-%d" % port)
    s.listen(1)
    print("serves", flush=True)
    return s.accept()[0]


def takes_older(): hands_over(accepted())


def takes_second():
    c = accepted()
    c.send(b".")
    hands_over(c)


def takes_waiting():
    c = accepted()
    sys.stdin.readline()
    hands_over(c)


def hears_login():
    """The audit log, without a daemon that takes it, goes into the kernel's."""
    def enable(on):
        s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)
        s.send(struct.pack("=IHHII", 56, 1001, 5, 1, 0) + struct.pack("=10I", 1, on, *[0] * 8)) # AUDIT_SET, with an acknowledgement
        s.recv(100)
    enable(1)
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(log, 0, os.SEEK_END)

    def poll():
        while True:
            try:
                if b" auid=%d " % (1000000 + port) in os.read(log, 8192):
                    return port
            except BrokenPipeError: # it missed something
                continue
            except BlockingIOError:
                return None
    until(poll)
    enable(0)


def sees_mounts():
    until(lambda: " %s " % text in open("/proc/1/mountinfo").read() and text)
    subprocess.run(["umount", "/run/answers/mount-%d" % port], stderr=subprocess.DEVNULL)


def closes_first():
    with open("/proc/sys/net/ipv4/tcp_fastopen", "w") as f:
        f.write(str(0x207)) # also without a cookie
    l = socket.socket()
    l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.setsockopt(socket.SOL_SOCKET, 25, b"lo\0") # SO_BINDTODEVICE
    l.setsockopt(socket.IPPROTO_TCP, 23, 5) # TCP_FASTOPEN
    l.bind(("127.0.0.1", port))
    l.listen(5)
    print("serves", flush=True)
    l.accept()[0].close()
    sys.stdin.readline()
    l.setblocking(False)

    def poll():
        try:
            return l.accept()[0].recv(100)
        except OSError:
            return None
    until(poll)


def takes_left(): hands_over(left())


def takes_left_closed():
    far = left()
    hands_over(far, after=far.close)


def left():
    """An end that has left the container."""
    c = accepted()
    far = socket.recv_fds(c, 1, 1)[1][0]
    c.send(b".")
    sys.stdin.readline()
    return socket.socket(fileno=far)


def takes_accepted():
    print("serves", flush=True)
    s = socket.socket(socket.AF_UNIX)
    while s.connect_ex("\0answers-takes-%d" % port):
        time.sleep(0.02)
    hands_over(s)


def takes_stream(): hands_in(socket.SOCK_STREAM)
def takes_packets(): hands_in(socket.SOCK_SEQPACKET)
def takes_datagram(): hands_in(socket.SOCK_DGRAM)


def credentials():
    s = socket.socket(socket.AF_UNIX)
    got = b""
    try:
        s.connect("\0answers-takes-%d" % port)
        got = s.getsockopt(socket.SOL_SOCKET, 59, 400)
    except OSError as e:
        print("outside:", e, flush=True)
    print("tried", flush=True)
    until(lambda: got == struct.pack("I", port + 70000) and got)


def backlog():
    n, all = 0, []
    try:
        while n < 60:
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            s.connect("\0answers-takes-%d" % port)
            all.append(s)
            n += 1
    except OSError as e:
        print("outside:", e, flush=True)
    print("tried", flush=True)
    until(lambda: n == port % 50 + 1 and "room for %d" % n)


def asked_before():
    """Asks whatever listens on loopback, as the container's resolver does, for a new name and for the one that the container asked for."""
    def ask(host, at, name):
        q = b"\0\1\1\0\0\1\0\0\0\0\0\0" + bytes([len(name)]) + name + b"\7example\3com\0\0\1\0\1"
        s = socket.create_connection((host, at), 2)
        s.settimeout(2)
        s.send(struct.pack(">H", len(q)) + q)
        return s.recv(4096)[-4:]
    tried = []

    def poll():
        if tried or not select.select([sys.stdin], [], [], 0)[0]:
            return None
        tried.append(True)
        for host, table, own in (("127.0.0.1", "tcp", "0100007F:"), ("::1", "tcp6", "00000000000000000000000001000000:")):
            for line in open("/proc/net/" + table):
                f = line.split()
                if f[3] != "0A" or not f[1].startswith(own):
                    continue
                try:
                    fresh, asked = [ask(host, int(f[1].split(":")[1], 16), n) for n in (b"new-%d" % port, text.encode().replace(b".", b"-"))]
                except OSError as e:
                    print(host, f[1], e, flush=True)
                    continue
                if fresh[:2] == asked[:2] == bytes([198, 18]) and asked < fresh:
                    return "it was asked for before"
    until(poll)


def urgent():
    c = accepted()
    first, rest = received(c, socket.MSG_OOB), received(c)
    until(lambda: first() or rest())


def tls():
    inworld()
    s = socket.create_server(("10.77.0.2", port))
    print("serves", flush=True)
    until(received(s.accept()[0]))


def called(name):
    """Whether a socket's name, or its peer's, is the text."""
    try:
        return text in os.fsdecode(name())
    except OSError:
        return False


def named(kind):
    """Reads by what name the other end of an older connection calls itself."""
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind("\0answers-%d" % port)
    s.listen(1)
    print("serves", flush=True)
    c = s.accept()[0]
    until(lambda: called(c.getpeername) and text)


def named_stream(): named(socket.SOCK_STREAM)
def named_packets(): named(socket.SOCK_SEQPACKET)


def named_kept():
    """Has a socket of the container's, and reads what it is bound or connected to."""
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0answers-%d" % port)
    s.listen(1)
    print("serves", flush=True)
    c = s.accept()[0]
    _, anc, _, _ = c.recvmsg(1, 64)
    kept = socket.socket(fileno=array.array("i", anc[0][2])[0])
    c.send(b".")
    until(lambda: called(kept.getsockname) or called(kept.getpeername))


def chooses():
    """A service of the container's user answers the world, which hears which of its sixteen questions are answered."""
    if os.fork() == 0:
        libc.prctl(1, 9, 0, 0, 0)
        as_user()
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("10.77.0.1", port))
        while True:
            m, who = s.recvfrom(100)
            s.sendto(m, who)
    inworld()
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.connect(("10.77.0.1", port))
    ear.settimeout(0.05)

    def poll():
        got = 0
        for i in range(16):
            try:
                ear.send(bytes([i]))
                got |= 1 << ear.recv(100)[0]
            except OSError:
                pass
        return got == port and "number %d" % got
    until(poll)


def tap():
    """Listens at the far side of the link, to which the machine forwards."""
    inworld()
    until(received(datagrams(socket.AF_INET, "10.77.0.2")))


def mirrored():
    """Hears every frame at the far side of the link."""
    inworld()
    frames = received(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
    until(lambda: text.encode() in (frames() or b"") and text)


def pinged():
    """Pings the container's network, and reads from how far away its answers seem to come."""
    print("serves", flush=True)
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    s.connect(("10.80.0.2", 0))
    s.settimeout(1)

    def poll():
        echo = struct.pack(">BBHHH", 8, 0, 0, port & 0xffff, 1)
        s.send(echo[:2] + struct.pack(">H", checksum(echo)) + echo[4:])
        try:
            p = s.recv(4096)
        except OSError:
            return None
        return p[20] == 0 and p[8] == 100 + port % 100 and "number %d" % p[8]
    until(poll)


def set_machine():
    print("serves", flush=True)
    tagged()


def holds(what, path):
    with open(path) as f:
        return what in f.read() and what


# What is set in the machine's network, everybody can read.
def made(): until(lambda: holds("d%d:" % port, "/proc/net/dev"))
def routed(): until(lambda: holds("10.99.%d.%d\n" % divmod(port, 256), "/proc/net/fib_trie"))
def tagged(): until(lambda: holds("%d\n" % port, "/proc/sys/net/ipv4/conf/lo/tag"))


def shut(ended):
    """Sees that one direction of a connection has ended."""
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0answers-%d" % port)
    s.listen(1)
    print("serves", flush=True)
    c = s.accept()[0]

    def poll():
        try:
            return ended(c) and text
        except BlockingIOError:
            return None
        except BrokenPipeError:
            return text
    until(poll)


def shut_write(): shut(lambda c: c.recv(1, socket.MSG_DONTWAIT) == b"")
def shut_read(): shut(lambda c: c.send(b".", socket.MSG_DONTWAIT) < 0)


def serves_port(option, host):
    """A service of the container's user answers the world, which hears that it answers no more."""
    if os.fork() == 0:
        libc.prctl(1, 9, 0, 0, 0)
        as_user()
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, option, 1)
        s.bind((host, port))
        while True:
            m, who = s.recvfrom(100)
            s.sendto(m, who)
    inworld()

    def answers():
        """Of four questions, each from a port of its own."""
        for _ in range(4):
            ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            ear.connect(("10.77.0.1", port))
            ear.settimeout(1)
            try:
                ear.send(b"?")
                ear.recv(100)
            except OSError:
                return False
        return True
    while not answers():
        pass
    until(lambda: not answers() and not answers() and text)


def takes_port(): serves_port(socket.SO_REUSEADDR, "0.0.0.0")
def joins_port(): serves_port(socket.SO_REUSEPORT, "0.0.0.0")


def asks_route():
    """Routes packets to groups, and is told of those that nobody has sent yet."""
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
    s.setsockopt(socket.IPPROTO_IP, 200, 1)
    index = socket.if_nametoindex("wv0")
    s.setsockopt(socket.IPPROTO_IP, 202, struct.pack("HBBIi4x", 0, 8, 1, 0, index))
    heard = received(s)
    group = socket.inet_aton("239.145.%d.%d" % divmod(port, 256))
    until(lambda: group in (heard() or b"") and text)


def network(poll):
    """A network of the container's user: it has a link to the machine's, as that of a rootless engine has to who carries its packets."""
    net = "10.81.%d" % (port % 250)
    ready, its = os.pipe()
    go, on = os.pipe()
    child = os.fork()
    if child == 0:
        libc.prctl(1, 9, 0, 0, 0)
        as_user()
        libc.prctl(4, 1, 0, 0, 0)
        if libc.unshare(0x50000000):
            os._exit(1)
        for name, line in (("setgroups", "deny"), ("uid_map", "0 1000 1"), ("gid_map", "0 1000 1")):
            with open("/proc/self/" + name, "w") as f:
                f.write(line)
        os.write(its, b".")
        os.read(go, 1)
        for command in ("ip link set lo up", "ip addr add %s.2/24 dev eth0" % net, "ip link set eth0 up", "ip route add default via %s.1" % net):
            os.system(command)
        os.write(its, b".")
        time.sleep(600)
        os._exit(0)
    os.read(ready, 1)
    dev = "n%d" % port
    for command in ("ip link add %s type veth peer name eth0 netns %d" % (dev, child), "ip addr add %s.1/24 dev %s" % (net, dev), "ip link set %s up" % dev):
        os.system(command)
    os.write(on, b".")
    os.read(ready, 1)
    until(poll(), str(child))


def enters():
    def poll():
        inworld()
        return received(datagrams(socket.AF_INET, "10.77.0.2"))
    network(poll)


def enters_sets():
    def poll():
        s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        s.connect(("10.81.%d.2" % (port % 250), 0))
        s.settimeout(1)
        def look():
            echo = struct.pack(">BBHHH", 8, 0, 0, port & 0xffff, 1)
            s.send(echo[:2] + struct.pack(">H", checksum(echo)) + echo[4:])
            try:
                p = s.recv(4096)
            except OSError:
                return None
            return p[20] == 0 and p[8] == 100 + port % 100 and "number %d" % p[8]
        return look
    network(poll)


def sees_full():
    print("serves", flush=True)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    while True:
        try:
            s.connect("\0answers-fills-%d" % port)
            break
        except ConnectionRefusedError: # nobody is there yet
            time.sleep(0.02)
    s.send(b"x")
    until(lambda: not select.select([], [s], [], 0)[1] and "full")


def kernel_log():
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(log, 0, os.SEEK_END)

    def poll():
        while True:
            try:
                if text.encode() in os.read(log, 8192):
                    return text
            except BrokenPipeError: # it missed something
                continue
            except BlockingIOError:
                return None
    until(poll)


def sleeps(find, call, *numbers):
    """Sleeps on an object of System V that the container has made."""
    as_user()
    print("serves", flush=True)
    while find() < 0 and ctypes.get_errno() != errno.EACCES:
        time.sleep(0.02)
    got = []
    t = threading.Thread(target=lambda: got.append(call(find())), daemon=True)
    t.start()

    def is_in():
        try:
            return open("/proc/self/task/%d/syscall" % t.native_id).read().split()[0] in numbers
        except OSError:
            return False
    while t.is_alive() and not is_in():
        time.sleep(0.02)
    open("/run/answers/sleeps-%d" % port, "w").close()
    until(lambda: got and got[0])


def receives(queue):
    b = ctypes.create_string_buffer(100)
    size = libc.msgrcv(queue, b, 90, 0, 0)
    return b.raw[8:8 + size] if size > 0 else ctypes.get_errno() == errno.EIDRM and "the end"


def sends(queue):
    m = struct.pack("l", 1) + bytes(8000)
    while libc.msgsnd(queue, m, 8000, 0o4000) == 0:
        pass
    libc.msgsnd(queue, m, 8000, 0)
    return "one was taken" # also where it may not send any more by then


def waits(semaphore):
    woken = libc.semop(semaphore, struct.pack("HhH", 0, -(port & 0x3fff), 0), 1)
    return "a number" if woken == 0 else ctypes.get_errno() == errno.EIDRM and "the end"


def message_asleep(): sleeps(lambda: libc.msgget(port, 0), receives, "70")
def sender_asleep(): sleeps(lambda: libc.msgget(port, 0), sends, "69")
def semaphore_asleep(): sleeps(lambda: libc.semget(port, 0, 0), waits, "65", "220")
def own_semaphore_begun(): sleeps(lambda: libc.semget(port, 0, 0) if os.path.exists("/run/answers/begun-%d" % port) else -1, waits, "65", "220")


def semaphores_begun():
    as_user()
    made, all = libc.semget(0, 64, 0o1666), ctypes.create_string_buffer(128)
    until(lambda: libc.semctl(made, 0, 13, all) == 0 and all.raw.rstrip(b"\0"), made)


def frames(what):
    """Hears every frame at the far side of the link."""
    print("serves", flush=True)
    inworld()
    s = received(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))

    def poll():
        while True:
            frame = s()
            if frame is None or what in frame:
                return frame and what
    until(poll)


def join_begun(): frames(socket.inet_aton("239.48.%d.%d" % divmod(port, 256)))
def sources_begun(): frames(struct.pack(">HH12s", 0xfd48, port, bytes([7]) * 12))
def many_sources_begun(): sources_begun()


def key_begun():
    """Tries a key again and again, as md5 does."""
    print("serves", flush=True)
    inworld()
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    s.setblocking(False)

    def poll():
        s.sendto(segment(port, port + 1, 1, text.encode()), ("10.77.0.1", 0))
        while True:
            try:
                t = s.recv(4096)[20:]
            except OSError:
                return None
            if t[13] & 4 and struct.unpack(">2H", t[:4]) == (port + 1, port):
                return "the key"
    until(poll)


def reborn():
    """Gets the number that the sensor had, and imitates it."""
    while True:
        with open("/proc/sys/kernel/ns_last_pid", "w") as f: # in place of some thousand processes
            f.write(str(int(sys.argv[5]) - 1))
        pid = os.fork()
        if pid == 0:
            if os.getpid() == int(sys.argv[5]):
                imitate()
            os._exit(0)
        os.waitpid(pid, 0)
        if pid == int(sys.argv[5]):
            return


globals()[how]()
