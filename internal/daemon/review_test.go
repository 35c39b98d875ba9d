package daemon

import (
	"os"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/policy"
)

// F01: a wider scope lets out who was chosen, and every other verdict the asker alone.
func TestF01TermsNameWhoIsLetOut(t *testing.T) {
	st, err := linux.ReadStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	self := &event.Member{PID: st.PID, Start: st.Start, Comm: st.Comm}
	for name, tt := range map[string]struct {
		v    gate.Verdict
		want int
	}{
		"the asker":  {gate.Verdict{Reason: gate.Approved, Scope: 1}, 0},
		"a parent":   {gate.Verdict{Reason: gate.Approved, Scope: 2, Root: self}, st.PID},
		"passed":     {gate.Verdict{Reason: gate.Passed, By: gate.ByCop}, 0},
		"recognised": {gate.Verdict{Reason: gate.Recognised}, 0},
	} {
		if got := termsOf(policy.Default(), tt.v, true).Root; got.PID != tt.want || got.PID != 0 && got.Start != st.Start {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := termsOf(policy.Default(), gate.Verdict{Reason: gate.Recognised, Open: &gate.Opening{Bytes: 7}}, true).Bytes; got != 7 { // B159
		t.Errorf("%d bytes", got)
	}
}

// B159: what a held call draws can be claimed by nobody when its process is killed: it goes back, and would be drawn twice.
func TestB159HeldLeavesNoClaim(t *testing.T) {
	ttl := seconds(policy.Default().ApprovalTTL)
	for name, tt := range map[string]struct {
		v    gate.Verdict
		held bool
		want time.Duration
	}{
		"a recognised command":                {gate.Verdict{Reason: gate.Recognised, Open: &gate.Opening{Bytes: 7}}, true, 0},
		"one whose call has failed":           {gate.Verdict{Reason: gate.Recognised, Open: &gate.Opening{Bytes: 7}}, false, ttl},
		"an approval that goes on":            {gate.Verdict{Reason: gate.Standing, Open: &gate.Opening{Bytes: 7, For: time.Minute}}, true, 0},
		"one answer, which draws from nobody": {gate.Verdict{Reason: gate.Approved}, true, ttl},
	} {
		if got := termsOf(policy.Default(), tt.v, tt.held).ClaimFor; got != tt.want {
			t.Errorf("%s can be claimed for %v, want %v", name, got, tt.want)
		}
	}
}

// F03: the event of a grant has the scope that it was made with, which is not always the one that was approved.
func TestF03ScopeOfGrant(t *testing.T) {
	wide := gate.Verdict{Scope: 3}
	root := func(pid int) netegress.Process { return netegress.Process{PID: pid} }
	for name, tt := range map[string]struct {
		terms, grant, want int
	}{
		"the asker": {0, 500, 1}, "a parent": {300, 300, 3}, "a claim": {300, 0, 1}, "the parent had ended": {0, 500, 1},
		"within one of a parent": {0, 400, 0}, "within another's": {300, 200, 0},
	} {
		if got := scopeOf(wide, 500, netegress.Terms{Root: root(tt.terms)}, netegress.Grant{Root: root(tt.grant)}); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
