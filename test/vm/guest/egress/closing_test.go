//go:build vmguest

package egress

import (
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/test/vm/guest/rig"
)

// Connects, taints itself, and then sets what is in the headers of what its kernel still answers.
const closes = `
import socket, sys
target, port, secret, tos, how = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:]
c = socket.create_connection((target, port))
c.sendall(b"here")
if "forged" not in how:
    c.shutdown(socket.SHUT_WR)
print("open", flush=True)
input()
open(secret).read()
level, option = (socket.IPPROTO_IPV6, 67) if ":" in target else (socket.IPPROTO_IP, socket.IP_TOS)
for f in [lambda: c.setsockopt(level, option, tos), lambda: "forged" in how and c.shutdown(socket.SHUT_WR), lambda: "closes" in how and c.close()]:
    try:
        f()
    except OSError as e:
        print("refused", e, flush=True)
print("done", flush=True)
input()
`

// Serves one connection. Whether or not it has heard the end of it, it says that it has, and ends its own half.
const ends = `
import socket, struct, sys
host, port, forged = sys.argv[1], int(sys.argv[2]), "forged" in sys.argv[3:]
family = socket.AF_INET6 if ":" in host else socket.AF_INET
s = socket.create_server((host, port), family=family)
raw = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP)
print("listens", flush=True)
c, peer = s.accept()
while c.recv(100) != (b"here" if forged else b""):
    pass
print("open", flush=True)
input()
if not forged:
    c.close()
else:
    while True: # what came last before the end, without its header of IPv4
        b = raw.recv(2000)
        b = b[(b[0] & 15) * 4:] if family == socket.AF_INET else b
        source, to, seq, ack = struct.unpack("!HHII", b[:12])
        if (source, to) == (peer[1], port) and b[(b[12] >> 4) * 4:] == b"here":
            break
    raw.setsockopt(socket.IPPROTO_IPV6, 7, 16) # IPV6_CHECKSUM
    for _ in range(3):
        raw.sendto(struct.pack("!HHIIBBHHH", port, peer[1], ack, seq + 5, 0x50, 0x11, 1024, 0, 0), (peer[0], 0))
print("ended", flush=True)
input()
`

// halfClosed: the kernel acknowledges by itself that the other side closes, with what was set on the socket before it was forgotten. Of a
// tainted container it does so for nobody who is not allowed, also where the daemon did not come to close the connection (B61).
func halfClosed(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	const tos = 0x74
	asked := regexp.MustCompile(`timer:\(on,[^,]*,[2-9]\)`)
	for _, c := range []struct {
		name, far, how string
		opened         bool
	}{
		{"closes4", rig.World4, "closes", false},
		{"closes6", rig.World6, "closes", false},
		{"stays4", rig.World4, "stays", false},
		{"stays6", rig.World6, "stays", false},
		{"forged-closes", rig.World6, "forged closes", false},
		{"forged-stays", rig.World6, "forged stays", false},
		{"allowed4", rig.Open4, "closes", true},
		{"allowed6", rig.Open6, "stays", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			session := sensor.Guard(t, "closing-"+c.name)
			number := world.Port()
			port := strconv.Itoa(number)
			how := strings.Fields(c.how)
			far := world.Agent.Start(t, append([]string{"ip", "netns", "exec", "world", "python3", "-c", ends, c.far, port}, how...)...)
			if far.WaitLine("listens", rig.Late) == "" {
				t.Fatalf("nobody listens: %s", far.Wait(t))
			}
			p := session.Start(t, append([]string{"python3", "-c", closes, c.far, port, secretFile, strconv.Itoa(tos)}, how...)...)
			if p.WaitLine("open", rig.Late) == "" || far.WaitLine("open", rig.Late) == "" {
				t.Fatalf("no connection: %s", p.Wait(t))
			}
			mark := world.Mark(t)
			sensor.Signal(t, syscall.SIGSTOP) // it closes nothing
			p.Input(t, "\n")
			p.WaitLine("done", rig.Late)
			far.Input(t, "\n")
			far.WaitLine("ended", rig.Late)
			heard := func() bool { return world.Classes(t, mark, number)[tos] }
			// the far end asks again until it is answered
			rig.Eventually(t, "an answer, or nobody to ask any more, or it was asked twice", func() bool {
				state := rig.Must(t, "ip netns exec world ss -Htano sport = :"+port)
				return heard() || !strings.Contains(state, "LAST-ACK") || asked.MatchString(state)
			})
			if heard() != c.opened {
				t.Errorf("answered with the class: %v, want %v", !c.opened, c.opened)
			}
			sensor.Signal(t, syscall.SIGCONT)
			for _, p := range []*rig.Proc{p, far} {
				p.Signal(t, syscall.SIGKILL)
				p.Wait(t)
			}
		})
	}
}
