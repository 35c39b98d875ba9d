//go:build vmguest

package session

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

func itoa(n int) string { return strconv.Itoa(n) }

// outlives: what an approved command leaves running has no grant, whoever asks (B36, B37).
func (f *fixture) outlives(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	survivor, now := "survivor."+to.Text, filepath.Join(t.TempDir(), "now")
	later := "while ! [ -e " + now + " ]; do sleep 0.1; done; exec egress daemon -n 2 -to " + to.To + " -say " + survivor
	p := s.Start(t, "bash", "-c", strings.Join(to.Egress("tcp"), " ")+" && (setsid sh -c '"+later+"' </dev/null >/dev/null 2>&1 &)")
	first := to.asked(t)
	f.sensor.Approve(t, first.ID)
	succeeded(t, p, "ok")
	to.Arrived(t)
	f.ended(t, s)
	signal(t, now)
	next := to.again(t, first) // nobody is held for it: its parent is gone
	f.sensor.Deny(t, next.ID)
	time.Sleep(time.Second)
	f.world.Flush(t)
	if f.world.Got(survivor) {
		t.Error("what outlived the command used its grant")
	}
}

// ended waits until the one grant of a session is.
func (f *fixture) ended(t *testing.T, s *rig.Session) {
	t.Helper()
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Grant && e.Container.Name == s.Name && e.Grant.State == "ended"
	})
}

