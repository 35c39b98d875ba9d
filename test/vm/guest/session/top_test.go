//go:build vmguest

package session

import (
	"testing"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

// topAbout runs weir top as a member of a group, until the test ends, and finds what is about a session: other tests leave questions.
func topAbout(t *testing.T, s *rig.Session, group string) *rig.Terminal {
	t.Helper()
	term := rig.OnTerminal(t, "setpriv", "--reuid=1000", "--regid=1000", "--groups="+group, "env", "TERM=xterm", "weir", "top")
	term.Expect(t, "q quit")
	term.Type(t, "/"+s.Name+"\r")
	return term
}

// top: who may answer lets a held command go on by key, once and for longer, in his own name; who may look sees it, and has no key that does;
// nobody guarded sees anything (B27, G17).
func (f *fixture) top(t *testing.T) {
	f.sensor.Policy(t, "control:\n  look: ['70001']\n  answer: ['70002']\n")
	defer f.sensor.Policy(t, "")
	to, s := f.web(t), f.guard(t, "corruption", "secret")
	p := s.Start(t, to.Curl()...)
	q := to.asked(t)
	looks := topAbout(t, s, "70001")
	looks.Expect(t, "> "+q.ID)
	looks.Expect(t, "you may look, not answer")
	looks.Type(t, "a")
	looks.Expect(t, "you may look, and not answer")
	looks.Type(t, "\t")
	looks.Expect(t, "corruption,secret  enforce")
	if r := s.Run(t, "setpriv", "--reuid=1000", "--regid=1000", "--groups=70002", "weir", "top"); r.Exit == 0 {
		t.Errorf("from inside: %s", r)
	}
	to.Nothing(t)
	answers := topAbout(t, s, "70002")
	answers.Expect(t, "> "+q.ID)
	answers.Expect(t, to.To)
	answers.Type(t, "a")
	answers.Expect(t, "approve "+q.ID+"?")
	answers.Type(t, "y")
	succeeded(t, p, "answer")
	to.Arrived(t)
	answers.Expect(t, q.ID+": approved by ")
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Question == q.ID && e.Verdict != nil && e.Verdict.From != nil && e.Verdict.From.UID != nil && *e.Verdict.From.UID == 1000 && e.Verdict.Shown != nil
	})

	p = s.Start(t, to.Curl()...)
	next := to.again(t, q)
	answers.Expect(t, "> "+next.ID)
	answers.Type(t, "l")
	answers.Expect(t, "adds         ")
	answers.Type(t, "w")
	answers.Expect(t, "every process of ")
	answers.Type(t, "y")
	succeeded(t, p, "answer")
	answers.Expect(t, next.ID+": approved for 30m by ")
	succeeded(t, s.Start(t, to.Curl()...), "answer") // and nobody is asked
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Question == next.ID && e.Verdict != nil && e.Verdict.Reason == string(gate.Standing)
	})
}
