//go:build vmguest

package egress

import (
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"

	"weir/test/vm/guest/rig"
)

// syn begins a connection with a packet whose headers are in the way of a look at it.
const syn = `
import socket, struct, sys
form, source, target, port = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
def sum16(b):
    n = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    while n >> 16:
        n = (n & 0xffff) + (n >> 16)
    return ~n & 0xffff
family = socket.AF_INET6 if ":" in target else socket.AF_INET
a, b = socket.inet_pton(family, source), socket.inet_pton(family, target)
def tcp(at):
    head = lambda check: struct.pack("!HHIIBBHHH", at, port, 1, 0, 0x50, 2, 1024, check, 0)
    return head(sum16(a + b + struct.pack("!II", 20, socket.IPPROTO_TCP) + head(0)))
def headers(kinds, last):
    out = b""
    for i, kind in enumerate(kinds):
        after = kinds[i + 1] if i + 1 < len(kinds) else last
        out += bytes([after, 0]) + {43: b"\0\0\0\0\0\0", 44: b"\0\0\0\0\0\7", 60: b"\1\4\0\0\0\0"}[kind]
    return out
s = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
first = int(sys.argv[5])
if family == socket.AF_INET:
    body = tcp(first)
    options = b"\1\1\1\1"
    packet = struct.pack("!BBHHHBBH", 0x46, 0, 24 + len(body), 1, 0, 64, 6, 0) + a + b + options + body
else:
    s.setsockopt(socket.IPPROTO_IPV6, 36, 1) # IPV6_HDRINCL
    kinds = {"five": [60] * 5, "routing": [43], "fragment": [44], "both": [60, 43, 60]}[form]
    body = headers(kinds, 6) + tcp(first)
    packet = struct.pack("!IHBB", 6 << 28, len(body), kinds[0], 64) + a + b + body
s.sendto(packet, (target, 0))
`

// unreadable: what arrives and cannot be read begins nothing: the kernel would answer it by itself, with what the container has set; what has
// begun before the taint, it would answer again (B59).
func unreadable(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	for i, form := range []string{"options", "five", "routing", "fragment", "both"} {
		t.Run(form, func(t *testing.T) {
			session := sensor.Guard(t, "unreadable-"+form)
			port, from, at := world.Port(), "fd77::99", rig.Own6
			if form == "options" {
				from, at = "10.77.0.99", rig.Own
			}
			// nobody is there who would end what has begun
			rig.Must(t, "ip neigh replace "+from+" lladdr "+world.MAC+" dev "+rig.Dev)
			// no room but for one who waits: the answer to all others is a cookie, and of no socket
			p := session.Start(t, "egress", "serve", "-n", "0", "-after", "600s", "-to", net.JoinHostPort(at, strconv.Itoa(port)))
			if p.WaitLine("opened", rig.Late) == "" {
				t.Fatalf("it does not listen: %s", p.Wait(t))
			}
			outside := world.Port() // a service that is not guarded answers, too, and later
			world.Here.Listen(t, "tcp", net.JoinHostPort(at, strconv.Itoa(outside)))
			begin := func(by int) (answers int) {
				mark := world.Mark(t)
				for i, port := range []int{port, outside} {
					rig.Must(t, fmt.Sprintf("ip netns exec world python3 -c '%s' %s %s %s %d %d", syn, form, from, at, port, by+i))
				}
				rig.Eventually(t, "the other service answers", func() bool { return world.Packets(t, mark, by+1, by+2) > 0 })
				return world.Packets(t, mark, by, by+1)
			}
			first := 40000 + 10*i
			if begin(first) == 0 || begin(first+2) == 0 {
				t.Error("no answer while it is clean: this tests nothing")
			}
			half := fmt.Sprintf("ss -Htan state syn-recv sport = :%d", port)
			if rig.Must(t, half) == "" {
				t.Error("nothing has begun while it is clean: this tests nothing")
			}
			sensor.Taint(t, session.Name, "secret")
			if left := rig.Must(t, half); left != "" {
				t.Errorf("still answered: %s", left)
			}
			if n := begin(first + 4); n != 0 {
				t.Errorf("%d answers", n)
			}
			p.Signal(t, syscall.SIGKILL)
			p.Wait(t)
		})
	}
}
