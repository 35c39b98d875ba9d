//go:build vmguest

package names

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"weir/test/vm/guest/rig"
)

const forgedTo = "203.0.113.99" // nobody's

// forges makes a network of its own in which every name leads to one address, and asks for names there.
const forges = `
import fcntl, os, select, socket, struct, subprocess, sys
to, server, names = sys.argv[1], sys.argv[2], sys.argv[3:]
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH22x", b"t0", 0x1001))
for words in ("link set lo up", "addr add 203.0.113.1/24 dev t0", "link set t0 up"):
    subprocess.run(["ip"] + words.split(), check=True)

def checksum(b):
    n = sum(struct.unpack(">%dH" % (len(b) // 2), b))
    while n >> 16:
        n = (n & 0xffff) + (n >> 16)
    return ~n & 0xffff

asks = os.fork()
if asks == 0:
    for name in names:
        r = subprocess.run(["getent", "ahostsv4", name], stdout=subprocess.PIPE)
        print("answer", name, r.returncode, r.stdout.decode().split()[:1], flush=True)
    os._exit(0)

while True:
    if os.waitpid(asks, os.WNOHANG)[0]:
        break
    if not select.select([tun], [], [], 0.1)[0]:
        continue
    p = os.read(tun, 2048)
    if p[0] != 0x45 or p[9] != 17 or p[22:24] != b"\0\x35":
        continue
    q = p[28:]
    end = q.index(0, 12) + 5
    print("heard", q[13:end - 5], flush=True)
    a = q[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + q[12:end] + b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(to)
    udp = p[22:24] + p[20:22] + struct.pack(">HH", 8 + len(a), 0)
    head = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(a), 1, 0, 64, 17, 0) + p[16:20] + p[12:16]
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    os.write(tun, head + udp + a)
`

// forged: who makes a user namespace administers the network in it. Nothing that is said there of an allowed name is believed, nor
// opens anything (B24, B25).
func (f *fixture) forged(t *testing.T) {
	rig.Must(t, "modprobe tun && chmod 666 /dev/net/tun")
	f.zone.set("true.allowed.example", host)
	inOwn := func(names ...string) rig.Result {
		return f.session.Run(t, append([]string{"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "unshare", "-Urn",
			"python3", "-c", forges, forgedTo, server}, names...)...)
	}
	r := inOwn("forged.allowed.example", "evil.example")
	if !strings.Contains(r.Stdout, "answer evil.example 0 ['198.18.") {
		t.Errorf("no resolver answers: %s", r)
	}
	if strings.Contains(r.Stdout, "heard") || !strings.Contains(r.Stdout, "answer forged.allowed.example 2 []") {
		t.Errorf("a forged answer is believed: %s", r)
	}
	if n := f.leased(t, forgedTo); n != 0 {
		t.Errorf("a forged answer opens its address to the container, %d times", n)
	}

	// those that the policy lists are asked, from where the sensor stands
	f.sensor.Policy(t, "resolvers: ["+server+"]\n"+policyText)
	r = inOwn("true.allowed.example")
	if strings.Contains(r.Stdout, "heard") || !strings.Contains(r.Stdout, "answer true.allowed.example 0 ['"+host+"']") {
		t.Errorf("the name servers of the policy do not answer: %s", r)
	}
	if f.zone.times("true.allowed.example") == 0 {
		t.Error("they were not asked")
	}
	f.sensor.Policy(t, policyText)
}

// leased counts what is open to any container at an address by an allowed name.
func (f *fixture) leased(t *testing.T, address string) int {
	t.Helper()
	n, at := 0, netip.MustParseAddr(address).As16()
	each(t, "dns_leases", func(_ *ebpf.Map, key, _ []byte) {
		if strings.Contains(string(key), string(at[:])) {
			n++
		}
	})
	return n
}
