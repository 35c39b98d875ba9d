//go:build vmguest

package names

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/test/vm/guest/rig"
)

const secretFile = "/tmp/names-secret"

// reads opens a secret file for each name that it is told, and asks for the name at once.
const reads = `
import socket, sys
for name in sys.stdin:
    name = name.strip()
    q = b"\0\7\1\0\0\1\0\0\0\0\0\0"
    for label in name.split("."):
        q += bytes([len(label)]) + label.encode()
    q += b"\0\0\1\0\1"
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(60)
    open(sys.argv[1]).close()
    s.connect((sys.argv[2], 53))
    try:
        s.send(q)
        print(name, ".".join(str(b) for b in s.recv(512)[-4:]), flush=True)
    except ConnectionAbortedError: # as what is open at a taint is
        print(name, "cut", flush=True)
`

// secret: the kernel taints who opens a secret file, and what it asks for from then on is looked up for nobody, whatever the daemon knows (B24).
func (f *fixture) secret(t *testing.T) {
	s := f.guard(t, "--taint", "secret")
	want(t, s.Run(t, "getent", "ahosts", "before.secret.example"), 0, "198.18.")
	f.sensor.Untaint(t, s.Name, "secret")
	p, answered := s.Start(t, "python3", "-c", reads, secretFile, server), 0
	for i := 0; i < 6 || answered == 0 && i < 30; i++ { // the cut may come first
		mark, name := f.world.Mark(t), fmt.Sprintf("stolen%d", i)
		if i%2 == 1 { // the daemon finds the question and what the kernel did together
			f.sensor.Signal(t, syscall.SIGSTOP)
		}
		p.Input(t, name+".example\n")
		if i%2 == 1 {
			time.Sleep(300 * time.Millisecond)
			f.sensor.Signal(t, syscall.SIGCONT)
		}
		switch line := p.WaitLine(name, rig.Late); {
		case strings.HasPrefix(line, name+".example 198.18."):
			answered++
		case line != name+".example cut":
			r, _ := p.WaitFor(time.Millisecond)
			t.Errorf("%s: no address that stands for it: %q, %s", name, line, r)
		}
		rig.Eventually(t, "the daemon knows of the taint", func() bool {
			for _, c := range f.sensor.Containers(t) {
				if c.Name == s.Name {
					return len(c.Taint) > 0
				}
			}
			return false
		})
		f.world.Nothing(t, mark, name, 0)
		if n := f.zone.times(name + ".example"); n != 0 {
			t.Errorf("the name server was asked %d times for %s", n, name)
		}
		f.sensor.Untaint(t, s.Name, "secret") // now it is looked up: the program may have kept its address
	}
	if answered == 0 {
		t.Error("no question was answered")
	}
	p.Close(t)
	p.Wait(t)
}
