//go:build vmguest

package rig

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Attempt is one way out. Words in braces in Argv are replaced, see Env.
type Attempt struct {
	ID   string // of the catalogue of ways out: B10
	Name string
	Argv []string

	Modules []string // kernel modules that it needs
	Network string   // what World listens with; empty: TCP and UDP

	// Opens: it prints "opened" when it has what it needs, then waits for a line. Whatever should stop it is told then.
	Opens bool

	// Clean: a guarded session may not open it even while it is clean, since nothing could take it back.
	Clean bool

	// Creates: it only opens something that must not be had; nothing is sent.
	Creates bool

	// Indirect: its packets come from a process outside, which sends them anyhow; what counts is their text.
	Indirect bool

	// Quiet: where it is stopped, no step of it fails.
	Quiet bool

	Prepare func(t testing.TB, e *Env)           // before it starts
	Started func(t testing.TB, e *Env, p *Proc)  // once it runs
	Resume  func(t testing.TB, e *Env)           // after it opened and was told on
	Ended   func(t testing.TB, e *Env, r Result) // after its end
}

// Env is one run of an attempt.
type Env struct {
	Outside *Outside
	Session *Session
	Text    string // what it tries to send; found nowhere else
	Port    int    // nobody else's
	Words   map[string]string
	Helpers []*Proc // what Prepare started outside
}

// Outcome is what can be said without asking the receiver.
type Outcome struct {
	Env
	Result
	Mark Marks // when it was told on: whatever arrives later counts
}

// Title is what a subtest is called.
func (a Attempt) Title() string { return a.ID + "/" + a.Name }

// Try makes the attempt in a session. between is called when the attempt has opened what it opens, else before it starts: what
// should stop it begins there.
func (a Attempt) Try(t testing.TB, o *Outside, s *Session, between func()) Outcome {
	t.Helper()
	for _, m := range a.Modules {
		if b, err := exec.Command("modprobe", m).CombinedOutput(); err != nil {
			t.Fatalf("modprobe %s: %v: %s", m, err, b)
		}
	}
	e := a.env(t, o, s)
	if a.Prepare != nil {
		a.Prepare(t, e)
	}
	out := Outcome{Env: *e}
	tell := func() {
		if between != nil {
			between()
		}
		out.Mark = o.Mark(t)
	}
	if !a.Opens {
		tell()
	}
	argv := make([]string, len(a.Argv))
	for i, w := range a.Argv {
		for k, v := range e.Words {
			w = strings.ReplaceAll(w, "{"+k+"}", v)
		}
		argv[i] = w
	}
	p := s.Start(t, argv...)
	if a.Started != nil {
		a.Started(t, e, p)
	}
	if a.Opens {
		opened := p.WaitLine("opened", 2*Late)
		tell()
		if opened != "" {
			if a.Resume != nil {
				a.Resume(t, e)
			}
			p.Input(t, "\n")
		}
	} else {
		p.Close(t)
	}
	out.Result = p.Wait(t)
	if a.Ended != nil {
		a.Ended(t, e, out.Result)
	}
	for _, h := range e.Helpers {
		h.Signal(t, 9)
	}
	return out
}

// untilArrived ends a command that goes on after it has sent its text, for an answer that does not come or for the kernel to speak.
func untilArrived(t testing.TB, e *Env, p *Proc) {
	t.Helper()
	Eventually(t, "the text arrives, or the command ends", func() bool {
		_, ended := p.WaitFor(0)
		return ended || e.Outside.Got(e.Text)
	})
	p.Signal(t, syscall.SIGKILL)
}

func (a Attempt) env(t testing.TB, o *Outside, s *Session) *Env {
	port := o.Port()
	e := &Env{Outside: o, Session: s, Port: port, Text: fmt.Sprintf("%s.%s.%d.end", strings.ToLower(a.ID), a.Name, port)}
	at := fmt.Sprintf("[::]:%d", port)
	switch a.Network {
	case "":
		o.World.Listen(t, "tcp", at)
		o.World.Listen(t, "udp", at)
	case "none":
	default:
		o.World.Listen(t, a.Network, at)
	}
	p := strconv.Itoa(port)
	e.Words = map[string]string{
		"say": e.Text, "port": p, "dev": Dev, "mac": o.MAC,
		"world": World4, "to": World4 + ":" + p, "to6": "[" + World6 + "]:" + p, "mapped": "[::ffff:" + World4 + "]:" + p,
		"link": "[" + o.Link + "]:" + p, "own": Own + ":" + p, "own6": "[" + Own6 + "]:" + p,
		"socket": "/run/" + e.Text, "cgroup": s.Cgroup, "path": os.Getenv("PATH"),
	}
	return e
}

// Helper starts a command outside, which lives as long as the attempt.
func (e *Env) Helper(t testing.TB, argv ...string) *Proc {
	p := e.Outside.Agent.Start(t, argv...)
	e.Helpers = append(e.Helpers, p)
	return p
}

// say waits for a line of a helper and puts its words, but for the first, in place of names.
func (e *Env) words(t testing.TB, p *Proc, prefix string, names ...string) {
	t.Helper()
	fields := strings.Fields(p.WaitLine(prefix, Late))
	if len(fields) != len(names)+1 {
		r, _ := p.WaitFor(time.Second)
		t.Fatalf("%v: want %s and %d words, got %q: %s", p.argv, prefix, len(names), fields, r)
	}
	for i, n := range names {
		e.Words[n] = fields[i+1]
	}
}

// Arrived fails t unless the attempt got its text out, or, if it only creates something, went through.
func (a Attempt) Arrived(t testing.TB, out Outcome) {
	t.Helper()
	if a.Creates {
		if out.Exit != 0 {
			t.Errorf("%s", out.Result)
		}
		return
	}
	if !out.Outside.WaitGot(out.Text, Late) {
		t.Errorf("nothing arrived: %s", out.Result)
		for _, x := range out.Outside.World.since(out.Mark.world) {
			t.Logf("instead: %+v", x)
		}
	}
}

// Stopped fails t if anything of the attempt arrived.
func (a Attempt) Stopped(t testing.TB, out Outcome) {
	t.Helper()
	if a.Creates {
		return
	}
	port := out.Port
	if a.Indirect {
		port = 0
	}
	out.Outside.Nothing(t, out.Mark, out.Text, port)
}
