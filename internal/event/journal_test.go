package event

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
)

// An event in the journal has its priority, a line for people, its fields and itself.
func TestJournalSink(t *testing.T) {
	var got map[string]string
	var said string
	var level journal.Priority
	fails := errors.New("no journal")
	s := &JournalSink{func(message string, priority journal.Priority, fields map[string]string) error {
		said, level, got = message, priority, fields
		return fails
	}}
	e := Event{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Kind: Connect, Container: &Container{ID: "c1", Name: "web", Pod: "p"}, Process: &Process{PID: 7, Comm: "a\x1bb"},
		Destination: &Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"}, Verdict: &Decision{Decision: "deny", Reason: "tainted"}}
	if err := s.Write(e); !errors.Is(err, fails) {
		t.Errorf("the journal failed, and %v is told", err)
	}
	for field, want := range map[string]string{"SYSLOG_IDENTIFIER": "weir", "WEIR_KIND": "connect", "WEIR_CONTAINER": "web", "WEIR_CONTAINER_ID": "c1", "WEIR_K8S_POD_NAME": "p", "WEIR_PROCESS_PID": "7", "WEIR_DESTINATION_ADDRESS": "192.0.2.1", "WEIR_DECISION": "deny", "WEIR_REASON": "tainted"} {
		if got[field] != want {
			t.Errorf("%s is %q, want %q", field, got[field], want)
		}
	}
	if level != journal.PriNotice || !strings.HasPrefix(said, "connect web ") || Visible(said) != said {
		t.Errorf("priority %d, message %q", level, said)
	}
	var whole Event
	if err := json.Unmarshal([]byte(got["WEIR_EVENT"]), &whole); err != nil || whole.Process.Comm != e.Process.Comm {
		t.Errorf("%v: %s", err, got["WEIR_EVENT"])
	}
}

// docs/metrics.md names fields that there are.
func TestJournalDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../docs/metrics.md")
	source, err2 := os.ReadFile("fields.go")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	there := map[string]bool{"WEIR_EVENT": true, "WEIR_ERROR": true}
	for _, m := range regexp.MustCompile(`(?:add|number)\("([a-z0-9._]+)"`).FindAllSubmatch(source, -1) {
		there[JournalField(string(m[1]))] = true
	}
	named := regexp.MustCompile("WEIR_[A-Z0-9_]+").FindAllString(string(doc), -1)
	if len(named) < 25 {
		t.Errorf("%d fields are named", len(named))
	}
	for _, name := range named {
		if !there[name] {
			t.Errorf("docs/metrics.md names %s", name)
		}
	}
}
