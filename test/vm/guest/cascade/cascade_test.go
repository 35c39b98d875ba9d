//go:build vmguest

// Package cascade follows commands through the whole cascade: seen, classified, reviewed, granted, and arrived or not.
package cascade

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"

	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

type fixture struct {
	world  *rig.Outside
	sensor *rig.Sensor
	model  *model
}

// flagged is a word that the model of the test does not like; garbled and hanging make it fail.
const (
	flagged = "flag-me"
	garbled = "garble-me"
	hanging = "hang-me"
)

func TestCascade(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t), model: startModel(t)}
	f.sensor = rig.StartSensor(t, f.model.policy())
	for _, test := range []struct {
		name string
		run  func(*fixture, *testing.T)
	}{
		{"G7_one_bit_network", (*fixture).oneNetwork},
		{"G8_one_bit_grey", (*fixture).oneGrey},
		{"G7_both_bits_network", (*fixture).bothNetwork},
		{"G8_both_bits_grey", (*fixture).bothGrey},
		{"G24_local_opens_nothing", (*fixture).local},
		{"G9_reviewer_fails", (*fixture).fails},
		{"G24_another_destination_is_judged_again", (*fixture).another},
		{"G25_review_at_exec", (*fixture).atExec},
		{"B39_B49_budget", (*fixture).budget},
		{"G13_embedded_reviewer_without_a_person", (*fixture).embedded},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(f, t) })
	}
}

// place is where one command goes, and what only it says there.
type place struct {
	*fixture
	rig.Place
}

func (f *fixture) place(t *testing.T) place { t.Helper(); return place{f, f.world.Raw(t)} }

// curl gets nothing back, since the receiver only listens: whoever has what it sends ends it. It says in its address what arrives.
func (p place) curl(more ...string) []string {
	return append([]string{"curl", "-sS", p.URL()}, more...)
}

// tool is a program that no table knows.
func (p place) tool(more ...string) []string {
	return append(p.Egress("tcp"), more...)
}

func (f *fixture) guard(t *testing.T, bits ...string) *rig.Session {
	t.Helper()
	return f.sensor.Guard(t, fmt.Sprint("c", f.world.Port()), "--taint", strings.Join(bits, ","))
}

// arrives wants the text to arrive without anybody having been asked, by this reason.
func (p place) arrives(t *testing.T, s *rig.Session, argv []string, class string) event.Event {
	t.Helper()
	p.runs(t, s, argv)
	e := p.verdict(t, event.Verdict)
	if e.Verdict.Decision != "allow" || e.Verdict.Reason != string(gate.Passed) || e.Verdict.By != gate.ByCop || e.Verdict.Class != class {
		t.Errorf("%q: verdict %+v, want not_flagged by the Cop of a %s command", argv, e.Verdict, class)
	}
	return e
}

// refused wants a denial by this reason, and nothing to arrive.
func (p place) refused(t *testing.T, s *rig.Session, argv []string, reason gate.Reason) {
	t.Helper()
	if r := s.Run(t, argv...); r.Exit == 0 {
		t.Errorf("%q: %s", argv, r)
	}
	if e := p.verdict(t, event.Connect); e.Verdict.Decision != "deny" || e.Verdict.Reason != string(reason) {
		t.Errorf("%q: verdict %+v, want a denial by %s", argv, e.Verdict, reason)
	}
	p.Nothing(t)
}

// verdict is the event of a kind about this place.
func (p place) verdict(t *testing.T, kind event.Kind) event.Event {
	t.Helper()
	return p.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == kind && e.Verdict != nil && e.Destination != nil && int(e.Destination.Port) == p.Port
	})
}

func (p place) asked(t *testing.T) gate.Question {
	t.Helper()
	return p.sensor.Asked(t, p.About)
}

func (f *fixture) oneNetwork(t *testing.T) {
	s, p := f.guard(t, "secret"), f.place(t)
	p.arrives(t, s, p.curl(), "network")
	g := f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Grant && e.Grant.State == "made" && len(e.Grant.To) == 1 && int(e.Grant.To[0].Port) == p.Port
	})
	if left := time.Until(g.Grant.Expires); g.Grant.Bytes > 4<<20 || left > 30*time.Second {
		t.Errorf("the reviewer's verdict opened %d bytes for %v, want at most 4 MiB and 30 s", g.Grant.Bytes, left)
	}
	p = f.place(t)
	p.refused(t, s, p.curl("-H", "X: "+flagged), gate.Flagged)
}

func (f *fixture) oneGrey(t *testing.T) {
	s, p := f.guard(t, "corruption"), f.place(t)
	p.arrives(t, s, p.tool(), "grey")
	p = f.place(t)
	p.refused(t, s, p.tool("-path", flagged), gate.Flagged)
}

