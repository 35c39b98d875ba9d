//go:build vmguest

package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/test/vm/guest/rig"
)

// sends connects, sends the text, and then executes the rest of its arguments.
const sends = `
import os, socket, sys
host, port, text, *command = sys.argv[1:]
socket.create_connection((host, int(port))).sendall(text.encode())
os.execvp(command[0], command)`

// waiting is a command that waits to begin.
type waiting struct {
	f     *fixture
	s     *rig.Session
	shell *rig.Proc // its parent
	file  string    // that it makes
	q     gate.Question
}

// waitsToBegin: with review: exec a command waits through all that happens to its container and its grant, until it is answered (F05, G24, B37).
func (f *fixture) waitsToBegin(t *testing.T) {
	defer f.sensor.Policy(t, "")
	secret := filepath.Join(t.TempDir(), "secret")
	signal(t, secret)
	policy := "taint:\n  secret_files: [" + secret + "]\n"
	for _, test := range []struct {
		name      string
		policy    string
		granted   bool // it is executed by a process that was let out
		approve   bool // how it is answered in the end
		meanwhile func(*testing.T, waiting)
	}{
		{"tainted", "", false, false, func(t *testing.T, w waiting) { f.sensor.Taint(t, w.s.Name, "secret") }},
		{"parent_opens_a_secret", "", false, true, func(t *testing.T, w waiting) { w.shell.Input(t, "read x <"+secret+"\n") }},
		{"grant_expires", "grant: {seconds: 20}\n", true, false, func(t *testing.T, w waiting) { w.ends(t, "expired") }},
		{"grant_under_less_taint", "", true, true, func(t *testing.T, w waiting) { f.sensor.Taint(t, w.s.Name, "secret"); w.ends(t, "revoked") }},
		{"grant_entered", "", true, false, func(t *testing.T, w waiting) {
			w.shell.Input(t, "(echo $BASHPID >"+seat(t, w.q.Process.PID)+"/cgroup.procs) &\n")
			w.ends(t, "revoked")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.sensor.Policy(t, policy+test.policy)
			w := f.parent(t)
			command, to := w.makes(), f.raw(t)
			if test.granted {
				command = fmt.Sprintf("python3 -c '%s' %s %d %s %s", sends, rig.World4, to.Port, to.Text, command)
				w.runs(t, command)
				q := to.asked(t)
				f.sensor.Policy(t, policy+test.policy+"review: exec\n")
				f.sensor.Approve(t, q.ID)
				to.Arrived(t)
			} else {
				f.sensor.Policy(t, policy+test.policy+"review: exec\n")
				w.runs(t, command)
			}
			w.asked(t)
			if test.granted && w.over(t) != "" {
				t.Fatal("its grant was over before it waited: this tested nothing")
			}
			test.meanwhile(t, w)
			if !test.granted {
				w.tainted(t)
			}
			w.waits(t)
			w.answered(t, test.approve)
		})
	}
	for _, approve := range []bool{false, true} {
		t.Run(fmt.Sprintf("wider_scope_%t", approve), func(t *testing.T) {
			f.sensor.Policy(t, policy)
			w, to := f.parent(t), f.web(t)
			w.shell.Input(t, strings.Join(to.Curl(), " ")+" >/dev/null &\n")
			sibling := to.asked(t)
			f.sensor.Policy(t, policy+"review: exec\n")
			w.runs(t, w.makes())
			w.asked(t)
			f.sensor.Must(t, "approve", sibling.ID, "--scope", "2")
			to.Arrived(t)
			e := f.sensor.Event(t, func(e event.Event) bool { return e.Kind == event.Grant && e.Question == sibling.ID })
			if e.Grant.Scope != 2 {
				t.Errorf("the grant has scope %d, want 2", e.Grant.Scope)
			}
			w.waits(t)
			w.answered(t, approve)
		})
	}
}

// beginTwins: of two that wait to begin with the same command, one begins with an approval, and the other is asked about, not killed (G16).
func (f *fixture) beginTwins(t *testing.T) {
	defer f.sensor.Policy(t, "")
	w := f.parent(t)
	f.sensor.Policy(t, "review: exec\n")
	w.shell.Input(t, w.makes()+" & v=$!; "+w.makes()+" & w=$!\n")
	w.asked(t)
	rig.Eventually(t, "both ask", func() bool {
		return slices.ContainsFunc(f.sensor.Pending(t), func(q gate.Question) bool { return q.ID == w.q.ID && q.Askers == 2 })
	})
	f.sensor.Approve(t, w.q.ID)
	again := f.sensor.Asked(t, func(q gate.Question) bool { return q.ID != w.q.ID && slices.Contains(q.Process.Argv, w.file) })
	if again.Process.PID == w.q.Process.PID || !again.Held {
		t.Errorf("asked was %+v, and then %+v", w.q, again)
	}
	f.sensor.Approve(t, again.ID)
	w.shell.Input(t, "wait $v; a=$?; wait $w; echo over $a $?\n")
	if got := w.shell.WaitLine("over", rig.Late); got != "over 0 0" {
		t.Errorf("they ended with %q", got)
	}
}

