package daemon

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"weir/internal/event"
	"weir/internal/taint"
)

// The log says that taint was cleared only of what is not tainted any more: a failure is told as taint that is there again.
func TestFailedUntaintIsNotTold(t *testing.T) {
	full, broken := errors.New("no space left on device"), errors.New("input/output error")
	for name, c := range map[string]struct {
		logged, failed error
		done           int
		has            []string // as the log tells it in the end
	}{
		"done":            {nil, nil, 1, nil},
		"not logged":      {full, nil, 0, []string{"secret", "corruption"}},
		"not carried out": {nil, broken, 1, []string{"secret"}}, // corruption was not there
	} {
		t.Run(name, func(t *testing.T) {
			has, done := []string{"secret", "corruption"}, 0
			write := func(e event.Event) error {
				if c.logged != nil {
					return c.logged
				}
				if e.Container.ID != "c1" || e.Change.By != "root" {
					t.Errorf("%+v", e)
				}
				has = slices.DeleteFunc(append(has, e.Change.Set...), func(bit string) bool { return slices.Contains(e.Change.Cleared, bit) })
				return nil
			}
			change := event.TaintChange{Cleared: []string{"corruption", "secret"}, Source: "operator", By: "root", Why: "rebuilt"}
			err := cleared(write, event.Container{ID: "c1"}, change, taint.Secret, func() error { done++; return c.failed })
			if !errors.Is(err, cmp.Or(c.logged, c.failed)) || done != c.done || !slices.Equal(has, c.has) {
				t.Errorf("%v, done %d times, the log has %v", err, done, has)
			}
		})
	}
}

// What is below a container loses a bit with it, unless it has that by itself or by another that it is in.
func TestLoses(t *testing.T) {
	at := func(cgroup string, own taint.Bits) taint.Status {
		return taint.Status{Container: taint.Container{ID: cgroup, Cgroup: cgroup}, Own: own}
	}
	from := at("/a/b", taint.Secret)
	all := []taint.Status{at("/a", taint.Corruption), from, at("/a/b/own", taint.Secret), at("/a/b/clean", 0), at("/a/other", taint.Secret)}
	for _, c := range []struct {
		cgroup, bit string
		want        bool
	}{
		{"/a/b", "secret", true}, {"/a/b/clean", "secret", true}, {"/a/b/unknown", "secret", true},
		{"/a/b/own", "secret", false}, {"/a/b", "corruption", false}, {"/a/other", "secret", false}, {"/a", "secret", false},
	} {
		if got := slices.Contains(loses(all, from, c.cgroup).Names(), c.bit); got != c.want {
			t.Errorf("%s %s: %v", c.cgroup, c.bit, got)
		}
	}
}
