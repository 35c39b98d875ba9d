package link

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
)

// curious has questions.
type curious struct {
	control.Backend
	pending, ended []gate.Question
}

func (c *curious) Pending(context.Context) ([]gate.Question, error) { return c.pending, nil }

func (c *curious) History(context.Context, int) ([]gate.Question, error) { return c.ended, nil }

// serve is a client of a sensor.
func serve(t *testing.T, b control.Backend) *control.Client {
	t.Helper()
	dir := t.TempDir()
	c, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- c.Serve(ctx, b, nil) }()
	t.Cleanup(func() { cancel(); <-served })
	return control.NewClient(dir)
}

// TestQuestionsBound: a question takes little of the bucket however long it is, less when it has ended, and one that cannot be told keeps no other back.
func TestQuestionsBound(t *testing.T) {
	s, _ := hub(t)
	asks := func(id, argument string) gate.Question {
		return gate.Question{
			ID: id, State: gate.StatePending, Asked: time.Now(), Deadline: time.Now().Add(time.Hour), Destination: event.Destination{Address: "203.0.113.9", Port: 443, Protocol: "tcp"},
			Process: event.Process{PID: 7, Comm: "curl", Exe: &event.File{Path: "/usr/bin/curl"}, Argv: []string{"curl", argument}},
		}
	}
	sensor := &curious{pending: []gate.Question{asks("no key", ""), asks("short", "https://example.org/"), asks("long", strings.Repeat("<", 1<<19))}}
	q := &questions{Servers: s, Node: Node{Name: "n1", Sensor: serve(t, sensor)}, told: map[string]int{}}
	tell := func() (told map[string]string, bytes int) {
		t.Helper()
		if err := q.tell(t.Context()); err == nil || !strings.Contains(err.Error(), "tell a question") {
			t.Errorf("one cannot be told: %v", err)
		}
		list, err := s.Questions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		told = map[string]string{}
		for _, m := range list {
			told[m.Question.ID] = m.Shown.Text
			if m.Answer != nil {
				told[m.Question.ID] += m.Answer.By
			}
		}
		bucket, err := s.js.KeyValue(t.Context(), s.questions())
		if err != nil {
			t.Fatal(err)
		}
		for id := range told {
			entry, err := bucket.Get(t.Context(), "n1."+id)
			if err != nil {
				t.Fatal(err)
			}
			bytes = max(bytes, len(entry.Value()))
		}
		return told, bytes
	}
	told, bytes := tell()
	if len(told) != 2 || bytes > maxQuestion || !strings.Contains(told["short"], "https://example.org/") || !strings.Contains(told["long"], "not all of it is shown") {
		t.Errorf("%.200q of at most %d bytes", told, bytes)
	}
	for _, e := range sensor.pending[1:] {
		e.State, e.By = gate.StateDenied, "alice"
		sensor.ended = append(sensor.ended, e)
	}
	sensor.pending = sensor.pending[:1]
	if told, bytes = tell(); len(told) != 2 || bytes > 1<<10 || told["short"] != "alice" || told["long"] != "alice" {
		t.Errorf("%.200q of at most %d bytes", told, bytes)
	}
}
