//go:build vmguest

package failure

import (
	"os"
	"strings"
	"testing"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// load lets a session connect to an allowed destination again and again until stop is called, which says how often it could, and
// how often it was refused.
func (f *fixture) load(t *testing.T, to target) (stop func() (passed, refused int)) {
	t.Helper()
	p := f.session.Start(t, "python3", "-uc", `
import socket, sys, threading
host, port, text = sys.argv[1:]
end = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), end.set())).start()
passed = refused = 0
while not end.wait(0.01):
    try:
        s = socket.create_connection((host, int(port)))
        s.sendall(text.encode())
        s.close()
        passed += 1
    except PermissionError:
        refused += 1
    if passed + refused == 1:
        print("begun")
print("result", passed, refused)
`, rig.World4, itoa(to.Port), to.Text)
	if p.WaitLine("begun", rig.Late) == "" {
		t.Fatalf("load: %v", p.Wait(t))
	}
	return func() (int, int) {
		p.Close(t)
		words := strings.Fields(p.WaitLine("result", rig.Late))
		if len(words) != 3 {
			t.Fatalf("load: %v", p.Wait(t))
		}
		return atoi(words[1]), atoi(words[2])
	}
}

func atoi(s string) (n int) {
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

func allow(to target) string {
	return policy + "allow:\n  - prefix: " + rig.World4 + "/32\n    protocol: tcp\n    ports: [" + itoa(to.Port) + "]\n"
}

// write puts a policy in place of the file, as editors do: in one step.
func write(t *testing.T, text string) {
	t.Helper()
	fresh := file + "~"
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, file); err != nil {
		t.Fatal(err)
	}
}

func whole(text string) string {
	return "version: 1\nevents:\n  file: " + logDir + "/rig-events.jsonl\ncop:\n  reviewer: none\n" + text
}

// loaded waits until the policy has been loaded once more after what was done.
func (f *fixture) loaded(t *testing.T, do func()) {
	t.Helper()
	n := len(f.sensor.Events(t, event.Mode))
	do()
	rig.Eventually(t, "loaded", func() bool { return len(f.sensor.Events(t, event.Mode)) > n })
}

// policy: it is loaded again when its file is replaced, and on SIGHUP, in one step: what stays allowed is never refused, what
// was never allowed is never open.
func (f *fixture) policy(t *testing.T) {
	to := f.target(t)
	f.loaded(t, func() { write(t, whole(allow(to))) })
	stop := f.load(t, to)
	defer f.loaded(t, func() { write(t, whole(policy)) })
	for i := range 6 {
		text := allow(to) + strings.Repeat("  - prefix: 192.0.2."+itoa(i)+"/32\n", 1)
		if i%2 == 0 {
			f.loaded(t, func() { write(t, whole(text)) })
		} else {
			f.sensor.Policy(t, text)
		}
	}
	if passed, refused := stop(); passed == 0 || refused != 0 {
		t.Errorf("an allowed destination was reached %d times, and refused %d times", passed, refused)
	}
}
