package notify

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"weir/internal/event"
	"weir/internal/gate"
)

const testKey = "not-a-real-key-0123456789"

// questions is a gate that knows what it is told.
type questions struct {
	mu      sync.Mutex
	all     map[string]gate.Question
	replies []gate.Reply
}

func (g *questions) put(q gate.Question) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[string]gate.Question{}
	}
	g.all[q.ID] = q
}

func (g *questions) Question(id string) (gate.Question, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q, ok := g.all[id]
	if !ok {
		return q, gate.ErrUnknown
	}
	return q, nil
}

func (g *questions) Pending() (list []gate.Question) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, q := range g.all {
		if q.State == gate.StatePending {
			list = append(list, q)
		}
	}
	return list
}

func (g *questions) Answer(id string, r gate.Reply) (gate.Question, error) {
	q, err := g.Question(id)
	switch {
	case err != nil:
		return q, fmt.Errorf("answer question %q: %w", id, err)
	case q.Outcome == gate.Timeout:
		return q, fmt.Errorf("answer question %q: %w", id, gate.ErrExpired)
	case q.State != gate.StatePending:
		return q, fmt.Errorf("answer question %q: %w", id, gate.ErrAnswered)
	}
	if r.Scope > len(q.Chain) || r.Scope != 0 && !r.Allow {
		return q, fmt.Errorf("answer question %q: no scope 3: %w", id, gate.ErrScope)
	}
	q.State, q.Outcome, q.By, q.Why, q.Scope = gate.StateDenied, gate.Denied, r.By, r.Why, r.Scope
	if r.Allow {
		q.State, q.Outcome = gate.StateApproved, gate.Approved
	}
	g.put(q)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replies = append(g.replies, r)
	return q, nil
}

// ask is a question that waits for five minutes from now on.
func ask(id string) gate.Question {
	now := time.Now().UTC()
	return gate.Question{
		ID:        id,
		Container: event.Container{ID: "c1", Name: "web", Taint: []string{"secret"}},
		Process: event.Process{
			PID: 100, Start: 1, UID: 1000, Comm: "curl", Exe: &event.File{Path: "/usr/bin/curl", Device: 8, Inode: 42},
			Argv: []string{"curl", "-H", "Authorization: Bearer s3cr3tvalue", "https://example.org/\u202e<!channel>&\x1b[2J"},
		},
		Destination: event.Destination{Address: "203.0.113.9", Port: 443, Protocol: "tcp"},
		Held:        true, Asked: now, Deadline: now.Add(5 * time.Minute), State: gate.StatePending, Askers: 1,
	}
}

// inScript is a question of a curl in a script.
func inScript(id string) gate.Question {
	q := ask(id)
	q.Chain = []event.Member{q.Process.Member(), {PID: 90, Comm: "bash", Exe: "/usr/bin/bash", Argv: []string{"bash", "fetch.sh\n", "--token", "s3cr3tvalue"}, Truncated: true}}
	return q
}

func hold(id string) event.Event { return event.Event{Kind: event.Hold, Question: id} }

func entry(id string) event.Event { return event.Event{Kind: event.Verdict, Question: id} }

// receiver notes what it is sent and answers as it is told.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer func(n int, w http.ResponseWriter, r *http.Request) // n from 0
	news   chan struct{}
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{news: make(chan struct{}, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		n := len(r.got)
		r.got = append(r.got, received{req.Header.Clone(), body})
		answer := r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(n, w, req)
		}
		r.news <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received{}, r.got...)
}

func quiet() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

// run posts until t ends.
func run(t *testing.T, o Options) (*Notifier, chan event.Event) {
	t.Helper()
	o.Logger, o.Host, o.Version = quiet(), "host1", "v0"
	if o.Key == "" {
		o.Key = testKey
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan event.Event, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- a.Run(ctx, events) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a, events
}

// eventually waits for something that must come; it fails only if it never does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 6000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: it did not happen", what)
}

// telling is what people were told.
type telling struct {
	mu  sync.Mutex
	all []string
}

func (l *telling) tell(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *telling) texts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.all...)
}
