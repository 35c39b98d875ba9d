package event_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/event"
)

// A container that fills the log has nothing rotated away that is kept, and of its own no more than its share; the rest is counted.
func TestB167WhatAContainerCannotFill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	s, err := event.NewFileSink(path, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	written := map[event.Kind]uint64{}
	write := func(e event.Event) {
		t.Helper()
		e.Time = at
		if err := s.Write(e); err != nil {
			t.Fatal(err)
		}
		written[e.Kind]++
	}
	quiet, loud := &event.Container{ID: "quiet"}, &event.Container{ID: "loud"}
	deny, person := &event.Decision{Decision: "deny"}, &event.Decision{Decision: "allow", From: &event.Origin{Via: "control"}}
	tainted := func(c *event.Container) {
		write(event.Event{Kind: event.Taint, Container: c, Change: &event.TaintChange{Set: []string{"secret"}, Source: "file"}})
	}
	tainted(quiet)
	write(event.Event{Kind: event.Deny, Container: quiet, Verdict: deny})
	write(event.Event{Kind: event.Hold, Container: quiet, Question: "q1"})
	flood := func() {
		big := &event.Process{PID: 1, Argv: []string{"/bin/true", strings.Repeat("x", 16<<10)}}
		for range 200 { // 10 MiB
			write(event.Event{Kind: event.Exec, Container: loud, Process: big, Verdict: &event.Decision{Decision: "allow"}})
			write(event.Event{Kind: event.Connect, Container: loud, Process: big, Verdict: deny})
			write(event.Event{Kind: event.Verdict, Container: loud, Process: big, Verdict: deny})
			write(event.Event{Kind: event.Lost, Loss: &event.Loss{Stage: "queue", What: "exec", Count: 1}})
		}
	}
	flood()
	at = at.Add(24 * time.Hour)
	flood()
	tainted(loud)
	write(event.Event{Kind: event.Verdict, Container: loud, Verdict: person})
	write(event.Event{Kind: event.Approval, Container: loud, Approval: &event.ApprovalInfo{}})
	write(event.Event{Kind: event.Mode, Mode: "seal"})
	write(event.Event{Kind: event.Connect, Container: quiet, Verdict: deny})
	write(event.Event{Kind: event.Connect, Container: quiet, Verdict: &event.Decision{Decision: "allow"}})

	kept, of, people, loudest := map[event.Kind]uint64{}, map[string]uint64{}, 0, 0
	err = event.ReadFile(event.KeptFile(path), event.Filter{}, func(e event.Event) error {
		if e.Loss != nil && e.Loss.Stage == "kept" {
			kept[event.Kind(e.Loss.What)] += e.Loss.Count
			return nil
		}
		kept[e.Kind]++
		if e.Container != nil {
			of[e.Container.ID+" "+string(e.Kind)]++
		}
		if e.Verdict != nil && e.Verdict.From != nil {
			people++
		}
		if e.Process != nil {
			loudest += 16 << 10
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(written, event.Exec)
	written[event.Connect]-- // that was let through
	if !maps.Equal(kept, written) {
		t.Errorf("kept or counted: %v, want %v", kept, written)
	}
	for _, want := range []string{"quiet taint", "quiet deny", "quiet hold", "quiet connect", "loud taint", "loud approval"} {
		if of[want] != 1 {
			t.Errorf("%s: %d, want 1: %v", want, of[want], of)
		}
	}
	if people != 1 {
		t.Errorf("%d answers of a person, want 1", people)
	}
	if most := 2 << 20 / 16; loudest == 0 || loudest > most {
		t.Errorf("a container has %d bytes in two days, want at most %d, and some", loudest, most)
	}
	if has, err := event.Has(path, "quiet"); err != nil || !has {
		t.Errorf("the log itself: %v, %v", has, err)
	}
}
