//go:build vmguest

package soak

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"weir/internal/gate"
	"weir/test/model"
	"weir/test/vm/guest/rig"
)

var no = gate.Reply{By: "test"}

// try is a command that wants to get a text of its own out.
type try struct {
	*model.Ask
	box   *box
	text  string
	argv  []string
	place rig.Place
	shell bool // the container's shell runs it
	proc  *rig.Proc
	held  bool // it was seen to wait
	run   int  // of the shell
}

// grant is what an approval has opened for a shell and all that it starts.
type grant struct {
	box   *box
	root  *model.Process
	to    string
	taint model.Bits
	by    *model.Lasting // nil: an approval that counted once
}

// shell runs commands of its container.
type shell struct {
	*rig.Proc
	process *model.Process
	busy    bool
	runs    int
}

func (s *soak) newShell(b *box) *shell {
	return &shell{Proc: b.session.Start(s.t, "bash"), process: &model.Process{Name: b.Name + "'s shell", Program: "bash", Command: "bash"}}
}

var textual = regexp.MustCompile(`soak\.[0-9]+\.end`)

func word(text string) string { return textual.FindString(text) }

// next is a text that nothing else has.
func (s *soak) next() string {
	s.n++
	return fmt.Sprintf("soak.%d.end", s.n)
}

// place is one where somebody listens.
func (s *soak) place() rig.Place {
	p := s.world.Raw(s.t)
	s.world.World.Listen(s.t, "udp", fmt.Sprintf("[::]:%d", p.Port))
	return p
}

// attempt makes one: it is judged, and what comes of that is seen.
func (s *soak) attempt(b *box, inShell bool, words string, p rig.Place, text string) *try {
	s.t.Helper()
	tr := s.prepare(b, inShell, words, p, text)
	s.launch(tr)
	s.flying = append(s.flying, tr)
	s.decide(tr)
	s.settle()
	return tr
}

// prepare makes it, but for its process.
func (s *soak) prepare(b *box, inShell bool, words string, p rig.Place, text string) *try {
	p.Text = text
	proto, _, _ := strings.Cut(words, "-")
	tr := &try{box: b, text: text, argv: p.Egress(words), place: p, shell: inShell}
	process := &model.Process{Name: text, Program: "egress", Command: strings.Join(tr.argv, " "), Class: model.Grey}
	if inShell {
		process.Above = []*model.Process{b.shell.process}
	}
	tr.Ask = &model.Ask{Kind: model.Connect, Container: b.Container, Process: process, To: p.To + "/" + proto, Held: true}
	s.texts[text] = tr
	b.asked++
	s.did("%s sends %s to %s by %s, in its shell %t", b.Name, text, p.To, words, inShell)
	return tr
}

// launch starts its command.
func (s *soak) launch(tr *try) {
	s.t.Helper()
	s.execs[tr.text] = true
	if tr.shell {
		tr.box.shell.runs++
		tr.run, tr.box.shell.busy = tr.box.shell.runs, true
		tr.box.shell.Input(s.t, fmt.Sprintf("%s; echo ended.%d. $?\n", strings.Join(tr.argv, " "), tr.run))
		return
	}
	tr.proc = tr.box.session.Start(s.t, tr.argv...)
	tr.proc.Close(s.t)
}

// decide has the model judge it. What is open to its shell already asks nobody.
func (s *soak) decide(tr *try) {
	tr.Verdict = model.Verdict{}
	for _, g := range s.grants {
		if s.w.Mode == model.Enforce && tr.shell && g.root == tr.box.shell.process && g.to == tr.To && tr.box.Bits&^g.taint == 0 {
			tr.Verdict = model.Verdict{Allow: true, Reason: "grant"}
			return
		}
	}
	before := len(s.w.Questions)
	s.w.Decide(tr.Ask)
	if len(s.w.Questions) > before {
		s.first[s.w.Questions[before]] = tr
	}
	tr.held = false
}

// why askers of the model may be without an answer.
type why int

const (
	nothing why = iota
	anew        // the kernel judges them again
	stopped     // they are refused, since nobody is there to answer
)

func (s *soak) settle() { s.t.Helper(); s.settled(nothing) }

// settled sees what has become of all that have no verdict yet.
func (s *soak) settled(cause why) {
	s.t.Helper()
	for again := true; again; {
		again = false
		for _, tr := range s.flying {
			if tr.Waits() {
				continue
			}
			v := tr.Verdict
			under := model.Bits(255) // the taint that it is let out under
			switch {
			case v.Reason == "used_once", v.Reason == "cancelled" && cause == anew:
				again = true
			case v.Reason == "approved":
				if !s.w.Consume(v.About) {
					s.fatal("the model gave %s an approval that cannot be used", tr.text)
				}
				under = v.About.Taint
				if v.Root != nil {
					s.grants = append(s.grants, grant{tr.box, v.Root, tr.To, under, nil})
				}
			case v.Reason == "standing":
				if under = v.By.Taint; v.By.Keeps() {
					under = 255
				}
				if v.Root != nil {
					s.grants = append(s.grants, grant{tr.box, v.Root, tr.To, under, v.By})
				}
			}
			if v.Allow && tr.box.Bits&^under != 0 { // woken, and asks under more
				again = true
				tr.Verdict.Allow = false
			}
			if again {
				s.decide(tr)
				break
			}
		}
	}
	for _, tr := range slices.Clone(s.flying) {
		if tr.Waits() {
			s.waits(tr)
			continue
		}
		s.flying = slices.DeleteFunc(s.flying, func(o *try) bool { return o == tr })
		tr.Process.Dead = true
		if tr.Verdict.Allow {
			s.let(tr)
		} else {
			s.refused(tr)
			if tr.Verdict.Reason == "cancelled" {
				s.gone = append(s.gone, tr)
			}
		}
	}
}