// signal makes the file that something left running waits for.
func signal(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// orphans: what a command leaves running has no grant after a restart either, when the command ended while there was no daemon (B36, B37).
func (f *fixture) orphans(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	survivor, now, there := "survivor."+to.Text, filepath.Join(t.TempDir(), "now"), filepath.Join(t.TempDir(), "there")
	later := "touch " + there + "; while ! [ -e " + now + " ]; do sleep 0.1; done; exec egress tcp -to " + to.To + " -say " + survivor
	p := s.Start(t, "bash", "-c", strings.Join(to.Egress("tcp"), " ")+" && (setsid sh -c '"+later+"' </dev/null >/dev/null 2>&1 &) && sleep 1000")
	first := to.asked(t)
	f.sensor.Approve(t, first.ID)
	to.Arrived(t)
	rig.Eventually(t, "the command has left something running", exists(there))
	f.sensor.Kill(t)
	p.Signal(t, syscall.SIGKILL)
	p.Wait(t)
	f.sensor.Restart(t)
	signal(t, now)
	next := to.again(t, first)
	f.sensor.Deny(t, next.ID)
	f.world.Flush(t)
	if f.world.Got(survivor) {
		t.Error("what outlived the command used its grant")
	}
}

func exists(file string) func() bool {
	return func() bool {
		_, err := os.Stat(file)
		return err == nil
	}
}

// leaves connects, sends the text, makes cgroups below its own, and says where.
const leaves = `
import os, socket, sys
host, port, text = sys.argv[1:]
socket.create_connection((host, int(port))).sendall(text.encode())
own = "/sys/fs/cgroup" + open("/proc/self/cgroup").read().strip()[3:]
os.makedirs(own + "/left/deeper")
print("in", own)
`

// leavesCgroup: cgroups that an approved command made below its grant's go with that, and the sensor goes on (B37).
func (f *fixture) leavesCgroup(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	p := s.Start(t, "python3", "-c", leaves, rig.World4, itoa(to.Port), to.Text)
	f.sensor.Approve(t, to.asked(t).ID)
	succeeded(t, p, "/weir-grant-")
	own := strings.TrimPrefix(p.WaitLine("in ", rig.Late), "in ")
	rig.Eventually(t, own+" is gone", func() bool {
		_, err := os.Stat(own)
		return os.IsNotExist(err)
	})
	other := f.raw(t)
	p = s.Start(t, other.Egress("tcp")...)
	f.sensor.Deny(t, other.asked(t).ID)
	refused(t, p)
}

// holdOn connects, sends the text, and leaves a grandchild that sends another one, again and again, once it finds a file, and makes one when
// it has.
const holdOn = `
import os, socket, sys, time
host, port, text, later, now, done = sys.argv[1:]
s = socket.create_connection((host, int(port)))
s.sendall(text.encode())
print("sent", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(0); os.close(1); os.close(2)
        while not os.path.exists(now):
            time.sleep(0.1)
        for i in range(20):
            try:
                s.sendall(later.encode())
            except OSError:
                pass
            time.sleep(0.1)
        open(done, "w").close()
    os._exit(0)
os.wait()
`

// socketOutlives: nor does a socket that it opened (B37, B44).
func (f *fixture) socketOutlives(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	survivor, now, done := "survivor."+to.Text, filepath.Join(t.TempDir(), "now"), filepath.Join(t.TempDir(), "done")
	p := s.Start(t, "python3", "-c", holdOn, rig.World4, itoa(to.Port), to.Text, survivor, now, done)
	to.approve(t, p, "sent")
	succeeded(t, p, "sent")
	to.Arrived(t)
	f.ended(t, s)
	signal(t, now)
	rig.Eventually(t, "the survivor has sent", exists(done))
	f.world.Flush(t)
	if f.world.Got(survivor) {
		t.Error("a socket outlived its grant")
	}
}

// closes connects, and leaves a grandchild that has the socket, says so, and tells in a file when the kernel has closed it.
const closes = `
import os, select, socket, sys
host, port, text, done = sys.argv[1:]
s = socket.create_connection((host, int(port)))
s.sendall(text.encode())
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(0); os.close(1); os.close(2)
        p = select.poll()
        p.register(s, select.POLLIN)
        while not any(e & (select.POLLERR | select.POLLHUP) for _, e in p.poll()):
            pass
        open(done, "w").close()
    os._exit(0)
os.wait()
print("sent", flush=True)
os._exit(0)
`

// socketCloses: a grant's sockets end with it, whoever has them open (B66).
func (f *fixture) socketCloses(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	done := filepath.Join(t.TempDir(), "done")
	p := s.Start(t, "python3", "-c", closes, rig.World4, itoa(to.Port), to.Text, done)
	to.approve(t, p, "sent")
	succeeded(t, p, "sent")
	to.Arrived(t)
	rig.Eventually(t, "the socket is closed", exists(done))
}

// handed: a granted command gives its socket to one that has no grant (B44).
func (f *fixture) handed(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	path := "/run/" + to.Text
	taker := s.Start(t, to.Egress("take -listen -path "+path)...)
	if taker.WaitLine("listening", rig.Late) == "" {
		t.Fatal("the taker does not listen")
	}
	giver := s.Start(t, "egress", "pass", "-to", to.To, "-path", path, "-wait", "open")
	to.approve(t, giver, "opened")
	giver.Input(t, "\n")
	r := taker.Wait(t)
	if r.Exit != 3 {
		t.Errorf("a socket that was handed on could be used: %s", r)
	}
	giver.Wait(t)
	f.world.Flush(t)
	if f.world.Got(to.Text) {
		t.Error("it arrived")
	}
}

// movesOut: who leaves its cgroup is killed before it sends (B28).
func (f *fixture) movesOut(t *testing.T) {
	for _, bits := range [][]string{{"secret"}, nil} {
		to, s := f.raw(t), f.guard(t, bits...)
		p := s.Start(t, to.Egress("move -cgroup /sys/fs/cgroup")...)
		if r := p.Wait(t); r.Exit != 128+int(syscall.SIGKILL) {
			t.Errorf("taint %v: want it killed, got %s", bits, r)
		}
		f.sensor.Event(t, func(e event.Event) bool {
			return e.Kind == event.Escape && e.Container != nil && e.Container.Name == s.Name && strings.Contains(e.Message, "left its container")
		})
		to.Nothing(t)
	}
}

// movesIntoGrant: nobody enters a grant by himself; it ends for all (B37).
func (f *fixture) movesIntoGrant(t *testing.T) {
	to, s := f.raw(t), f.guard(t, "secret")
	granted := s.Start(t, to.Egress("tcp -wait connect")...)
	q := to.asked(t)
	f.sensor.Approve(t, q.ID)
	if granted.WaitLine("opened", rig.Late) == "" {
		t.Fatal("the approved command did not connect")
	}
	dir := ""
	for _, c := range f.sensor.Containers(t) {
		if c.Name == s.Name && len(c.Grants) == 1 {
			dir = c.Grants[0].Cgroup
		}
	}
	if dir == "" {
		t.Fatalf("no grant in %+v", f.sensor.Containers(t))
	}
	intruder := to
	intruder.Text = "intruder." + to.Text
	p := s.Start(t, intruder.Egress("move -cgroup "+filepath.Join("/sys/fs/cgroup", dir))...)
	next := to.again(t, q)
	mark := f.world.Mark(t)
	granted.Input(t, "\n")
	if r := granted.Wait(t); r.Exit != 3 {
		t.Errorf("the grant that was entered still serves: %s", r)
	}
	f.sensor.Deny(t, next.ID)
	refused(t, p)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Error && e.Container != nil && e.Container.Name == s.Name && strings.Contains(e.Message, "grant revoked")
	})
	f.world.Nothing(t, mark, to.Text, to.Port)
}

// controlSocket: no guarded process gives orders, root or not, tainted or not (B27, G17).
func (f *fixture) controlSocket(t *testing.T) {
	s := f.guard(t)
	script := `
import errno, os, socket
assert os.getuid() == 0
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("/run/weir/control.sock")
    print("connected")
except OSError as e:
    print(errno.errorcode[e.errno])`
	for _, bits := range [][]string{nil, {"secret"}} {
		if bits != nil {
			f.sensor.Taint(t, s.Name, bits...)
		}
		if r := s.Run(t, "python3", "-c", script); r.Exit != 0 || strings.TrimSpace(r.Stdout) != "EPERM" {
			t.Errorf("taint %v: connect to the control socket: want EPERM, got %s", bits, r)
		}
		for _, order := range [][]string{{"status"}, {"untaint", s.Name, "secret", "--why", "free me"}} {
			if r := s.Run(t, append([]string{"weir"}, order...)...); r.Exit == 0 {
				t.Errorf("taint %v: weir %v worked from inside: %s", bits, order, r)
			}
		}
	}
}

