package gate

import (
	"strings"
	"testing"

	"weir/internal/cop"
)

// DryRun says of every situation what Decide does in it.
func TestDryRun(t *testing.T) {
	for n, s := range situations() {
		decision, reason := s.want()
		want := DryRunResult{Step: Refuse, Reason: reason}
		switch {
		case reason == Approved || reason == Denied:
			want = DryRunResult{Step: Person}
		case decision == Allow:
			want.Step = Pass
		}
		got := DryRun(t.Context(), s.request(n), reviewers[s.reviewer], s.person != "nobody")
		if got.Step != want.Step || want.Step != Person && got.Reason != want.Reason || got.Text == "" {
			t.Errorf("%+v: %+v, want %v %s", s, got, want.Step, want.Reason)
		}
	}
}

func TestDryRunFailures(t *testing.T) {
	none := reviewers["none"]
	unasked := reviewer(func(cop.Case) (cop.Opinion, error) { return cop.Opinion{}, ErrUnasked })
	for _, tt := range []struct {
		name     string
		r        Request
		reviewer Reviewer
		approver bool
		step     Step
		reason   Reason
	}{
		{"QUIC", curl(func(r *Request) { r.Destination.Protocol = "udp" }), none, true, Refuse, QUIC},
		{"no process", curl(func(r *Request) { r.Process.PID = 0 }), none, true, Refuse, Malformed},
		{"no container", curl(func(r *Request) { r.Container.ID = "" }), none, true, Refuse, Malformed},
		{"no mode", curl(mode("off")), none, true, Refuse, Malformed},
		{"arguments are missing", curl(func(r *Request) { r.Process.Truncated = true }), reviewers["passes"], true, Person, ""},
		{"arguments are missing, nobody", curl(func(r *Request) { r.Process.Truncated = true }), reviewers["passes"], false, Refuse, NoApprover},
		{"a model", curl(), unasked, true, Review, ""},
	} {
		got := DryRun(t.Context(), tt.r, tt.reviewer, tt.approver)
		if got.Step != tt.step || tt.step == Refuse && got.Reason != tt.reason || strings.Contains(got.Text, "\n") {
			t.Errorf("%s: %+v, want %v %s", tt.name, got, tt.step, tt.reason)
		}
	}
}
