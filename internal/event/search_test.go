package event_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

// store writes events to a log, the first half to a file that was rotated.
func store(t testing.TB, all []event.Event) *event.Stored {
	t.Helper()
	dir := t.TempDir()
	for name, half := range map[string][]event.Event{"log-2026-01-31T23-59-59.999.jsonl": all[:len(all)/2], "log.jsonl": all[len(all)/2:]} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range half {
			line, err := event.Marshal(e)
			if err == nil {
				_, err = f.Write(append(line, '\n'))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
	}
	return stored(t, filepath.Join(dir, "log.jsonl"))
}

func stored(t testing.TB, path string) *event.Stored {
	t.Helper()
	s, err := event.OpenStored(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func newest(t *testing.T, s *event.Stored, f event.Filter) (found []event.Event, bad int) {
	t.Helper()
	bad, err := s.Newest(t.Context(), f, func(e event.Event) error { found = append(found, e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return found, bad
}

// Newest finds each part of what an event says that Match finds, in the opposite order, and nothing else; a kind, a container and a time too.
func TestNewestIsMatch(t *testing.T) {
	all := sample()
	strange := all[0]
	strange.Process = &event.Process{PID: 9, Argv: []string{"sh", "-c", "echo \"a\\b\"\n\x1b[2J\tpаypal.com Ünïcode " + strings.Repeat("x", 900) + " END"}, Comm: "\u202ecmd"}
	all = append(all, strange, event.Event{Kind: event.Connect, Container: &event.Container{ID: "b\"2\\", Name: "ÄB"}, Process: &event.Process{PID: 1},
		Destination: &event.Destination{Address: "2001:db8::1", Port: 443, Protocol: "tcp"}})
	for i := range all {
		all[i].Time = time.Date(2026, 3, 1, 12, 30, i, 0, time.UTC)
	}
	s := store(t, all)
	texts := map[string]bool{"": true, "2026-03-01T12:30:16": true, "nothing of it": true}
	for _, e := range all {
		var line bytes.Buffer
		if err := event.Print(&line, e); err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSpace(line.String())
		for i := 0; i < len(text); i++ {
			if strings.Contains(text[max(i-len(`\u0430`), 0):i], `\`) {
				continue // a part of an escape
			}
			for _, n := range []int{3, 7, 40} {
				texts[text[i:min(i+n, len(text))]] = true
			}
		}
	}
	check := func(f event.Filter) {
		var want []event.Event
		for _, e := range slices.Backward(all) {
			if f.Match(e) {
				want = append(want, e)
			}
		}
		found, bad := newest(t, s, f)
		if diff := cmp.Diff(len(want), len(found)); diff != "" || bad != 0 {
			t.Errorf("%+v: %d bad lines, %s", f, bad, diff)
			return
		}
		for i := range want {
			if !want[i].Time.Equal(found[i].Time) {
				t.Errorf("%+v: event %d is of %v, not of %v", f, i, found[i].Time, want[i].Time)
			}
		}
	}
	for text := range texts {
		if text == "000" || strings.Contains(text, "782") || strings.Contains(text, "00Z") || strings.Contains(text, ":30:") && !strings.HasSuffix(text, ":16") {
			continue // only in what is printed
		}
		check(event.Filter{Text: strings.ToUpper(text)})
	}
	for _, k := range event.Kinds() {
		check(event.Filter{Kinds: []event.Kind{k}})
		check(event.Filter{Kinds: []event.Kind{k, event.Stop}, Text: "curl"})
	}
	for _, c := range []string{"c1d2e3f4", "c1d2", "web", "/guard/web", "b\"2\\", "ÄB", "äb", "no"} {
		check(event.Filter{Container: c})
	}
	for _, at := range []int{0, 1, 8, len(all)} {
		moment := all[0].Time.Add(time.Duration(at) * time.Second)
		check(event.Filter{Since: moment})
		check(event.Filter{Before: moment})
		check(event.Filter{Since: moment.Add(-3 * time.Second), Before: moment.Add(time.Millisecond), Kinds: []event.Kind{event.Hold, event.Taint, event.Stop}})
	}
}

// A line that is no event, is torn or is longer than any event breaks nothing; what is around it is found, wherever a block ends.
func TestNewestOfBrokenLog(t *testing.T) {
	for _, gap := range []int{0, 1, 1<<20 - 150, 1<<20 - 75, 1 << 20, 5 << 20, 12 << 20} {
		path := filepath.Join(t.TempDir(), "log.jsonl")
		one := func(message string) string {
			return fmt.Sprintf(`{"time":"2026-03-01T12:30:05Z","kind":"start","message":%q}`, message)
		}
		text := "\x00\xff[]\n" + one("1") + "\r\n\n{}\n" + strings.Repeat("z", gap) + "\n" + one("2") + "\n" + one("3 "+strings.Repeat("y", gap%(3<<20))) + "\n{\"time"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, bad := newest(t, stored(t, path), event.Filter{})
		var got []string
		for _, e := range found {
			got = append(got, e.Message[:1])
		}
		want := 4
		if gap == 0 {
			want = 3
		}
		if diff := cmp.Diff([]string{"3", "2", "1"}, got); diff != "" || bad != want {
			t.Errorf("with %d bytes between, %d bad lines, want - got +\n%s", gap, bad, diff)
		}
	}
}

// It ends with the caller's error, and with the caller's context.
func TestNewestEnds(t *testing.T) {
	s := store(t, sample())
	n := 0
	if _, err := s.Newest(t.Context(), event.Filter{}, func(event.Event) error { n++; return io.EOF }); !errors.Is(err, io.EOF) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n = 0
	if _, err := s.Newest(ctx, event.Filter{}, func(event.Event) error { n++; cancel(); return nil }); !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	pipe := event.NewStored([]*os.File{r})
	defer pipe.Close()
	if _, err := pipe.Newest(t.Context(), event.Filter{}, nil); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}

// A million events as an agent makes them.
func BenchmarkNewest(b *testing.B) {
	const count = 1_000_000
	path := filepath.Join(b.TempDir(), "log.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	size := 0
	sink := event.NewJSONSink(writer(func(line []byte) (int, error) { size += len(line); return f.Write(line) }))
	shell := []event.Ancestor{{PID: 70, Start: 8e9, Comm: "bash", Argv: []string{"bash", "-c", "make -j4 test"}, Exe: "/usr/bin/bash", Inside: true}, {PID: 60, Start: 7e9, Comm: "node", Argv: []string{"claude"}, Exe: "/usr/bin/node", Inside: true}}
	for i := range count {
		e := event.Event{
			Time: time.Date(2026, 3, 1, 12, 0, 0, i*1000, time.UTC), Kind: event.Exec, Mode: "enforce",
			Container: &event.Container{ID: fmt.Sprintf("c%07d", i%50), Name: fmt.Sprintf("web-%d", i%50), Cgroup: "/weir/web", CgroupID: uint64(i % 50), Taint: []string{"secret"}},
			Process: &event.Process{PID: i, Start: uint64(i), UID: 1000, Comm: "gcc", Exe: &event.File{Path: "/usr/bin/gcc", Device: 8, Inode: 99},
				Argv: []string{"gcc", "-O2", "-c", fmt.Sprintf("src/File%d.c", i), "-o", "build/out.o"}, Cgroup: "/weir/web", Ancestry: shell, NetNS: 4026531840, PidNS: 4026531836},
		}
		if i%5 == 0 {
			e.Kind, e.Destination = event.Connect, &event.Destination{Address: fmt.Sprintf("203.0.113.%d", i%250), Port: 443, Protocol: "tcp"}
			e.Verdict = &event.Decision{Decision: "deny", Reason: "tainted"}
		}
		if err := sink.Write(e); err != nil {
			b.Fatal(err)
		}
	}
	f.Close()
	b.Logf("%d MiB", size>>20)
	s := stored(b, path)
	for _, f := range []event.Filter{
		{Text: "file31415.c"}, {Text: "nothing has this"}, {Text: "203.0.113.77:443 denied"}, {Text: "FILE999999", Container: "web-49", Kinds: []event.Kind{event.Exec}}, {Kinds: []event.Kind{event.Escape}},
		{Since: time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)},
	} {
		b.Run(fmt.Sprintf("%s %s %v", f.Text, f.Container, f.Kinds), func(b *testing.B) {
			for b.Loop() {
				found := 0
				if _, err := s.Newest(b.Context(), f, func(event.Event) error { found++; return nil }); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(found), "found")
			}
		})
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(line []byte) (int, error) { return w(line) }