// bothNetwork: the reviewer is not even asked.
func (f *fixture) bothNetwork(t *testing.T) {
	s, p := f.guard(t, "corruption", "secret"), f.place(t)
	before := f.model.asked.Load()
	proc := s.Start(t, p.curl()...)
	q := p.asked(t)
	p.Nothing(t)
	f.sensor.Approve(t, q.ID)
	p.ended(t, proc, "what a person approved")
	if f.model.asked.Load() != before {
		t.Error("the reviewer was asked")
	}
	p = f.place(t)
	proc = s.Start(t, p.curl()...)
	f.sensor.Deny(t, p.asked(t).ID)
	proc.Wait(t)
	p.Nothing(t)
}

func (f *fixture) bothGrey(t *testing.T) {
	s, p := f.guard(t, "corruption", "secret"), f.place(t)
	p.arrives(t, s, p.tool(), "grey")
	p = f.place(t)
	proc := s.Start(t, p.tool("-path", flagged)...)
	q := p.asked(t)
	if !strings.Contains(q.Note, "flagged") {
		t.Errorf("the person is not told what the reviewer said: %q", q.Note)
	}
	p.Nothing(t)
	f.sensor.Approve(t, q.ID)
	p.ended(t, proc, "what a person approved")
}

// local: a command that provably stays inside runs without a question, and is logged.
func (f *fixture) local(t *testing.T) {
	s := f.guard(t, "corruption", "secret")
	name := fmt.Sprint("/tmp/", s.Name)
	if r := s.Run(t, "ls", "-d", "/", name); !strings.Contains(r.Stdout, "/") {
		t.Errorf("ls: %s", r)
	}
	e := f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Exec && len(e.Process.Argv) == 4 && e.Process.Argv[3] == name
	})
	if e.Verdict.Reason != string(gate.LocalRun) || e.Verdict.Class != "local" {
		t.Errorf("verdict %+v, want local", e.Verdict)
	}
	if q := f.sensor.Pending(t); len(q) > 0 {
		t.Errorf("asked %+v", q)
	}
}

// fails: what the reviewer fails at is a person's, and is counted.
func (f *fixture) fails(t *testing.T) {
	defer f.sensor.Policy(t, f.model.policy())
	for _, c := range []struct {
		word   string
		reason gate.Reason
		policy string
	}{{garbled, gate.CopMalformed, f.model.policy()}, {hanging, gate.CopTimeout, f.model.within(3)}} {
		f.sensor.Policy(t, c.policy)
		s, p := f.guard(t, "secret"), f.place(t)
		proc := s.Start(t, p.tool("-path", c.word)...)
		q := p.asked(t)
		if !strings.Contains(q.Note, string(c.reason)) {
			t.Errorf("%s: the person is told %q", c.word, q.Note)
		}
		p.Nothing(t)
		f.sensor.Deny(t, q.ID)
		proc.Wait(t)
		p.Nothing(t)
		if n := f.sensor.Counter(t, "verdict_"+string(c.reason)); n != 1 {
			t.Errorf("%s was counted %d times", c.reason, n)
		}
	}
}

// another: what was let out to one place is not let out to the next.
func (f *fixture) another(t *testing.T) {
	s, first, second := f.guard(t, "secret"), f.place(t), f.place(t)
	text := fmt.Sprintf("%s; %s", strings.Join(first.tool(), " "), strings.Join(second.tool("-path", flagged), " "))
	script := "/tmp/" + s.Name // in a file, the reviewer does not see the second one at the first
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := s.Run(t, "bash", script); r.Exit == 0 {
		t.Errorf("the second one: %s", r)
	}
	if !first.world.WaitGot(first.Text, rig.Late) {
		t.Error("the first did not arrive")
	}
	f.world.Nothing(t, rig.Marks{}, second.Text, second.Port)
	if e := second.verdict(t, event.Connect); e.Verdict.Reason != string(gate.Flagged) {
		t.Errorf("the second: %+v", e.Verdict)
	}
}

// embedded: nobody is there but the embedded reviewer, and commands are held for it.
func (f *fixture) embedded(t *testing.T) {
	f.sensor.Policy(t, "approver: none\ncop:\n  reviewer: static\n")
	defer f.sensor.Policy(t, f.model.policy())
	s, p := f.guard(t, "corruption"), f.place(t)
	p.arrives(t, s, p.curl(), "network")
	p = f.place(t)
	p.refused(t, s, p.curl("--data-binary", "@/etc/passwd"), gate.Flagged)
	both := f.guard(t, "corruption", "secret")
	p = f.place(t)
	p.refused(t, both, p.curl(), gate.NoApprover)
}

