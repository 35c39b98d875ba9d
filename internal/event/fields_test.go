package event_test

import (
	"regexp"
	"strings"
	"testing"

	"weir/internal/event"
)

// named finds the value of a field.
func named(fields []event.Field, name string) string {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Every kind has fields of its own to be filed by, each once, visible and of bounded length.
func TestFields(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+([._][a-z0-9]+)*$`)
	for _, e := range sample() {
		fields, seen := event.Fields(e), map[string]bool{}
		if named(fields, "weir.kind") != string(e.Kind) {
			t.Errorf("%s: its kind is %q", e.Kind, named(fields, "weir.kind"))
		}
		for _, f := range fields {
			if seen[f.Name] || !name.MatchString(f.Name) || f.Value == "" || event.Visible(f.Value) != f.Value {
				t.Errorf("%s: %s=%q: twice: %v", e.Kind, f.Name, f.Value, seen[f.Name])
			}
			seen[f.Name] = true
		}
	}
	for kind, want := range map[event.Kind]map[string]string{
		event.Exec:    {"process.pid": "71", "process.real_user.id": "1000", "process.executable.path": "/usr/bin/curl", "process.command_line": `curl -d 'two words' 'https://203.0.113.5/?a=1&b=<2>'`, "weir.decision": ""},
		event.Verdict: {"destination.address": "203.0.113.5", "destination.port": "443", "network.transport": "tcp", "network.type": "ipv4", "weir.question": "k3x9q", "weir.decision": "allow", "weir.reason": "approved", "weir.by": "alice"},
		event.Taint:   {"weir.taint.set": "secret", "weir.taint.cleared": "corruption", "weir.taint.source": "operator"},
		event.Lost:    {"weir.lost.stage": "ring", "weir.lost.what": "exec", "weir.lost.count": "3"},
		event.Found:   {"weir.finding": "host_pid", "weir.finding.severity": "critical"},
		event.Tool:    {"weir.tool": "VaultHttpFetch"},
		event.Grant:   {"weir.grant": "7", "weir.grant.state": "made"},
	} {
		for _, e := range sample() {
			for name, value := range want {
				if got := named(event.Fields(e), name); e.Kind == kind && got != value {
					t.Errorf("%s: %s is %q, want %q", kind, name, got, value)
				}
			}
		}
	}
	long := event.Fields(event.Event{Kind: event.Exec, Container: &event.Container{ID: "c1", Image: strings.Repeat("a", 9000)}, Process: &event.Process{PID: 1, Argv: []string{"a\x1b", strings.Repeat("b", 1<<20)}}})
	for _, f := range long {
		if len(f.Value) > 1000 {
			t.Errorf("%s has %d bytes", f.Name, len(f.Value))
		}
	}
	if got := named(long, "process.command_line"); !strings.HasPrefix(got, `$'a\x1b' `) {
		t.Errorf("a command that a container chose: %q", got)
	}
}

func TestPriority(t *testing.T) {
	for _, e := range sample() {
		want := map[event.Kind]event.Priority{
			event.Exec: event.PriorityInfo, event.Verdict: event.PriorityInfo, event.Grant: event.PriorityInfo, event.Tool: event.PriorityInfo,
			event.Error: event.PriorityError, event.Escape: event.PriorityError, event.Lost: event.PriorityWarning, event.Found: event.PriorityWarning,
		}[e.Kind]
		if want == 0 {
			want = event.PriorityNotice // the connect, too: it was refused
		}
		if got := e.Priority(); got != want {
			t.Errorf("%s: %d, want %d", e.Kind, got, want)
		}
	}
}
