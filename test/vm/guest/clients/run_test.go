//go:build vmguest

package clients

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

// ownLimit is longer than the limits that some clients bring along.
const ownLimit = 11 * time.Second

// run takes one client through all that can happen to it, side by side, each time with a place of its own.
func (f *fixture) run(t *testing.T, c client) {
	var r row
	t.Run("ways", func(t *testing.T) {
		for _, way := range []struct {
			name string
			run  func(*fixture, *testing.T, client, place, *row)
		}{
			{"approved", (*fixture).approved}, {"denied", (*fixture).denied},
			{"unanswered", (*fixture).unanswered}, {"late", (*fixture).late},
		} {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				if c.heavy {
					f.heavy <- struct{}{}
					defer func() { <-f.heavy }()
				}
				way.run(f, t, c, c.place(t, f), &r)
			})
		}
	})
	f.put(c.name, r)
}

func (c client) start(t *testing.T, p place) *rig.Proc {
	t.Helper()
	proc := p.f.session.StartEnv(t, []string{"HOME=/root", "SSL_CERT_FILE=" + caFile, "NODE_EXTRA_CA_CERTS=" + caFile}, c.argv(p)...)
	proc.Close(t)
	return proc
}

// asked waits for the first question, and shows that nothing has left.
func (p place) asked(t *testing.T, proc *rig.Proc) gate.Question {
	t.Helper()
	qs, _ := p.f.desk.wait(proc, late, p.asks)
	if len(qs) == 0 {
		p.stuck(t, proc, "nobody asks")
	}
	p.nothing(t)
	return qs[0]
}

// stuck ends t, and says what became of the command.
func (p place) stuck(t *testing.T, proc *rig.Proc, what string) {
	t.Helper()
	r, ended := proc.WaitFor(0)
	if !ended {
		t.Log(rig.Must(t, "ps -eo pid,ppid,stat,wchan:24,args --sort pid | tail -n +60"))
		proc.Signal(t, syscall.SIGKILL)
	}
	t.Fatalf("%s; ended %v: %s", what, ended, r)
}

// answer answers every question of a command alike, until it ends. With again set, a question about the same destination is a mistake,
// but for one of a program that the command runs once more after that.
func (p place) answer(t *testing.T, proc *rig.Proc, allow bool, again *gate.Question) rig.Result {
	t.Helper()
	for {
		qs, ended := p.f.desk.wait(proc, late, func(q gate.Question) bool { return p.asks(q) && !p.answered[q.ID] })
		if !ended && len(qs) == 0 {
			p.stuck(t, proc, "asks nothing more")
		}
		for _, q := range qs {
			p.answered[q.ID] = true
			if again != nil && !p.came() && q.Destination == again.Destination && strings.Join(q.Process.Argv, " ") == strings.Join(again.Process.Argv, " ") {
				t.Errorf("asked again: %+v", q)
			}
			if allow {
				p.f.sensor.Approve(t, q.ID)
			} else {
				p.f.sensor.Deny(t, q.ID)
			}
		}
		if ended {
			return proc.Wait(t)
		}
	}
}

// went fails t unless a client did all that it should.
func (c client) went(t *testing.T, p place, r rig.Result) {
	t.Helper()
	if r.Exit != 0 || !strings.Contains(r.Stdout, c.want) {
		t.Errorf("want exit 0 and %q, got %s", c.want, r)
	}
	p.arrived(t)
}

// approved: it does not notice. It is held, unless the daemon could not beat meanwhile.
func (f *fixture) approved(t *testing.T, c client, p place, r *row) {
	begun := time.Now()
	proc := c.start(t, p)
	q := p.asked(t, proc)
	if !q.Held && f.beats.since(begun) {
		t.Logf("refused while the daemon did not beat: once more")
		p.answer(t, proc, false, nil)
		begun, p = time.Now(), c.place(t, f)
		proc = c.start(t, p)
		q = p.asked(t, proc)
	}
	if !q.Held {
		t.Errorf("it is not held; a beat was missed: %v", f.beats.since(begun))
	}
	r.Call = "held"
	if c.limited {
		time.Sleep(ownLimit)
		r.Approved = "in its time: goes on; later: " + ended(p.answer(t, proc, true, nil))
		time.Sleep(time.Second) // the sensor has to see that it is over
		p.again(t, c, q)
		return
	}
	got := p.answer(t, proc, true, nil)
	c.went(t, p, got)
	r.Approved = "goes on"
}

// again: the approval is there for the next try, and for that one only.
func (p place) again(t *testing.T, c client, q gate.Question) {
	t.Helper()
	c.went(t, p, p.answer(t, c.start(t, p), true, &q))
	if !c.once {
		return
	}
	proc := c.start(t, p)
	next, _ := p.f.desk.wait(proc, late, func(n gate.Question) bool { return p.asks(n) && !p.answered[n.ID] })
	if len(next) == 0 {
		r := proc.Wait(t)
		t.Fatalf("an approval served twice: %s", r)
	}
	p.answer(t, proc, false, nil)
}

func (f *fixture) denied(t *testing.T, c client, p place, r *row) {
	proc := c.start(t, p)
	p.asked(t, proc)
	got := p.answer(t, proc, false, nil)
	if got.Exit == 0 {
		t.Errorf("denied, but it says that all is well: %s", got)
	}
	p.nothing(t)
	r.Denied = ended(got)
}

func (f *fixture) unanswered(t *testing.T, c client, p place, r *row) {
	proc := c.start(t, p)
	q := p.asked(t, proc)
	got, ok := proc.WaitFor(late)
	if !ok || got.Exit == 0 {
		t.Errorf("nobody answered: want it to fail, got %v %s", ok, got)
	}
	if took := time.Since(q.Asked); q.Held && took < askSeconds*time.Second {
		t.Errorf("refused %v after the question, before its time was over", took)
		for _, e := range f.sensor.Events(t) {
			if e.Question == q.ID || e.Kind == event.Error || e.Kind == event.Mode {
				t.Logf("%v %s %s %+v", e.Time, e.Kind, e.Message, e.Verdict)
			}
		}
	}
	p.nothing(t)
	r.Unanswered = ended(got)
}

// late: the client is gone when the approval comes; the next one takes it up.
func (f *fixture) late(t *testing.T, c client, p place, r *row) {
	proc := c.start(t, p)
	q := p.asked(t, proc)
	proc.Signal(t, syscall.SIGKILL)
	_ = exec.Command("pkill", "-KILL", "-f", p.text).Run() // what it started elsewhere, if anything (su, tmux)
	proc.Wait(t)
	p.answered[q.ID] = true
	f.sensor.Approve(t, q.ID)
	p.nothing(t)
	p.again(t, c, q)
	r.Late = "goes on"
}
