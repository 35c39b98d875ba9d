//go:build vmguest

package names

import (
	"os"
	"strings"
	"testing"

	"weir/test/vm/guest/rig"
)

// plays is the name server on loopback, for which every name leads to one address. It says what it hears.
const plays = `
import socket, sys, threading
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("127.0.0.1", 53))
t = socket.create_server(("127.0.0.1", 53))

def answer(q):
    end = q.index(0, 12) + 5
    return q[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + q[12:end] + b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(sys.argv[1])

def datagrams():
    while True:
        q, who = u.recvfrom(2048)
        print("heard", q[12:], flush=True)
        try:
            u.sendto(answer(q), who)
        except OSError as e:
            print("refused", e, flush=True)

def streams():
    while True:
        s = t.accept()[0]
        q = s.recv(2048)
        print("heard", q[14:], flush=True)
        a = answer(q[2:])
        s.sendall(len(a).to_bytes(2, "big") + a)

for f in (datagrams, streams):
    threading.Thread(target=f, daemon=True).start()
print("plays", flush=True)
sys.stdin.readline()
`

// played: where the machine's own name server is on loopback and does not run, a tainted container answers in its place. What it says is not
// believed, nor opens anything (B24, B26).
func (f *fixture) played(t *testing.T) {
	if err := os.WriteFile("/run/resolv.loopback", []byte("nameserver 127.0.0.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rig.Must(t, "mount --bind /run/resolv.loopback /etc/resolv.conf")
	defer rig.Must(t, "umount /etc/resolv.conf")
	s := f.guard(t, "--taint", "corruption")
	for _, test := range []struct {
		by       *rig.Session
		name, to string
		believed bool
	}{{rig.Bare(t, "plays"), "believed.allowed.example", "203.0.113.98", true}, {s, "played.allowed.example", forgedTo, false}} {
		p := test.by.Start(t, "python3", "-c", plays, test.to)
		if p.WaitLine("plays", rig.Late) == "" {
			t.Fatal(p.Wait(t))
		}
		asked := s.Run(t, "python3", "-c", overTCP, server, test.name) // it is led to the sensor's resolver
		p.Input(t, "\n")
		played := p.Wait(t)
		if !strings.Contains(played.Stdout, "heard") {
			t.Errorf("it is not asked: %s: %s", asked, played)
		}
		if got := strings.Contains(asked.Stdout, test.to) || f.leased(t, test.to) != 0; got != test.believed {
			t.Errorf("it is believed: %v, want %v: %s: %s", got, test.believed, asked, played)
		}
	}
}