// let wants its text to arrive.
func (s *soak) let(tr *try) {
	s.t.Helper()
	s.may[tr.text], s.ports[tr.place.Port] = true, true
	if exit, out := s.ended(tr); exit != 0 {
		s.fatal("%s (%s) was let out (%s): %s", tr.text, tr.Name(), tr.Verdict.Reason, out)
	}
	if !s.world.WaitGot(tr.text, rig.Late) {
		s.fatal("%s, which was let out (%s), did not arrive", tr.text, tr.Verdict.Reason)
	}
}

// Name is its container's.
func (tr *try) Name() string { return tr.box.Name }

// refused wants its call to fail.
func (s *soak) refused(tr *try) {
	s.t.Helper()
	if exit, out := s.ended(tr); exit != 3 || !strings.Contains(out, "EPERM") {
		s.fatal("%s is to be refused (%s): %s", tr.text, tr.Verdict.Reason, out)
	}
}

// ended waits for its end.
func (s *soak) ended(tr *try) (exit int, out string) {
	s.t.Helper()
	if !tr.shell {
		r := tr.proc.Wait(s.t)
		return r.Exit, r.String()
	}
	begin := fmt.Sprintf("ended.%d. ", tr.run)
	line := tr.box.shell.WaitLine(begin, 2*rig.Late)
	if _, err := fmt.Sscan(strings.TrimPrefix(line, begin), &exit); err != nil {
		s.fatal("%s does not end in its shell", tr.text)
	}
	tr.box.shell.busy = false
	return exit, "exit " + line + " EPERM" // what it says is the shell's
}

// waits wants a question about it, and it to stand still. Where the daemon could not beat in time it is refused, not held, and made again.
func (s *soak) waits(tr *try) {
	s.t.Helper()
	if tr.held {
		return
	}
	q := s.questionOf(tr)
	for tries := 0; ; tries++ {
		var told gate.Question
		rig.Eventually(s.t, tr.text+" is asked about", func() bool {
			for _, p := range s.sensor.Pending(s.t) {
				if s.boxOf(p.Container) != tr.box || word(strings.Join(p.Process.Argv, " ")) != tr.text || int(p.Destination.Port) != tr.place.Port {
					continue
				}
				if known := s.ids[q]; known == p.ID && p.Askers == q.Askers() || known == "" && !s.taken[p.ID] {
					told = p
					return true
				}
			}
			return false
		})
		if s.ids[q] != "" || told.Held || !tr.Held {
			s.ids[q], s.taken[told.ID], tr.held = told.ID, true, true
			return
		}
		if tries == 10 {
			s.fatal("%s is never held: %+v", tr.text, told)
		}
		s.t.Logf("refused, not held: %s", tr.text)
		if _, err := client().Answer(context.Background(), told.ID, no); err != nil {
			s.t.Fatal(err)
		}
		s.ended(tr)
		s.launch(tr)
	}
}

// questionOf is what it waits for.
func (s *soak) questionOf(tr *try) *model.Question {
	for _, q := range s.w.Pending() {
		if s.first[q].Process.Command == tr.Process.Command && s.first[q].Container == tr.Container && s.first[q].To == tr.To && tr.box.Bits&^q.Taint == 0 {
			return q
		}
	}
	s.fatal("the model has no question about %s", tr.text)
	return nil
}

// kill kills one that waits; its question stays.
func (s *soak) kill(tr *try) {
	s.t.Helper()
	if tr.shell {
		tr.box.shell.Signal(s.t, syscall.SIGKILL)
		tr.box.shell.Wait(s.t)
		tr.box.shell.process.Dead = true
		tr.box.shell = s.newShell(tr.box)
		s.grants = slices.DeleteFunc(s.grants, func(g grant) bool { return g.root.Dead })
	} else {
		tr.proc.Signal(s.t, syscall.SIGKILL)
		tr.proc.Wait(s.t)
	}
	s.w.Leave(tr.Ask)
	tr.Process.Dead = true
	s.flying = slices.DeleteFunc(s.flying, func(o *try) bool { return o == tr })
	s.gone = append(s.gone, tr)
}

// arrivals says of each byte that has arrived why it may have.
func (s *soak) arrivals() {
	s.t.Helper()
	const reset = 4
	all, now := s.world.Since(s.t, s.mark)
	for _, a := range all {
		text := word(a.Text)
		switch {
		case text != "" && s.may[text]:
		case text == "" && (strings.Contains(a.Text, "sentinel.") || a.Via == "kernel" || a.Port == 6999 || a.From == 6999):
		case text == "" && a.Payload == 0 && (s.ports[a.Port] || s.ports[a.From]):
		case text == "" && a.Flags&reset != 0 && a.Payload == 0:
		default:
			s.fatal("arrived, and nothing explains it: %+v", a)
		}
	}
	s.arrived += len(all)
	s.mark = now
}
