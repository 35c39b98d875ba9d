package daemon

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bpfobj"
	"weir/internal/control"
	"weir/internal/cop"
	"weir/internal/gate"
	"weir/internal/metrics"
	"weir/internal/policy"
	"weir/internal/taint"
)

// Ready means enforcing: each thing that is missing is told.
func TestFaults(t *testing.T) {
	beat := func(age time.Duration, beating bool, err error) func() (time.Duration, bool, error) {
		return func() (time.Duration, bool, error) { return age, beating, err }
	}
	fine := func() error { return nil }
	gone := func() error { return errors.New("the pins are gone (grants, holds)") }
	two := func() error { return errors.Join(errors.New("a is not attached"), errors.New("b is not pinned")) }
	for name, c := range map[string]struct {
		mode   policy.Mode
		beat   func() (time.Duration, bool, error)
		checks []func() error
		want   []string // starts
	}{
		"enforces":  {policy.Enforce, beat(time.Second, true, nil), []func() error{fine, fine}, nil},
		"seals":     {policy.Seal, beat(3*time.Second, true, nil), []func() error{fine}, nil},
		"observes":  {policy.Observe, beat(0, true, nil), nil, []string{"the mode is observe"}},
		"stale":     {policy.Enforce, beat(4*time.Second, true, nil), nil, []string{"heartbeat: the last was 4s ago"}},
		"no beat":   {policy.Enforce, beat(0, false, nil), nil, []string{"heartbeat: none yet"}},
		"map gone":  {policy.Enforce, beat(0, true, errors.New("read settings: x")), nil, []string{"heartbeat: read settings: x"}},
		"no pins":   {policy.Enforce, beat(0, true, nil), []func() error{fine, gone}, []string{"the pins are gone (grants, holds)"}},
		"links":     {policy.Enforce, beat(0, true, nil), []func() error{two, fine}, []string{"a is not attached; b is not pinned"}},
		"all wrong": {policy.Observe, beat(0, false, nil), []func() error{gone}, []string{"the mode is observe", "heartbeat: none", "the pins"}},
	} {
		got := faults(c.mode, c.beat, c.checks)
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Before all is in force the daemon is alive, and not ready.
func TestHealthWhileStarting(t *testing.T) {
	d := &daemon{started: time.Now(), degraded: []string{"not yet found out"}, policies: newActivePolicy(policy.Policy{Mode: policy.Enforce})}
	d.refusal.Store(&control.PolicyRefusal{})
	h := collector{d}.Health()
	if h.Ready || h.Degraded != nil || !slices.Equal(h.Faults, []string{"the sensor is starting"}) || h.Mode != "enforce" {
		t.Errorf("%+v", h)
	}
}

func TestVerdictsByTier(t *testing.T) {
	all, failures := verdicts(map[gate.Reason]uint64{gate.Approved: 2, gate.CopTimeout: 3, gate.Flagged: 1})
	slices.SortFunc(all, func(a, b metrics.Verdict) int { return strings.Compare(a.Reason, b.Reason) })
	want := []metrics.Verdict{{Tier: "person", Result: "allow", Reason: "approved", Count: 2}, {Tier: "reviewer", Result: "deny", Reason: "flagged", Count: 1}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint64{"cop_timeout": 3}, failures); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestReviews(t *testing.T) {
	st := cop.Stats{Hits: 1, Flagged: 2, Passed: 3, Waiting: 4, Failures: map[cop.Code]uint64{cop.Timeout: 5, cop.Server: 6}, Took: time.Second}
	st.Latency[len(cop.Bounds)] = 7
	got := reviews(st)
	if diff := cmp.Diff(map[string]uint64{"flagged": 2, "passed": 3, "failed": 11}, got.Reviews); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if got.Failures[string(cop.Timeout)] != 5 || len(got.Failures) != len(cop.Codes) || got.Latency[len(got.Bounds)] != 7 || got.Cached != 1 || got.Waiting != 4 {
		t.Errorf("%+v", got)
	}
}

func TestProgramsOfOneName(t *testing.T) {
	got := programs([]bpfobj.ProgramStat{{Name: "weir_packet", Count: 2, Time: 3}, {Name: "weir_exec", Count: 1, Time: 1}, {Name: "weir_packet", Count: 5, Time: 7}})
	want := []metrics.Program{{Name: "weir_exec", Runs: 1, Time: 1}, {Name: "weir_packet", Runs: 7, Time: 10}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestTaintLabels(t *testing.T) {
	for bits, want := range map[taint.Bits]string{0: "none", taint.Secret: "secret", taint.Corruption: "corruption", taint.Secret | taint.Corruption: "both"} {
		if got := taintLabel(bits); got != want {
			t.Errorf("%d: %s, want %s", bits, got, want)
		}
	}
}