// atExec: with review: exec a command is judged before its first instruction, and one that is let go on goes where it says.
func (f *fixture) atExec(t *testing.T) {
	f.sensor.Policy(t, "review: exec\n"+f.model.policy())
	defer f.sensor.Policy(t, f.model.policy())
	s := f.guard(t, "secret")
	mark := "/tmp/ran-" + s.Name
	if r := s.Run(t, "python3", "-c", "open('"+mark+"', 'w')", flagged); r.Exit != 128+9 {
		t.Errorf("a command that was flagged: want it killed, got %s", r)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("it ran before it was judged")
	}
	if r := s.Run(t, "python3", "-c", "open('"+mark+"', 'w')"); r.Exit != 0 {
		t.Errorf("a command that was not flagged: %s", r)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("it did not run: %v", err)
	}
	if r := s.Run(t, "ls", "/"); r.Exit != 0 {
		t.Errorf("a local command: %s", r)
	}
	// from a script, the reviewer is asked at exec for each, and not again where they go
	p := f.place(t)
	before := f.model.asked.Load()
	p.runs(t, s, p.curl())
	if n := f.model.asked.Load() - before; n != 1 {
		t.Errorf("the reviewer was asked %d times about a curl that went where it said", n)
	}
	// with both bits a person is asked before it begins
	both := f.guard(t, "corruption", "secret")
	p = f.place(t)
	proc := both.Start(t, p.curl()...)
	q := f.sensor.Asked(t, func(q gate.Question) bool { return q.Container.Name == both.Name })
	if q.Destination != (event.Destination{}) || !q.Held {
		t.Errorf("asked %+v, want it before it began", q)
	}
	p.Nothing(t)
	f.sensor.Approve(t, q.ID)
	p.ended(t, proc, "what a person approved")
	// a daemon that dies leaves nobody frozen: who was to be judged first is killed
	proc = s.Start(t, "python3", "-c", "open('"+mark+"2', 'w')", hanging)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Exec && len(e.Process.Argv) == 4 && e.Process.Argv[3] == hanging
	})
	f.sensor.Kill(t)
	if r := proc.Wait(t); r.Exit != 128+9 {
		t.Errorf("held at exec when the daemon died: want it killed, got %s", r)
	}
	if _, err := os.Stat(mark + "2"); err == nil {
		t.Error("it ran though nobody judged it")
	}
	f.sensor.Restart(t)
}

// runs wants the text to arrive.
func (p place) runs(t *testing.T, s *rig.Session, argv []string) {
	t.Helper()
	p.ended(t, s.Start(t, argv...), fmt.Sprintf("what %q sends", argv))
}

// ended wants the text of a command to arrive, and ends it: nobody answers it.
func (p place) ended(t *testing.T, proc *rig.Proc, what string) {
	t.Helper()
	if !p.world.WaitGot(p.Text, rig.Late) {
		t.Errorf("%s did not arrive", what)
	}
	proc.Signal(t, syscall.SIGKILL)
	proc.Wait(t)
}

// datagrams sends a kilobyte at a time, whatever becomes of it.
const datagrams = `
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(300):
    try:
        s.sendto(sys.argv[3].encode().ljust(1000, b"x"), (sys.argv[1], int(sys.argv[2])))
    except OSError:
        pass
`

// B39, B49: what is let out is bounded in bytes, whoever takes it at that address, so that its size, count and timing say
// little.
func (f *fixture) budget(t *testing.T) {
	f.sensor.Policy(t, "grant:\n  bytes: 64KiB\ncop:\n  reviewer: none\n")
	defer f.sensor.Policy(t, f.model.policy())
	s := f.guard(t, "secret")
	port := f.world.Port()
	text := fmt.Sprintf("text.%d.end", port)
	proc := s.Start(t, "python3", "-c", datagrams, rig.World4, fmt.Sprint(port), text)
	q := f.sensor.Asked(t, func(q gate.Question) bool { return int(q.Destination.Port) == port })
	f.sensor.Approve(t, q.ID)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Grant && e.Grant.State == "spent" && len(e.Grant.To) > 0 && int(e.Grant.To[0].Port) == port
	})
	// what it sends now is another question
	more := f.sensor.Asked(t, func(o gate.Question) bool { return int(o.Destination.Port) == port && o.ID != q.ID })
	f.sensor.Deny(t, more.ID)
	proc.Wait(t)
	f.world.Flush(t)
	// 1,000 bytes and two headers fit 63 times into 64 KiB
	if n := f.world.World.Count(text); n == 0 || n > 64<<10/1028 {
		t.Errorf("%d datagrams of 1,028 bytes arrived, want at most 63 and some", n)
	}
}
