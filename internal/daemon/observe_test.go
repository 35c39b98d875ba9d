package daemon

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/docs"
	"weir/internal/event"
	"weir/internal/netegress"
)

// What finds no room on its way to the log is counted, to the last one, and nobody waits for it (B31).
func TestRecordsQueue(t *testing.T) {
	const count = 5
	d := &daemon{records: make(chan netegress.Record, 2)}
	for range count {
		d.Recorded(netegress.Record{})
	}
	if lost := d.lostRecords.Load(); lost == 0 || lost+uint64(len(d.records)) != count {
		t.Errorf("%d wait and %d are counted as lost of %d", len(d.records), lost, count)
	}
}

// TestF45Hooks: what refuses a call that opens no destination is told by its name, with a text, not as a connect.
func TestF45Hooks(t *testing.T) {
	var schema struct {
		Properties struct{ Hook struct{ Enum []string } }
	}
	if err := json.Unmarshal(docs.EventsSchema, &schema); err != nil {
		t.Fatal(err)
	}
	told := slices.Sorted(maps.Keys(calls))
	if diff := cmp.Diff(slices.Sorted(slices.Values(schema.Properties.Hook.Enum)), slices.Sorted(slices.Values(append(told, "socket")))); diff != "" {
		t.Errorf("the schema's hooks - what observe.go tells +\n%s", diff)
	}
	for _, call := range schema.Properties.Hook.Enum {
		text := callText(netegress.Record{Denied: true, Call: call, Target: 7})
		if text == "" || strings.Contains(text, "#") {
			t.Errorf("%s: %q", call, text)
		}
	}
}

// A command that is refused before it begins is told as such, not as a connection to nowhere.
func TestRefusedExecIsNoConnect(t *testing.T) { // B95
	r := netegress.Record{Kind: netegress.Denied, Reason: "queue_full", Denied: true}
	for exec, want := range map[bool]event.Kind{false: event.Connect, true: event.Verdict} {
		r.Exec = exec
		e := recordEvent(r, event.Container{ID: "c1"}, event.Process{PID: 7}, event.Destination{Address: "192.0.2.1"})
		if e.Kind != want || (e.Destination == nil) != exec || e.Verdict.Decision != "deny" || e.Verdict.Reason != "queue_full" || e.Process.PID != 7 {
			t.Errorf("exec %v: %+v", exec, e)
		}
	}
}
