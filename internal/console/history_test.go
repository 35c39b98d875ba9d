package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
)

func (s *sensor) Log(context.Context) (*event.Stored, error) {
	if err := s.fails(); err != nil {
		return nil, err
	}
	return event.OpenStored(s.log)
}

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hostile is what a container may call itself, and what it runs.
const hostile = "<script>alert(1)</script>\x1b[2J\u202egpj.exe \u0440\u0430ypal"

// life is the events of a container that was tainted, asked, was let out and refused.
func lived() []event.Event {
	c := &event.Container{ID: "c0ffee", Name: hostile, Cgroup: "/weir/a", Taint: []string{"secret"}}
	p := &event.Process{PID: 7, Start: 7, Comm: "curl", Argv: []string{"curl", hostile, "https://example.org"}}
	to := &event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp", Name: "example.org"}
	other := &event.Destination{Address: "2001:db8::1", Port: 22, Protocol: "tcp"}
	all := []event.Event{
		{Kind: event.Exec, Process: p},
		{Kind: event.Connect, Process: p, Destination: to, Verdict: &event.Decision{Decision: "allow", Reason: "listed"}},
		{Kind: event.Taint, Process: p, Change: &event.TaintChange{Set: []string{"secret"}, Source: "file", Why: "opened /srv/key"}},
		{Kind: event.Hold, Process: p, Destination: to, Question: "abc234"},
		{Kind: event.Verdict, Process: p, Destination: to, Question: "abc234", Verdict: &event.Decision{Decision: "allow", Reason: "approved", By: "alice", From: &event.Origin{Via: "control"}}},
		{Kind: event.Grant, Grant: &event.GrantInfo{ID: 5, State: "made", Kind: "cgroup", To: []event.Destination{*to}, Bytes: 1000}},
		{Kind: event.Connect, Process: p, Destination: to, Verdict: &event.Decision{Decision: "allow", Reason: "granted"}},
		{Kind: event.Grant, Grant: &event.GrantInfo{ID: 5, State: "extended", Kind: "cgroup", To: []event.Destination{*to}, Bytes: 2000}},
		{Kind: event.Grant, Grant: &event.GrantInfo{ID: 5, State: "expired", Kind: "cgroup", To: []event.Destination{*to}, Bytes: 400}},
		{Kind: event.Connect, Process: p, Destination: other, Verdict: &event.Decision{Decision: "deny", Reason: "flagged"}},
		{Kind: event.Drop, Destination: other, Verdict: &event.Decision{Decision: "deny", Reason: "tainted"}},
		{Kind: event.Taint, Change: &event.TaintChange{Cleared: []string{"secret"}, Source: "operator", By: "root", Why: "done"}},
		{Kind: event.Taint, Change: &event.TaintChange{Set: []string{"corruption"}, Source: "operator", By: "root"}},
		{Kind: event.Escape, Process: p, Message: "left"},
		{Kind: event.Exec, Process: p},
	}
	for i := range all {
		all[i].Container, all[i].Time = c, began.Add(time.Duration(i)*time.Second)
	}
	return append(all, event.Event{Kind: event.Exec, Time: began.Add(time.Hour), Container: &event.Container{ID: "beef00", Name: "web"}, Process: &event.Process{PID: 9, Argv: []string{"make"}}})
}