// ancestor: taint above a session is the session's, and goes only with it (G3).
func (f *fixture) ancestor(t *testing.T) {
	to, s := f.web(t), f.guard(t)
	f.sensor.Must(t, "taint", "/weir", "corruption", "--why", "the whole pod")
	p := s.Start(t, to.Curl()...)
	q := to.asked(t)
	if len(q.Container.Taint) != 1 || q.Container.Taint[0] != "corruption" {
		t.Errorf("the question does not tell the ancestor's taint: %+v", q.Container)
	}
	to.Nothing(t)
	f.sensor.Must(t, "untaint", "/weir", "corruption", "--why", "the test goes on")
	succeeded(t, p, "answer")
	to.Arrived(t)
	if open := f.sensor.Pending(t); len(open) > 0 {
		f.sensor.Deny(t, open[0].ID) // it stays until its time is over: the same command may still claim it
	}
}

// cleanBelow: a clean entry below a tainted one opens nothing; a tainted one below a clean one taints what is in it (B53, G3).
func (f *fixture) cleanBelow(t *testing.T) {
	s := f.guard(t)
	nested := filepath.Join(s.Cgroup, "nested")
	rig.Must(t, "mkdir "+nested)
	path := strings.TrimPrefix(nested, "/sys/fs/cgroup")
	f.sensor.Must(t, "taint", path, "secret")
	down := f.raw(t)
	p := s.Start(t, down.Egress("move -cgroup "+nested)...)
	f.sensor.Deny(t, down.asked(t).ID)
	refused(t, p)
	down.Nothing(t)
	up := f.raw(t)
	succeeded(t, s.Start(t, up.Egress("tcp")...), "ok") // beside it, nothing is tainted

	f.sensor.Taint(t, s.Name, "corruption")
	f.sensor.Must(t, "untaint", path, "secret", "--why", "a clean entry is left")
	for _, words := range []string{"move -cgroup " + nested, "move -then udp-sendto -cgroup " + nested, "nest -n 3"} {
		to := f.raw(t)
		p := s.Start(t, to.Egress(words)...)
		f.sensor.Deny(t, to.asked(t).ID)
		refused(t, p)
		to.Nothing(t)
	}
}

// modes: seal denies the untainted as well; observe denies nothing, and says what it would have denied.
func (f *fixture) modes(t *testing.T) {
	clean, tainted := f.guard(t), f.guard(t, "secret")
	var sealed []target
	mode := func(m string) { f.sensor.Must(t, "mode", m, "--why", "test") }
	mode("seal")
	defer mode("enforce")
	for _, s := range []*rig.Session{clean, tainted} {
		for _, words := range []string{"tcp", "udp-sendto"} {
			to := f.raw(t)
			refused(t, s.Start(t, to.Egress(words)...))
			to.Nothing(t)
			sealed = append(sealed, to)
		}
	}
	for _, q := range f.sensor.Pending(t) { // others may be left
		if slices.ContainsFunc(sealed, func(to target) bool { return to.About(q) }) {
			t.Errorf("asked while sealed: %+v", q)
		}
	}
	mode("observe")
	to := f.raw(t)
	succeeded(t, tainted.Start(t, to.Egress("tcp")...), "ok")
	to.Arrived(t)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Connect && e.Destination != nil && int(e.Destination.Port) == to.Port && e.Verdict != nil &&
			e.Verdict.Decision == "allow" && strings.HasPrefix(e.Verdict.Reason, string(gate.Observe))
	})
	mode("enforce")
	to = f.raw(t)
	p := tainted.Start(t, to.Egress("tcp")...)
	f.sensor.Deny(t, to.asked(t).ID)
	refused(t, p)
	to.Nothing(t)
}

// modesOfPolicy: what a process was refused while the policy sealed, it is asked about when the policy's file enforces again. Once weir mode has
// said a mode, that of the file is none.
func (f *fixture) modesOfPolicy(t *testing.T) {
	s, to := f.guard(t, "secret"), f.raw(t)
	f.sensor.Policy(t, "mode: seal\n")
	defer f.sensor.Policy(t, "")
	p := s.Start(t, "python3", "-c", rig.Tries, rig.World4, itoa(to.Port), to.Text)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Connect && e.Destination != nil && int(e.Destination.Port) == to.Port && e.Verdict.Decision == "deny"
	})
	f.sensor.Policy(t, "")
	f.sensor.Approve(t, to.asked(t).ID)
	succeeded(t, p, "sent")
	to.Arrived(t)
}
