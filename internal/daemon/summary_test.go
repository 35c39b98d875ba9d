package daemon

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
	"weir/internal/event"
)

// F10: what weir guard tells at the end counts whatever was decided about the session, by whom and over which way.
func TestF10Summary(t *testing.T) {
	s := &taintSummaries{counts: map[string]*control.Summary{}}
	log := newEventLog(event.NewJSONSink(io.Discard))
	log.Summarize(s)
	person := &event.Origin{Via: "control"}
	verdict := func(k event.Kind, decision, reason string, from *event.Origin) event.Event {
		return event.Event{Kind: k, Container: &event.Container{ID: "c1"}, Verdict: &event.Decision{Decision: decision, Reason: reason, From: from}}
	}
	of := func(k event.Kind) event.Event { return event.Event{Kind: k, Container: &event.Container{ID: "c1"}} }
	for _, tc := range []struct {
		what string
		e    event.Event
		want control.Summary
	}{
		{"the kernel refuses a connect", verdict(event.Connect, "deny", "tainted", nil), control.Summary{Denied: 1}},
		{"the reviewer flags what the hook asks", verdict(event.Verdict, "deny", "flagged", nil), control.Summary{Denied: 1}},
		{"the git guard refuses a command", verdict(event.Verdict, "deny", "git_guard", nil), control.Summary{Denied: 1}},
		{"the guard refuses a call", verdict(event.Verdict, "deny", "guard", nil), control.Summary{Denied: 1}},
		{"a rule refuses a served tool", verdict(event.Tool, "deny", "rule", nil), control.Summary{Denied: 1}},
		{"a person is asked", of(event.Hold), control.Summary{Asked: 1}},
		{"a person denies", verdict(event.Verdict, "deny", "denied", person), control.Summary{Denied: 1}},
		{"who serves the tool tells that too", verdict(event.Tool, "deny", "denied", nil), control.Summary{}},
		{"a person approves", verdict(event.Verdict, "allow", "approved", person), control.Summary{Approved: 1}},
		{"who had gone claims it", verdict(event.Verdict, "allow", "approved", nil), control.Summary{}},
		{"the reviewer passes", verdict(event.Verdict, "allow", "not_flagged", nil), control.Summary{}},
		{"nobody answers", verdict(event.Verdict, "deny", "timeout", nil), control.Summary{Denied: 1}},
		{"another has the approval", verdict(event.Connect, "deny", "used_once", nil), control.Summary{}},
		{"the asker goes away", verdict(event.Connect, "deny", "cancelled", nil), control.Summary{}},
		{"nobody claims an approval", verdict(event.Verdict, "deny", "unclaimed", nil), control.Summary{}},
		{"a grant is made", event.Event{Kind: event.Grant, Container: &event.Container{ID: "c1"}, Process: &event.Process{PID: 1}, Grant: &event.GrantInfo{State: "made"}}, control.Summary{Granted: 1}},
		{"it ends", event.Event{Kind: event.Grant, Container: &event.Container{ID: "c1"}, Grant: &event.GrantInfo{State: "ended"}}, control.Summary{}},
		{"the mode observe denies nothing", verdict(event.Connect, "allow", "observe", nil), control.Summary{}},
		{"the model's proxy refuses a request", verdict(event.Model, "deny", "model_path", nil), control.Summary{Denied: 1}},
		{"packets of a socket from before the taint are dropped", verdict(event.Drop, "deny", "tainted", nil), control.Summary{}},
		{"something runs", verdict(event.Exec, "allow", "sealed_run", nil), control.Summary{}},
	} {
		before := s.of("c1")
		if err := log.Write(tc.e); err != nil {
			t.Fatal(err)
		}
		after := s.of("c1")
		got := control.Summary{Denied: after.Denied - before.Denied, Asked: after.Asked - before.Asked, Approved: after.Approved - before.Approved, Granted: after.Granted - before.Granted}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.what, diff)
		}
	}
	log.WriteAsync(verdict(event.Verdict, "deny", "guard", nil))
	if got := s.of("c1").Denied; got != 9 {
		t.Errorf("%d denied in all, want 9", got)
	}
	if diff := cmp.Diff(control.Summary{}, s.of("c2")); diff != "" {
		t.Error("of another container:\n" + diff)
	}
}