// keep writes a log for the sensor; what is broken is lines between.
func (s *served) keep(t *testing.T, all []event.Event, broken ...string) {
	t.Helper()
	s.sensor.log = filepath.Join(t.TempDir(), "log.jsonl")
	f, err := os.Create(s.sensor.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sink := event.NewJSONSink(f)
	for i, e := range all {
		if err := sink.Write(e); err != nil {
			t.Fatal(err)
		}
		if i < len(broken) {
			fmt.Fprintln(f, broken[i])
		}
	}
}

// asksLog asks for path and reads the answer.
func asksLog[A any](t *testing.T, s *served, path string, q map[string]any) (a A) {
	t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	answer, text := s.do(t, path, string(body), nil)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s", path, body, answer.StatusCode, text)
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	for _, c := range text {
		if c != '\n' && (c < ' ' || c > '~' && c != '…') {
			t.Errorf("%s: %q is in the answer: %.300s", path, c, text)
			break
		}
	}
	return a
}

// A search finds what it is asked for, page by page and each event once, in a log that has lines which are no events.
func TestSearch(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	var all []event.Event
	for i := range 3000 {
		e := event.Event{
			Kind: event.Exec, Time: began.Add(time.Duration(i/3) * time.Second), Container: &event.Container{ID: fmt.Sprintf("c%05d", i%5), Name: fmt.Sprintf("web-%d", i%5)},
			Process: &event.Process{PID: i, Argv: []string{"gcc", fmt.Sprintf("File%d.c", i)}},
		}
		if i%100 == 0 {
			e.Kind, e.Destination = event.Connect, &event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"}
			e.Verdict = &event.Decision{Decision: "deny", Reason: "tainted"}
		}
		all = append(all, e)
	}
	s.keep(t, all, "{", `{"time":"2026-03-01T12:00:00Z","kind":7}`, strings.Repeat("[", 100_000), "\x00\xff"+hostile)
	a := asksLog[found](t, s, "/search", map[string]any{"text": "FILE1234.C"})
	if len(a.Events) != 1 || !strings.Contains(a.Events[0].Text, "gcc File1234.c") || !strings.Contains(a.Events[0].Stored, `"File1234.c"`) || a.More {
		t.Errorf("%+v", a)
	}
	a = asksLog[found](t, s, "/search", map[string]any{"text": "192.0.2.1:443", "kinds": []string{"connect"}, "container": "web-0", "since": began.Add(500 * time.Second), "before": began.Add(900 * time.Second)})
	if len(a.Events) != 12 {
		t.Errorf("%d connects", len(a.Events))
	}
	if a = asksLog[found](t, s, "/search", map[string]any{"text": "nowhere"}); len(a.Events) != 0 {
		t.Errorf("%+v", a)
	}
	seen, pages := map[string]bool{}, 0
	for q := (map[string]any{}); ; pages++ {
		a := asksLog[found](t, s, "/search", q)
		for _, e := range a.Events {
			if seen[e.Stored] {
				t.Fatal("found twice:", e.Text)
			}
			seen[e.Stored] = true
		}
		if !a.More {
			if a.Missing != "4 lines of the log are no events" {
				t.Errorf("it says %q", a.Missing)
			}
			break
		}
		q["before"] = a.Events[len(a.Events)-1].Time
	}
	if len(seen) != len(all) || pages < len(all)/mostFound-1 {
		t.Errorf("%d of %d on %d pages", len(seen), len(all), pages)
	}
}

// However long what a container says is, an answer has its bound, and all of it is visible.
func TestSearchOfLongEvents(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	e := lived()[0]
	e.Process.Argv = []string{strings.Repeat("w\u202e", 100_000)}
	e.Message = strings.Repeat("\x1b", 100_000)
	s.keep(t, slices.Repeat([]event.Event{e}, 10))
	a := asksLog[found](t, s, "/search", nil)
	if len(a.Events) != 10 {
		t.Fatal(len(a.Events))
	}
	for _, e := range a.Events {
		if len(e.Text) > mostRow+100 || len(e.Stored) > mostStored+100 || !strings.HasSuffix(e.Text, "more bytes)") {
			t.Errorf("%d and %d bytes", len(e.Text), len(e.Stored))
		}
	}
}

// A container's life has what it ran, where to, what was asked and how long it was tainted, and nothing of another.
func TestLife(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	s.keep(t, lived(), "{}")
	a := asksLog[pictured](t, s, "/life", map[string]any{"container": "c0ffee"})
	if a.Events != 15 || a.From.After(began) || a.To.Before(began.Add(14*time.Second)) || a.To.Sub(a.From) > 40*time.Second {
		t.Errorf("%d events from %v to %v", a.Events, a.From, a.To)
	}
	type line struct {
		Name             string
		Good, Asked, Bad int
		Bytes            int64
	}
	var got []line
	for _, l := range a.Lanes {
		got = append(got, line{l.Name, l.Good, l.Asked, l.Bad, l.Bytes})
		n := 0
		for i, m := range l.Marks {
			n += m.Good + m.Asked + m.Bad
			if i > 0 && m.At.Before(l.Marks[i-1].Until) || m.At.Before(a.From) || m.Until.After(a.To) || len(m.Texts) == 0 {
				t.Errorf("%s: %+v", l.Name, m)
			}
		}
		if n != l.Good+l.Asked+l.Bad {
			t.Errorf("%s: %d in its marks", l.Name, n)
		}
	}
	want := []line{{commands, 2, 0, 0, 0}, {connections, 2, 0, 2, 0}, {questions, 1, 1, 0, 0}, {grants, 1, 0, 0, 1600}, {tools, 0, 0, 0, 0}, {trouble, 0, 0, 1, 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if len(a.Taint) != 2 || a.Taint[0].Bit != "secret" || a.Taint[0].Open || a.Taint[0].To.Sub(a.Taint[0].From) != 9*time.Second || !strings.Contains(a.Taint[0].Why, "opened /srv/key") ||
		a.Taint[1].Bit != "corruption" || !a.Taint[1].Open || len(a.Changes) != 3 {
		t.Errorf("%+v", a.Taint)
	}
	for _, q := range []string{`{}`, `{"container":"nobody"}`, `{"container":"c0ffee","since":"2027-01-01T00:00:00Z"}`} {
		if answer, body := s.do(t, "/life", q, nil); answer.StatusCode != http.StatusBadRequest && answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", q, answer.StatusCode, body)
		}
	}
}

// Whatever times the events have, a picture has at most so many marks, each event is in one of them, and every mark has its time.
func TestPictureIsBounded(t *testing.T) {
	for name, at := range map[string]func(i int) time.Time{
		"one moment": func(int) time.Time { return began },
		"forwards":   func(i int) time.Time { return began.Add(time.Duration(i) * time.Minute) },
		"backwards":  func(i int) time.Time { return began.Add(-time.Duration(i) * time.Hour) },
		"to and fro": func(i int) time.Time {
			return began.Add(time.Duration(i*i%1777) * time.Duration(1-i%2*2) * time.Second)
		},
		"a wrong clock": func(i int) time.Time { return began.AddDate(i%2*100, 0, 0) },
	} {
		p := newPicture(true)
		for i := range 5000 {
			p.add(fmt.Sprint(i%3), event.Event{Kind: event.Exec, Time: at(i)}, outcome(i%3), 1)
		}
		for i := range 3 {
			l := p.drawn(fmt.Sprint(i))
			n, bytes := 0, int64(0)
			for _, m := range l.Marks {
				n, bytes = n+m.Good+m.Asked+m.Bad, bytes+m.Bytes
				if len(m.Texts) > mostTexts || !m.At.Before(m.Until) {
					t.Errorf("%s: %+v", name, m)
				}
			}
			if len(l.Marks) > mostMarks || n < 1666 || bytes != int64(n) {
				t.Errorf("%s: %d marks of %d events, %d bytes", name, len(l.Marks), n, bytes)
			}
		}
	}
	p := newPicture(false)
	p.add("never", event.Event{Time: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, good, 0)
	for i := range 3 * mostLanes {
		p.add(fmt.Sprint(i), event.Event{Time: began}, good, 0)
	}
	if len(p.lanes) != mostLanes+1 || p.lanes[others].counts[good] != 2*mostLanes {
		t.Errorf("%d lanes", len(p.lanes))
	}
}

// Egress has each destination with what came of it and how much was let out.
func TestEgress(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	s.keep(t, lived())
	a := asksLog[pictured](t, s, "/egress", nil)
	if len(a.Lanes) != 2 {
		t.Fatalf("%+v", a.Lanes)
	}
	first, second := a.Lanes[0], a.Lanes[1]
	if first.Name != "example.org:443/tcp" || first.Good != 2 || first.Asked != 1 || first.Bad != 0 || first.Bytes != 1600 || len(first.Containers) != 1 {
		t.Errorf("%+v", first)
	}
	if second.Name != "[2001:db8::1]:22/tcp" || second.Bad != 2 || second.Good != 0 {
		t.Errorf("%+v", second)
	}
	if a := asksLog[pictured](t, s, "/egress", map[string]any{"container": "beef00"}); len(a.Lanes) != 0 {
		t.Errorf("%+v", a)
	}
	var many []event.Event
	for i := range 3 * shownLanes {
		e := lived()[1]
		e.Destination = &event.Destination{Address: fmt.Sprintf("192.0.2.%d", i), Port: 1, Protocol: "tcp"}
		many = append(many, e)
	}
	s.keep(t, many)
	if a := asksLog[pictured](t, s, "/egress", nil); len(a.Lanes) != shownLanes || a.Left != 2*shownLanes {
		t.Errorf("%d lanes, %d left", len(a.Lanes), a.Left)
	}
}

// A replay tells what another policy would change, and which mistakes that policy has.
func TestReplay(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	s.keep(t, lived(), "{}")
	a := asksLog[replayed](t, s, "/replay", map[string]any{"policy": "version: 1\nallow: [{prefix: '2001:db8::1', protocol: tcp, ports: 22}]\n"})
	i := slices.IndexFunc(a.Changes, func(c changed) bool { return c.To == "[2001:db8::1]:22/tcp" })
	if i < 0 || !a.Changes[i].Opens || a.Changes[i].Was != "deny (flagged)" || a.Changes[i].Now != "allow (listed)" || !strings.Contains(a.Changes[i].Command, "curl") ||
		a.Events != 16 || a.Changed == 0 || a.Passed != "1 lines of the log are no events, and are passed over" {
		t.Errorf("%+v", a)
	}
	for policy, want := range map[string]string{"version: 1\nnone: 1\n": "none", "version: 1\nallow: [{prefix: x}]\nmode: y\n": "; ", strings.Repeat("#", 1<<20+2): "more than"} {
		body, err := json.Marshal(map[string]string{"policy": policy})
		if err != nil {
			t.Fatal(err)
		}
		if answer, text := s.do(t, "/replay", string(body), nil); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%.40q: %d %.300s", policy, answer.StatusCode, text)
		}
	}
	if answer, body := s.do(t, "/replay", `{"policy":"version: 1\n","since":"2027-01-01T00:00:00Z"}`, nil); answer.StatusCode != http.StatusConflict {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// What is suggested is what the command line suggests.
func TestSuggest(t *testing.T) {
	var got gate.Suggestion
	s := serve(t, Options{Suggestion: func(r gate.Suggestion) string { got = r; return r.Diff }})
	s.enter(t)
	s.keep(t, lived())
	a := asksLog[map[string]string](t, s, "/suggest", map[string]any{"policy": "version: 1 # mine\n"})
	if len(got.Lessons) != 1 || got.Lessons[0].Approved != 1 || !strings.Contains(a["text"], "+  - name: \"example.org\"") || !strings.Contains(a["text"], "# mine") {
		t.Errorf("%+v\n%s", got, a["text"])
	}
	if asksLog[map[string]string](t, s, "/suggest", map[string]any{"least": 2}); len(got.Lessons) != 0 {
		t.Errorf("%+v", got)
	}
	if answer, body := s.do(t, "/suggest", `{"policy":"none"}`, nil); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// Who was not let in is told nothing of the log, whoever may not look is refused by the sensor, and a request has its bounds.
func TestHistoryIsForMembers(t *testing.T) {
	s := serve(t, Options{})
	s.keep(t, lived())
	paths := []string{"/search", "/life", "/egress", "/replay", "/suggest"}
	for _, path := range paths {
		if answer, body := s.do(t, path, `{"container":"c0ffee"}`, nil); answer.StatusCode != http.StatusUnauthorized || strings.Contains(body, "curl") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
	}
	s.enter(t)
	for _, path := range paths {
		for name, body := range map[string]string{
			"an unknown key": `{"file":"/etc/shadow"}`, "a kind that is none": `{"kinds":["x"]}`, "too much": `{"text":"` + strings.Repeat("x", 3<<20) + `"}`, "no JSON": `x`,
		} {
			if answer, text := s.do(t, path, body, nil); answer.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: %s: %d %.200s", path, name, answer.StatusCode, text)
			}
		}
		answer, body := s.do(t, path, `{}`, func(r *http.Request) { r.Header.Set("Origin", "https://example.org") })
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s from another site: %d %s", path, answer.StatusCode, body)
		}
	}
	s.lock.Lock()
	s.err = control.Errorf(control.Denied, "refused: it is for another group")
	s.lock.Unlock()
	for _, path := range paths {
		if answer, body := s.do(t, path, `{"container":"c0ffee","policy":"version: 1\n"}`, nil); answer.StatusCode != http.StatusForbidden || !strings.Contains(body, "another group") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
	}
	s.lock.Lock()
	s.err = errors.New("events go to standard output")
	s.lock.Unlock()
	if answer, body := s.do(t, "/search", `{}`, nil); answer.StatusCode != http.StatusBadGateway || !strings.Contains(body, "standard output") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}
