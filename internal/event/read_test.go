package event_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

func TestFilter(t *testing.T) {
	at := sample()[0].Time
	for _, c := range []struct {
		name string
		f    event.Filter
		want string
	}{
		{"all", event.Filter{}, "exec connect hold verdict grant taint lost mode error start stop tool finding deny drop escape approval model"},
		{"kinds", event.Filter{Kinds: []event.Kind{event.Stop, event.Hold}}, "hold stop"},
		{"container by name", event.Filter{Container: "web", Kinds: []event.Kind{event.Hold, event.Start}}, "hold"},
		{"container by cgroup", event.Filter{Container: "/guard/web", Kinds: []event.Kind{event.Hold}}, "hold"},
		{"container by start of the id", event.Filter{Container: "c1d2", Kinds: []event.Kind{event.Hold}}, "hold"},
		{"container by too little of the id", event.Filter{Container: "c1d"}, ""},
		{"since then", event.Filter{Since: at, Kinds: []event.Kind{event.Stop}}, "stop"},
		{"since later", event.Filter{Since: at.Add(1)}, ""},
		{"argv across words", event.Filter{Text: "-d TWO words"}, "exec connect hold verdict tool deny escape model"},
		{"address", event.Filter{Text: "192.0.2.53"}, "hold grant"},
		{"ancestor", event.Filter{Text: "BASH", Kinds: []event.Kind{event.Exec}}, "exec"},
		{"message", event.Filter{Text: "failed"}, "error tool"},
		{"nothing", event.Filter{Text: "nowhere"}, ""},
	} {
		var got []string
		for _, e := range sample() {
			if c.f.Match(e) {
				got = append(got, string(e.Kind))
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s, want - got +\n%s", c.name, diff)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "events.log")
	event1 := func(message string) string {
		return fmt.Sprintf(`{"time":"2026-03-01T12:30:05Z","kind":"start","message":%q,"later":1}`, message)
	}
	for name, text := range map[string]string{
		"events.log":                         event1("4") + "\n\n{\"time\n" + event1("5") + "\r\n[]\n{}\n" + strings.Repeat("z", 5<<20) + "\n" + event1("6"),
		"events-2026-02-01T00-00-00.000.log": event1("2") + "\n" + event1("3") + "\n\x1b[2J",
		"events-2026-01-31T23-59-59.999.log": event1("1") + "\n",
		"events-old.log":                     "not of this log\n",
		"other-2026-01-01T00-00-00.000.log":  "not of this log\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(path, filepath.Join(dir, "events-2026-03-01T00-00-00.000.log")); err != nil { // rotated while it is read
		t.Fatal(err)
	}
	var got []string
	err := event.ReadFile(path, event.Filter{}, func(e event.Event) error {
		got = append(got, e.Message)
		return nil
	})
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5", "6"}, got); diff != "" {
		t.Errorf("messages, want - got +\n%s", diff)
	}
	want := `DIR/events-2026-02-01T00-00-00.000.log:3: not an event: not JSON from byte 1 on
DIR/events.log:3: not an event: not JSON from byte 6 on
DIR/events.log:5: not an event: it is a JSON array: wanted is an object
DIR/events.log:6: not an event: it has no time or no kind
DIR/events.log:7: longer than any event`
	if diff := cmp.Diff(want, strings.ReplaceAll(fmt.Sprint(err), dir, "DIR")); diff != "" {
		t.Errorf("error, want - got +\n%s", diff)
	}

	stop := errors.New("enough")
	n := 0
	err = event.ReadFile(path, event.Filter{Text: "start"}, func(event.Event) error { n++; return stop })
	if n != 1 || !errors.Is(err, stop) {
		t.Errorf("after an error of fn: %d calls, %v", n, err)
	}
}

func TestHas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log := "nonsense\n" + `{"time":"2026-01-02T03:04:05Z","kind":"start","container":{"id":"c0ffee","name":"web"}}` + "\n"
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"web": true, "c0ff": true, "nope": false} {
		if got, err := event.Has(path, name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := event.Has(path+"x", "web"); err == nil {
		t.Error("a log that is not there has events")
	}
}

func TestReadFileErrors(t *testing.T) {
	dir := t.TempDir()
	many := filepath.Join(dir, "many")
	if err := os.WriteFile(many, []byte(strings.Repeat("x\n", 25)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "open event log: open DIR/none: no such file or directory",
		dir:                        "open event log: open DIR: is a directory",
		many:                       "5 more lines are no events",
	} {
		err := event.ReadFile(path, event.Filter{}, func(event.Event) error { return nil })
		if got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestReadWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log") // a name without an extension
	s, err := event.NewFileSink(path, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := event.NewLog(s)
	want := sample()
	for _, e := range want {
		if err := l.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	var got []event.Event
	if err := event.ReadFile(path, event.Filter{Since: want[0].Time.Add(-time.Second)}, func(e event.Event) error {
		got = append(got, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written - read +\n%s", diff)
	}
}

// A log is read whole, whatever is in it: each line is an event, or told as bad.
func FuzzReadFile(f *testing.F) {
	f.Add([]byte(`{"time":"2026-01-02T03:04:05Z","kind":"start","message":"x"}` + "\n{}\nnot json\n\n"))
	f.Add([]byte(`{"time":"2026-01-02T03:04:05Z","kind":"hold","process":{"pid":1,"argv":["\u001b[2J"]},"destination":{"address":"::1","port":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		events := 0
		err := event.ReadFile(path, event.Filter{}, func(e event.Event) error {
			events++
			var line bytes.Buffer
			if err := event.Print(&line, e); err != nil {
				return err
			}
			if s := strings.TrimSuffix(line.String(), "\n"); s != event.Visible(s) {
				t.Errorf("a terminal would be harmed by %q", s)
			}
			return nil
		})
		var bad *event.BadLines
		if err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
		lines := 0
		for line := range bytes.Lines(data) {
			if len(bytes.Trim(line, "\r\n")) > 0 {
				lines++
			}
		}
		if bad != nil {
			events += bad.Count
		}
		if events != lines {
			t.Errorf("%d events and bad lines of %d lines", events, lines)
		}
	})
}
