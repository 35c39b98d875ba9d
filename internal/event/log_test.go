package event_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
	"weir/test/eventtest"
)

// memory is a sink whose failure a test sets.
type memory struct {
	events []event.Event
	fail   error
}

func (m *memory) Write(e event.Event) error {
	if m.fail != nil {
		return m.fail
	}
	m.events = append(m.events, e)
	return nil
}

func TestWriteFillsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		l := event.NewLog(&m)
		given := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("east", 3600))
		for _, e := range []event.Event{{Kind: event.Start}, {Kind: event.Stop, Time: given}} {
			if err := l.Write(e); err != nil {
				t.Fatal(err)
			}
		}
		want := []event.Event{{Kind: event.Start, Time: time.Now().UTC()}, {Kind: event.Stop, Time: given.UTC()}}
		if diff := cmp.Diff(want, m.events); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
		if m.events[1].Time.Location() != time.UTC {
			t.Errorf("time in %s, want UTC", m.events[1].Time.Location())
		}
	})
}

// TestG9FailedSink: the caller, who would answer next, sees the first failure; all
// other sinks have the event; the failed one is told later what it has missed.
func TestG9FailedSink(t *testing.T) {
	full, broken := errors.New("no space"), errors.New("broken")
	first, second, third := &memory{fail: full}, &memory{fail: broken}, &memory{}
	l := event.NewLog(first, second, third)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, k := range []event.Kind{event.Hold, event.Exec, event.Hold} {
		if err := l.Write(event.Event{Kind: k, Time: at}); !errors.Is(err, full) || errors.Is(err, broken) {
			t.Errorf("Write returns %v, want the first error", err)
		}
	}
	if len(third.events) != 3 {
		t.Errorf("the working sink has %d events, want 3", len(third.events))
	}
	first.fail, second.fail = nil, nil
	if err := l.Write(event.Event{Kind: event.Stop, Time: at}); err != nil {
		t.Fatal(err)
	}
	lost := func(k event.Kind, n uint64) event.Event {
		return event.Event{Time: at, Kind: event.Lost, Loss: &event.Loss{Stage: "sink", What: string(k), Count: n}}
	}
	want := []event.Event{lost(event.Exec, 1), lost(event.Hold, 2), {Kind: event.Stop, Time: at}}
	if diff := cmp.Diff(want, first.events); diff != "" {
		t.Errorf("first sink, want - got +\n%s", diff)
	}
	if err := l.Write(event.Event{Kind: event.Stop, Time: at}); err != nil || len(first.events) != 4 {
		t.Errorf("a loss is told again: %v, %d events", err, len(first.events))
	}
}

// TestG9FullDisk writes to a device that is always full.
func TestG9FullDisk(t *testing.T) {
	device, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	err = event.NewLog(event.NewJSONSink(device)).Write(sample()[0])
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Write to a full disk returns %v, want ENOSPC", err)
	}
}

// shortDisk takes some bytes, then none, then all.
type shortDisk struct {
	bytes.Buffer
	room []int
}

func (d *shortDisk) Write(p []byte) (int, error) {
	if len(d.room) == 0 {
		return d.Buffer.Write(p)
	}
	n := min(d.room[0], len(p))
	d.room = d.room[1:]
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// TestTornLine: a line that the disk took in part never spoils the next one.
func TestTornLine(t *testing.T) {
	d := &shortDisk{room: []int{0, 10, 0, 1}}
	s := event.NewJSONSink(d)
	for range 4 {
		if err := s.Write(sample()[9]); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Write returns %v, want ENOSPC", err)
		}
	}
	for range 2 {
		if err := s.Write(sample()[9]); err != nil {
			t.Error(err)
		}
	}
	line, err := event.Marshal(sample()[9])
	if err != nil {
		t.Fatal(err)
	}
	want := string(line[:10]) + "\n\n" + string(line) + "\n" + string(line) + "\n"
	if diff := cmp.Diff(want, d.String()); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// TestB51Marshal: also the raw log is harmless on a terminal, and says the same.
func TestB51Marshal(t *testing.T) {
	e := sample()[9]
	e.Message = "<a>&\x1b[2J\u009b2J\u202e\u200b\x7f\U000e0041\u3164\u05d0 é 日\xff"
	line, err := event.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-03-01T12:30:05.25Z","kind":"start","message":"<a>&\u001b[2J\u009b2J\u202e\u200b\u007f\udb40\udc41\u3164\u05d0 é 日\ufffd"}`
	if diff := cmp.Diff(want, string(line)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	eventtest.Check(t, line)
}

func TestFileSinkRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "events.log")
	s, err := event.NewFileSink(path, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := sample()[9]
	e.Message = strings.Repeat("x", 200<<10)
	const events = 13 // 5 of them fill a MiB
	for i := range events {
		e.Question = fmt.Sprint(i)
		if err := s.Write(e); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // backups are named by the millisecond
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the log has mode %o, want 600", info.Mode().Perm())
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f os.DirEntry) bool { return strings.HasPrefix(f.Name(), "events.kept") })
	if len(files) != 3 {
		t.Errorf("%d files after two rotations, want 3: %v", len(files), files)
	}
	var order []string
	if err := event.ReadFile(path, event.Filter{}, func(e event.Event) error {
		order = append(order, e.Question)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11 12"); !cmp.Equal(want, order) {
		t.Errorf("read %v, want %v", order, want)
	}
}

// TestFileSinkAfterCrash: what a killed sensor left unfinished takes only itself.
func TestFileSinkAfterCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.log")
	if err := os.WriteFile(path, []byte(`{"time":"2026`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := event.NewFileSink(path, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(sample()[9]); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	err = event.ReadFile(path, event.Filter{}, func(event.Event) error { n++; return nil })
	var bad *event.BadLines
	if n != 1 || !errors.As(err, &bad) || bad.Count != 1 {
		t.Errorf("read %d events and %v, want 1 and one bad line", n, err)
	}
}

func TestNewFileSinkErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path          string
		size, backups int
		want          string
	}{
		{dir, 1, 1, "open event log DIR: not a regular file: name a file, or none for standard output"},
		{"/dev/full", 1, 1, "open event log /dev/full: not a regular file: name a file, or none for standard output"},
		{file + "/below", 1, 1, "open event log: stat DIR/file/below: not a directory"},
		{file, 0, 1, "open event log DIR/file: size and backups must be at least 1"},
		{file, 1, 0, "open event log DIR/file: size and backups must be at least 1"},
	} {
		_, err := event.NewFileSink(c.path, c.size, c.backups)
		if got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
}

func TestConcurrentWrite(t *testing.T) {
	var out bytes.Buffer
	l := event.NewLog(event.NewJSONSink(&out))
	events, end := l.Subscribe(1000)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			for range 20 {
				if err := l.Write(sample()[0]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		if e := <-events; e.Kind != event.Exec {
			t.Errorf("followed %s, want exec", e.Kind)
		}
	}
	group.Wait()
	end()
	if n := eventtest.CheckLines(t, out.Bytes()); n != 200 {
		t.Errorf("%d lines, want 200", n)
	}
}
