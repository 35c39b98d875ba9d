package daemon

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/netegress"
	"weir/test/eventtest"
)

// What finds no room on its way to the log is counted, to the last one, and nobody waits for it (B31).
func TestRecordsQueue(t *testing.T) {
	const count = 5
	d := &daemon{records: make(chan netegress.Record, 2), lost: map[string]uint64{}}
	for range count {
		d.Recorded(netegress.Record{})
	}
	if lost := d.lost["queue"]; lost == 0 || lost+uint64(len(d.records)) != count {
		t.Errorf("%d wait and %d are counted as lost of %d", len(d.records), lost, count)
	}
}

// TestF45Hooks: what refuses a call that opens no destination is told by its name, not as a connect.
func TestF45Hooks(t *testing.T) {
	for name, c := range map[string]struct {
		r    netegress.Record
		hook string
	}{
		"ptrace":             {netegress.Record{Denied: true, Reason: "attach", Target: 7, Family: unix.AF_UNIX}, "ptrace"},
		"a key of another":   {netegress.Record{Denied: true, Reason: "attach"}, "ipc"},
		"request_key":        {netegress.Record{Denied: true, Reason: "kernel_traffic"}, "request_key"},
		"joins a group":      {netegress.Record{Denied: true, Reason: "kernel_traffic", Target: 35}, "setsockopt"},
		"vsock":              {netegress.Record{Denied: true, Reason: "socket_family", Family: 40}, "socket"},
		"a connect":          {netegress.Record{Denied: true, Reason: "tainted"}, ""},
		"a Unix socket":      {netegress.Record{Denied: true, Reason: "outside_container", Family: unix.AF_UNIX}, ""},
		"an allowed connect": {netegress.Record{Reason: "listed"}, ""},
	} {
		hook, text := hookOf(c.r)
		if hook != c.hook || (hook == "") != (text == "") {
			t.Errorf("%s: %q, %q", name, hook, text)
		}
		if hook == "" {
			continue
		}
		line, err := event.Marshal(event.Event{
			Time: time.Now().UTC(), Kind: event.Deny, Hook: hook, Container: &event.Container{ID: "c"}, Process: &event.Process{PID: 1, Start: 1},
			Verdict: &event.Decision{Decision: "deny", Reason: c.r.Reason, Text: text},
		})
		if err != nil {
			t.Fatal(err)
		}
		eventtest.Check(t, line)
	}
}
