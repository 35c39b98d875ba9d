//go:build vmguest

package session

import (
	"strings"
	"testing"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// roles: who is in a group of the policy does what that may, and nobody does from inside, whatever its groups are (B27, G17).
func (f *fixture) roles(t *testing.T) {
	f.sensor.Policy(t, "control:\n  look: ['70001']\n  answer: ['70002']\n")
	defer f.sensor.Policy(t, "")
	as := func(groups string) []string {
		user := []string{"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"}
		if groups != "" {
			user[3] = "--groups=" + groups
		}
		return user
	}
	weir := func(groups string, order ...string) string {
		return rig.Must(t, strings.Join(append(append(as(groups), "weir"), order...), " ")+" 2>&1 || true")
	}
	to, s := f.web(t), f.guard(t, "corruption", "secret")
	p := s.Start(t, to.Curl()...)
	q := to.asked(t)
	if out := weir("", "pending"); !strings.Contains(out, "needs root, or membership of 70001 or 70002: run it with sudo") {
		t.Errorf("without a group: %s", out)
	}
	if out := weir("70001", "pending"); !strings.Contains(out, q.ID) {
		t.Errorf("who may look: %s", out)
	}
	for _, order := range []string{"approve " + q.ID, "deny " + q.ID, "taint " + s.Name + " secret", "mode observe --why x"} {
		if out := weir("70001", order); !strings.Contains(out, "refused: ") {
			t.Errorf("who may look: weir %s: %s", order, out)
		}
	}
	if out := weir("70002", "untaint "+s.Name+" secret --why x"); !strings.Contains(out, "refused: ") {
		t.Errorf("who may answer clears taint: %s", out)
	}
	for _, groups := range []string{"70001", "70002"} {
		if r := s.Run(t, append(as(groups), "weir", "approve", q.ID)...); r.Exit == 0 || !strings.Contains(r.Stdout+r.Stderr, "guarded process") {
			t.Errorf("from inside: %s", r)
		}
	}
	to.Nothing(t)
	if out := weir("70002", "approve "+q.ID); !strings.Contains(out, "approved: ") {
		t.Errorf("who may answer: %s", out)
	}
	succeeded(t, p, "answer")
	to.Arrived(t)
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Question == q.ID && e.Verdict != nil && e.Verdict.From != nil && e.Verdict.From.UID != nil && *e.Verdict.From.UID == 1000 && !strings.HasPrefix(e.Verdict.By, "root")
	})
}
