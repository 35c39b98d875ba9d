//go:build vmguest

package failure

import (
	"os"
	"strings"
	"testing"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// loader connects again and again. For each line on its standard input, a number and how many tries, it says of so many tries that
// begin after that how many passed and how many were refused; at its end the same of all.
const loader = `
import queue, socket, sys, threading
host, port, text = sys.argv[1:]
orders = queue.Queue()
def read():
    for line in sys.stdin:
        orders.put(line.split())
    orders.put(None)
threading.Thread(target=read).start()
passed = refused = 0
def attempt():
    global passed, refused
    try:
        s = socket.create_connection((host, int(port)), 5)
        s.sendall(text.encode())
        s.close()
        passed += 1
    except PermissionError:
        refused += 1
    except TimeoutError: # its first packet left before it could, and was dropped
        pass
attempt()
print("begun")
while True:
    attempt()
    try:
        order = orders.get(timeout=0.02)
    except queue.Empty:
        continue
    if order is None:
        break
    before = passed, refused
    for _ in range(int(order[1])):
        attempt()
    print("order", order[0], passed - before[0], refused - before[1])
print("result", passed, refused)
`

// load is a command that connects to a place again and again. It is nice: the one processor, emulated, is to be left to who starts.
type load struct {
	p      *rig.Proc
	orders int
}

func (f *fixture) load(t *testing.T, to target) *load {
	t.Helper()
	l := &load{p: f.session.Start(t, "nice", "-n", "10", "python3", "-uc", loader, rig.World4, itoa(to.Port), to.Text)}
	if l.p.WaitLine("begun", rig.Late) == "" {
		t.Fatalf("load: %v", l.p.Wait(t))
	}
	return l
}

// enough is how many tries show whether a place is open.
const enough = 20

// next says how many of enough tries that begin now pass, and how many are refused.
func (l *load) next(t *testing.T) (passed, refused int) {
	t.Helper()
	l.orders++
	order := itoa(l.orders)
	l.p.Input(t, order+" "+itoa(enough)+"\n")
	return l.counts(t, "order "+order+" ")
}

// stop ends it, and says how many of its tries passed, and how many were refused.
func (l *load) stop(t *testing.T) (passed, refused int) {
	t.Helper()
	l.p.Close(t)
	return l.counts(t, "result ")
}

func (l *load) counts(t *testing.T, begin string) (passed, refused int) {
	t.Helper()
	words := strings.Fields(strings.TrimPrefix(l.p.WaitLine(begin, 3*rig.Late), begin))
	if len(words) != 2 {
		t.Fatalf("load: %v", l.p.Wait(t))
	}
	return atoi(words[0]), atoi(words[1])
}

// neverRefused stops it, and fails t unless it has always passed.
func (l *load) neverRefused(t *testing.T) {
	t.Helper()
	if passed, refused := l.stop(t); passed == 0 || refused != 0 {
		t.Errorf("an allowed destination was reached %d times, and refused %d times", passed, refused)
	}
}

// open fails t unless the place that the load connects to is open now.
func (l *load) open(t *testing.T, when string) {
	t.Helper()
	if passed, refused := l.next(t); passed != enough {
		t.Errorf("%s: of %d tries %d passed and %d were refused, all are to pass", when, enough, passed, refused)
	}
}

// shut fails t unless the place is shut now, for all: no connection begins, and those from before say nothing more.
func (l *load) shut(t *testing.T, to target, when string) {
	t.Helper()
	mark := to.f.world.Mark(t)
	if passed, refused := l.next(t); passed != 0 {
		t.Errorf("%s: of %d tries %d passed and %d were refused, none is to pass", when, enough, passed, refused)
	}
	to.f.world.Quiet(t, mark, to.Port)
}

func atoi(s string) (n int) {
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

// allow is a policy under which these are open.
func allow(open ...target) string {
	text := policy + "allow:\n"
	for _, to := range open {
		text += "  - prefix: " + rig.World4 + "/32\n    protocol: tcp\n    ports: [" + itoa(to.Port) + "]\n"
	}
	return text
}

// write puts a policy in place of the file, as editors do: in one step.
func write(t *testing.T, text string) {
	t.Helper()
	put(t, text).Close()
}

// put is write, but for that the file is open for writing still.
func put(t *testing.T, text string) *os.File {
	t.Helper()
	fresh, err := os.OpenFile(file+"~", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh.Name(), file); err != nil {
		t.Fatal(err)
	}
	return fresh
}

func whole(text string) string {
	return "version: 1\nevents:\n  file: " + logDir + "/rig-events.jsonl\ncop:\n  reviewer: none\n" + text
}

// loaded waits until the policy has been loaded once more after what was done.
func (f *fixture) loaded(t *testing.T, do func()) {
	t.Helper()
	count := func() (n int) {
		for _, e := range f.sensor.Events(t, event.Mode, event.Lost) {
			switch {
			case e.Kind == event.Mode && strings.HasPrefix(e.Message, "policy loaded"):
				n++
			case e.Kind == event.Lost && e.Loss.What == string(event.Mode):
				n += int(e.Loss.Count) // the log did not take it in time: the disk is slow when the machine is
			}
		}
		return n
	}
	n := count()
	do()
	rig.Eventually(t, "loaded", func() bool { return count() > n })
}

// policy: it is loaded again when its file is replaced, and on SIGHUP, in one step: what stays allowed is never refused, and what
// is allowed by some versions is open exactly while one of these is in force.
func (f *fixture) policy(t *testing.T) {
	to, turns := f.target(t), f.target(t)
	nobody := "approver: none\n" // what is not open is refused at once
	f.loaded(t, func() { write(t, whole(nobody+allow(to))) })
	defer f.loaded(t, func() { write(t, whole(policy)) })
	lasting, turn := f.load(t, to), f.load(t, turns)
	turn.shut(t, turns, "not allowed so far")
	for i := range 8 {
		text := whole(nobody + allow(to))
		if i%2 == 0 {
			text = whole(nobody + allow(turns, to))
		}
		if i%4 < 2 {
			f.loaded(t, func() { write(t, text) })
		} else {
			open := put(t, text) // the watcher of files leaves it alone: it is loaded once
			f.loaded(t, func() { f.sensor.Hangup(t) })
			open.Close()
		}
		if i%2 == 0 {
			turn.open(t, "version "+itoa(i)+" is in force")
		} else {
			turn.shut(t, turns, "version "+itoa(i)+" is in force")
		}
	}
	f.loaded(t, func() { f.sensor.Hangup(t) }) // no watcher of files has anything to see here
	turn.shut(t, turns, "the same version is loaded again")
	if passed, _ := turn.stop(t); passed < 4*enough {
		t.Errorf("what is allowed in turn was reached %d times", passed)
	}
	lasting.neverRefused(t)
}