// parent starts a shell that runs commands.
func (f *fixture) parent(t *testing.T) waiting {
	t.Helper()
	s := f.guard(t, "corruption")
	shell := s.Start(t, "bash")
	t.Cleanup(func() { shell.Signal(t, syscall.SIGKILL) })
	shell.Input(t, "echo begun\n") // before all that begins is asked about
	if shell.WaitLine("begun", rig.Late) == "" {
		t.Fatal("the shell did not begin")
	}
	return waiting{f: f, s: s, shell: shell, file: filepath.Join(t.TempDir(), "begun")}
}

// makes is the command.
func (w waiting) makes() string {
	return `python3 -c 'import sys; open(sys.argv[1], "w")' ` + w.file
}

// runs has the shell run the command, or one that executes it.
func (w waiting) runs(t *testing.T, command string) {
	t.Helper()
	w.shell.Input(t, command+" & w=$!\n")
}

// asked waits until the command waits to begin.
func (w *waiting) asked(t *testing.T) {
	t.Helper()
	w.q = w.f.sensor.Asked(t, func(q gate.Question) bool {
		return q.Destination == (event.Destination{}) && slices.Contains(q.Process.Argv, w.file)
	})
	if !w.q.Held {
		t.Errorf("not held: %+v", w.q)
	}
	w.waits(t)
}

// waits fails t unless the command goes on waiting, and is still asked about.
func (w waiting) waits(t *testing.T) {
	t.Helper()
	pid, begun, ended := w.q.Process.PID, exists(w.file), false
	defer func() {
		if t.Failed() {
			t.Log(rig.Must(t, fmt.Sprintf("weir events --text %s; grep . /proc/%d/{status,cgroup}; grep . $(find %s -path '*weir-grant-*' -name cgroup.events -o -path '*weir-grant-*' -name cgroup.freeze -o -path '*weir-grant-*' -name cgroup.procs); true", w.file, pid, w.s.Cgroup)))
		}
	}()
	rig.Eventually(t, "it is frozen, or begins, or ends", func() bool {
		st, err := linux.ReadStat(pid)
		ended = err != nil || st.State == 'Z'
		return ended || begun() || rig.Frozen(pid)
	})
	if ended || begun() {
		t.Fatalf("it began: %t, and ended: %t", begun(), ended)
	}
	rig.Held(t, pid)
	if begun() {
		t.Fatal("it began")
	}
	if !slices.ContainsFunc(w.f.sensor.Pending(t), func(q gate.Question) bool { return q.ID == w.q.ID }) {
		t.Error("it is not asked about any more")
	}
}

// tainted waits until the sensor has done all that it does when the container has more taint.
func (w waiting) tainted(t *testing.T) {
	t.Helper()
	w.f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Taint && e.Container.Name == w.s.Name && slices.Contains(e.Change.Set, "secret")
	})
}

// over is how the session's grant has ended, empty if it has not.
func (w waiting) over(t *testing.T) string {
	t.Helper()
	for _, e := range w.f.sensor.Events(t, event.Grant) {
		if e.Container.Name == w.s.Name && slices.Contains([]string{"expired", "revoked", "ended", "spent"}, e.Grant.State) {
			return e.Grant.State
		}
	}
	return ""
}

// ends waits until the session's grant has.
func (w waiting) ends(t *testing.T, state string) {
	t.Helper()
	rig.Eventually(t, "its grant is over", func() bool { return w.over(t) != "" })
	if got := w.over(t); got != state {
		t.Errorf("the grant has %s, want %s", got, state)
	}
}

// answered wants the command to begin when it is approved, and killed when it is denied.
func (w waiting) answered(t *testing.T, approve bool) {
	t.Helper()
	want := "over 137"
	if approve {
		want = "over 0"
		w.f.sensor.Approve(t, w.q.ID)
	} else {
		w.f.sensor.Deny(t, w.q.ID)
	}
	w.shell.Input(t, "wait $w; echo over $?\n")
	if got := w.shell.WaitLine("over", rig.Late); got != want {
		t.Errorf("approved %t: %q, want %q", approve, got, want)
	}
	if begun := exists(w.file)(); begun != approve {
		t.Errorf("approved %t: it began %t", approve, begun)
	}
}

// parts connects to two places, each in a thread of its own, and sends each its text.
const parts = `
import errno, socket, sys, threading
host, *places = sys.argv[1:]
def send(port, text):
    try:
        socket.create_connection((host, int(port))).sendall(text.encode())
        print("sent", text, flush=True)
    except OSError as e:
        print(errno.errorcode[e.errno], text, flush=True)
threads = [threading.Thread(target=send, args=place) for place in zip(places[::2], places[1::2])]
for t in threads:
    t.start()
for t in threads:
    t.join()
`

