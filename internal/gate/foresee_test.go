package gate

import (
	"strings"
	"testing"

	"weir/internal/cop"
	"weir/internal/gate/verdict"
)

// Foresee says of every situation what Decide does in it.
func TestForesee(t *testing.T) {
	for n, s := range situations() {
		decision, reason := s.want()
		want := Foreseen{Step: Refuse, Reason: reason}
		switch {
		case reason == verdict.Approved || reason == verdict.Denied:
			want = Foreseen{Step: Person}
		case decision == verdict.Allow:
			want.Step = Pass
		}
		got := Foresee(t.Context(), s.request(n), reviewers[s.reviewer], s.person != "nobody")
		if got.Step != want.Step || want.Step != Person && got.Reason != want.Reason || got.Text == "" {
			t.Errorf("%+v: %+v, want %v %s", s, got, want.Step, want.Reason)
		}
	}
}

func TestForeseeFailures(t *testing.T) {
	none := reviewers["none"]
	unasked := reviewer(func(cop.Case) (cop.Opinion, error) { return cop.Opinion{}, ErrUnasked })
	for _, tt := range []struct {
		name     string
		r        verdict.Request
		reviewer Reviewer
		approver bool
		step     Step
		reason   verdict.Reason
	}{
		{"QUIC", curl(func(r *verdict.Request) { r.Destination.Protocol = "udp" }), none, true, Refuse, verdict.QUIC},
		{"no process", curl(func(r *verdict.Request) { r.Process.PID = 0 }), none, true, Refuse, verdict.Malformed},
		{"no container", curl(func(r *verdict.Request) { r.Container.ID = "" }), none, true, Refuse, verdict.Malformed},
		{"no mode", curl(mode("off")), none, true, Refuse, verdict.Malformed},
		{"arguments are missing", curl(func(r *verdict.Request) { r.Process.Truncated = true }), reviewers["passes"], true, Person, ""},
		{"arguments are missing, nobody", curl(func(r *verdict.Request) { r.Process.Truncated = true }), reviewers["passes"], false, Refuse, verdict.NoApprover},
		{"a model", curl(), unasked, true, Review, ""},
	} {
		got := Foresee(t.Context(), tt.r, tt.reviewer, tt.approver)
		if got.Step != tt.step || tt.step == Refuse && got.Reason != tt.reason || strings.Contains(got.Text, "\n") {
			t.Errorf("%s: %+v, want %v %s", tt.name, got, tt.step, tt.reason)
		}
	}
}
