package journal

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

func TestLogIsTallied(t *testing.T) {
	l := New(event.NewJSONSink(io.Discard))
	for _, e := range []event.Event{
		{Kind: event.Exec},
		{Kind: event.Taint, Change: &event.TaintChange{Set: []string{"secret"}, Source: "file"}},
		{Kind: event.Taint, Change: &event.TaintChange{Cleared: []string{"secret"}, Source: "operator"}},
		{Kind: event.Grant, Grant: &event.GrantInfo{State: "made"}},
	} {
		if err := l.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	l.Post(event.Event{Kind: event.Exec})
	l.Post(event.Event{Kind: event.Grant, Grant: &event.GrantInfo{State: "spent"}})
	kinds, taints, grants := l.Counts()
	if len(kinds) != len(event.Kinds()) {
		t.Errorf("%d kinds: those that did not happen are shown as 0", len(kinds))
	}
	for k, n := range kinds {
		if n == 0 {
			delete(kinds, k)
		}
	}
	got := []map[string]uint64{kinds, taints, grants}
	want := []map[string]uint64{{"exec": 2, "taint": 2, "grant": 2}, {"file": 1}, {"made": 1, "spent": 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}
