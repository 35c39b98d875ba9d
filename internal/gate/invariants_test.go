package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// G4, G7, G9: an allow that its reason may never give is a denial, and told, whatever table or books say.
func TestUnsoundG4G7G9(t *testing.T) {
	bubble(t, func(r *rig) {
		var told []string
		r.queue.opts.Broken = func(invariant, _ string) { told = append(told, invariant) }
		row := func(reason Reason) {
			r.table = []Row{{Modes: modes, Levels: levels, Classes: classes, Points: points, Step: Pass, Reason: reason, Why: "a fault"}}
		}
		for _, c := range []struct {
			reason Reason
			ask    Request
		}{
			{Untainted, curl()}, {Observe, curl()}, {LocalRun, curl()}, {SealedRun, curl()}, {Passed, curl()}, {Recognised, curl()}, {Standing, curl()}, {Approved, curl()}, {Denied, curl()},
			{Observe, curl(mode(modeSeal))}, {Untainted, curl(mode(modeSeal), func(r *Request) { r.Container.Taint = nil })},
		} {
			row(c.reason)
			r.ask(c.ask).gives(Deny, Unsound)
		}
		r.wantCount(Unsound, 11)
		if len(told) != 11 || told[0] != "verdict" {
			t.Errorf("told %v", told)
		}
		row(LocalRun)
		r.ask(curl(func(r *Request) { r.Ask = Run })).gives(Allow, LocalRun)
	})
	person := Verdict{Decision: Allow, Reason: Approved, By: "alice", Question: "abc234"}
	for name, v := range map[string]Verdict{
		"nobody":       {Decision: Allow, Reason: Approved, Question: "abc234"},
		"no question":  {Decision: Allow, Reason: Approved, By: "alice"},
		"no bytes":     {Decision: Allow, Reason: Standing, By: "alice", Question: "abc234", Open: &Opening{}},
		"no reviewer":  {Decision: Allow, Reason: Passed, By: "alice"},
		"no reason":    {Decision: Allow},
		"of no person": {Decision: Allow, Reason: Recognised},
	} {
		if v.may(curl()) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if !person.may(curl()) || person.may(curl(mode(modeSeal))) {
		t.Error("a person's approval counts, but in seal")
	}
}

// F07: an approval never has less than no bytes left, nor more than it was given with.
func TestUnsoundBytes(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.ask(curl(known))
		given := r.lasts(who(WhoContainer))
		first.gives(Allow, Standing)
		var told []string
		r.queue.opts.Broken = func(invariant, _ string) { told = append(told, invariant) }
		before := r.Standing()
		for _, left := range []int64{-1, given.Bytes + 1} {
			r.queue.mu.Lock()
			if err := r.queue.keep(r.stands(given.ID), func(s *standing) { s.Left = left }); err == nil {
				t.Errorf("%d bytes are left", left)
			}
			r.queue.mu.Unlock()
		}
		if d := cmp.Diff(before, r.Standing()); d != "" || len(told) != 2 || told[0] != "bytes" {
			t.Errorf("told %v: %s", told, d)
		}
		r.ask(curl(known, retry)).gives(Allow, Standing)
	})
}
