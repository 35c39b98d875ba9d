package event_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
	"weir/test/eventtest"
)

func TestEveryKindIsValid(t *testing.T) {
	var kinds []event.Kind
	for _, e := range sample() {
		kinds = append(kinds, e.Kind)
		line, err := event.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		eventtest.Check(t, line)
		var back event.Event
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			t.Errorf("%s written - read +\n%s", e.Kind, diff)
		}
	}
	if diff := cmp.Diff(event.Kinds(), kinds); diff != "" {
		t.Errorf("kinds - samples +\n%s", diff)
	}
}

// TestMissingPart drops each part of each sample: what the kind needs is missed.
func TestMissingPart(t *testing.T) {
	needs := map[event.Kind][]string{
		event.Exec:     {"process"},
		event.Connect:  {"destination", "process", "verdict"},
		event.Deny:     {"hook", "process", "verdict"},
		event.Drop:     {"container", "destination", "verdict"},
		event.Escape:   {"container", "message", "process"},
		event.Hold:     {"process", "question"},
		event.Verdict:  {"process", "verdict"},
		event.Grant:    {"grant"},
		event.Taint:    {"container", "taint"},
		event.Lost:     {"lost"},
		event.Mode:     {"mode"},
		event.Error:    {"message"},
		event.Start:    {"message"},
		event.Stop:     {"message"},
		event.Tool:     {"container", "process", "use", "verdict"},
		event.Found:    {"container", "finding"},
		event.Approval: {"approval", "container"},
		event.Model:    {"verdict"},
	}
	for _, e := range sample() {
		got := []string{}
		for _, part := range []string{"approval", "container", "destination", "finding", "grant", "hook", "lost", "message", "mode", "process", "question", "taint", "use", "verdict"} {
			line, err := event.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var m map[string]any
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			if err := d.Decode(&m); err != nil {
				t.Fatal(err)
			}
			delete(m, part)
			if line, err = json.Marshal(m); err != nil {
				t.Fatal(err)
			}
			if eventtest.Validate(line) != nil {
				got = append(got, part)
			}
		}
		if diff := cmp.Diff(needs[e.Kind], got); diff != "" {
			t.Errorf("%s needs: want - got +\n%s", e.Kind, diff)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	const start = `{"time":"2026-03-01T12:30:05Z","kind":`
	for name, line := range map[string]string{
		"no JSON":            `kind: exec`,
		"no time":            `{"kind":"start","message":"x"}`,
		"local time":         `{"time":"2026-03-01T12:30:05+01:00","kind":"start","message":"x"}`,
		"unknown kind":       start + `"begin","message":"x"}`,
		"unknown part":       start + `"start","message":"x","colour":"red"}`,
		"unknown inner part": start + `"taint","container":{"id":"c","ip":"x"},"taint":{"source":"operator"}}`,
		"unknown bit":        start + `"taint","container":{"id":"c"},"taint":{"source":"operator","set":["evil"]}}`,
		"unknown mode":       start + `"mode","mode":"off"}`,
		"port too high":      start + `"connect","process":{"pid":1,"start":1,"uid":0},"destination":{"address":"192.0.2.1","protocol":"tcp","port":65536},"verdict":{"decision":"deny","reason":"denied"}}`,
		"third decision":     start + `"connect","process":{"pid":1,"start":1,"uid":0},"destination":{"address":"192.0.2.1","protocol":"tcp"},"verdict":{"decision":"maybe","reason":"denied"}}`,
		"loss of nothing":    start + `"lost","lost":{"stage":"ring","what":"exec","count":0}}`,
		"taint in a start":   start + `"start","message":"x","taint":{"source":"operator"}}`,
	} {
		if eventtest.Validate([]byte(line)) == nil {
			t.Errorf("%s: accepted: %s", name, line)
		}
	}
}