// threads: the answer to one thread is none to another of the same process, which is held again (F01, F05, G24).
func (f *fixture) threads(t *testing.T) {
	for _, approve := range []bool{false, true} {
		both := !approve
		t.Run(fmt.Sprintf("%t_then_%t", approve, both), func(t *testing.T) {
			p, places, asked := f.bothAsk(t)
			t.Cleanup(func() { p.Signal(t, syscall.SIGKILL) })
			answer := func(i int, allow bool) {
				if allow {
					f.sensor.Approve(t, asked[i].ID)
				} else {
					f.sensor.Deny(t, asked[i].ID)
				}
			}
			held := f.sensor.Counter(t, "held")
			answer(0, approve)
			rig.Eventually(t, "the second is held again", func() bool { return f.sensor.Counter(t, "held") > held })
			rig.Held(t, p.Pid())
			if again := places[1].asked(t); again.ID != asked[1].ID || !again.Held {
				t.Errorf("the question of the second was %s and is %+v", asked[1].ID, again)
			}
			places[1].Nothing(t)
			answer(1, both)
			for i, allow := range []bool{approve, both} {
				word := "EPERM "
				if allow {
					word = "sent "
					places[i].Arrived(t)
				}
				if p.WaitLine(word+places[i].Text, rig.Late) == "" {
					t.Errorf("thread %d, approved %t: %s", i, allow, p.Wait(t))
				}
				if !allow {
					places[i].Nothing(t)
				}
				places[i].once(t)
			}
		})
	}
}

// bothAsk starts it until both of its threads ask before it is frozen.
func (f *fixture) bothAsk(t *testing.T) (p *rig.Proc, places []target, asked []gate.Question) {
	t.Helper()
	for range 20 {
		s := f.guard(t, "secret")
		places, asked = []target{f.raw(t), f.raw(t)}, make([]gate.Question, 2)
		p = s.Start(t, "python3", "-c", parts, rig.World4, itoa(places[0].Port), places[0].Text, itoa(places[1].Port), places[1].Text)
		f.sensor.Asked(t, func(q gate.Question) bool { return places[0].About(q) || places[1].About(q) })
		rig.Held(t, p.Pid())
		for _, q := range f.sensor.Pending(t) {
			for i, to := range places {
				if to.About(q) {
					asked[i] = q
				}
			}
		}
		if asked[0].ID != "" && asked[1].ID != "" {
			return p, places, asked
		}
		p.Signal(t, syscall.SIGKILL)
	}
	t.Fatal("it is always frozen before its second thread asks")
	return nil, nil, nil
}

// twins connects to one place from two threads at the same time, and sends a text from each.
const twins = `
import errno, socket, sys, threading
host, port, text = sys.argv[1:]
both = threading.Barrier(2)
def send(n):
    both.wait()
    try:
        socket.create_connection((host, int(port))).sendall((text + n).encode())
        print("sent", n, flush=True)
    except OSError as e:
        print(errno.errorcode[e.errno], n, flush=True)
threads = [threading.Thread(target=send, args=n) for n in "12"]
for t in threads:
    t.start()
for t in threads:
    t.join()
`

// twins: two threads that ask for one place at once put one question, and whatever ends it lets both go on (F45). That nothing waits
// where its taint is cleared has been what went wrong: the end of what one thread asked took the other's along.
func (f *fixture) twins(t *testing.T) {
	for _, test := range []struct {
		name, says string
		answer     func(t *testing.T, s *rig.Session, q gate.Question)
	}{
		{"approved", "sent ", func(t *testing.T, _ *rig.Session, q gate.Question) { f.sensor.Approve(t, q.ID) }},
		{"denied", "EPERM ", func(t *testing.T, _ *rig.Session, q gate.Question) { f.sensor.Deny(t, q.ID) }},
		{"untainted", "sent ", func(t *testing.T, s *rig.Session, _ gate.Question) { f.sensor.Untaint(t, s.Name, "secret") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range rig.Rounds(5) {
				s, to := f.guard(t, "secret"), f.raw(t)
				p := s.Start(t, "python3", "-c", twins, rig.World4, itoa(to.Port), to.Text)
				q := to.asked(t)
				rig.Held(t, p.Pid())
				test.answer(t, s, q)
				for _, n := range []string{"1", "2"} {
					if p.WaitLine(test.says+n, rig.Late) == "" {
						t.Fatalf("thread %s does not say %q: %s", n, test.says, p.Wait(t))
					}
				}
				if test.says == "sent " {
					to.Arrived(t)
				} else {
					to.Nothing(t)
				}
				to.once(t)
				rig.Eventually(t, "its question has ended", func() bool {
					return !slices.ContainsFunc(f.sensor.Pending(t), func(q gate.Question) bool { return to.About(q) })
				})
			}
		})
	}
}
