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

// Ends its half of a connection, taints itself, and then sets what stands in the headers of what its kernel still answers.
const closes = `
import socket, sys
target, port, secret, tos, closes = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5] == "closes"
c = socket.create_connection((target, port))
c.shutdown(socket.SHUT_WR)
print("open", flush=True)
input()
open(secret).read()
level, option = (socket.IPPROTO_IPV6, 67) if ":" in target else (socket.IPPROTO_IP, socket.IP_TOS)
c.setsockopt(level, option, tos)
if closes:
    c.close()
print("done", flush=True)
input()
`

// Serves one connection: hears its end, and ends the own half when it is told.
const ends = `
import socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("listens", flush=True)
c, peer = s.accept()
while c.recv(100):
    pass
print("open", flush=True)
input()
c.close()
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
		{"allowed4", rig.Open4, "closes", true},
		{"allowed6", rig.Open6, "stays", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			session := sensor.Guard(t, "closing-"+c.name)
			number := world.Port()
			port := strconv.Itoa(number)
			far := world.Agent.Start(t, "ip", "netns", "exec", "world", "python3", "-c", ends, c.far, port)
			if far.WaitLine("listens", rig.Late) == "" {
				t.Fatalf("nobody listens: %s", far.Wait(t))
			}
			p := session.Start(t, "python3", "-c", closes, c.far, port, secretFile, strconv.Itoa(tos), c.how)
			if p.WaitLine("open", rig.Late) == "" || far.WaitLine("open", rig.Late) == "" {
				t.Fatalf("no connection: %s", p.Wait(t))
			}
			mark := world.Mark(t)
			sensor.Signal(t, syscall.SIGSTOP) // it closes nothing
			defer sensor.Signal(t, syscall.SIGCONT)
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
			for _, p := range []*rig.Proc{p, far} {
				p.Signal(t, syscall.SIGKILL)
				p.Wait(t)
			}
		})
	}
}
