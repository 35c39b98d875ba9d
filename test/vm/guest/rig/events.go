//go:build vmguest

package rig

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"sync"
	"testing"

	"weir/internal/event"
)

// eventLog is what was read of the log so far. Tests look again and again: each line is parsed once.
type eventLog struct {
	mu     sync.Mutex
	file   os.FileInfo
	read   int64
	events []event.Event
}

// Events reads the log so far; without kinds all of it.
func (s *Sensor) Events(t testing.TB, kinds ...event.Kind) []event.Event {
	t.Helper()
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if err := s.log.readOn(); err != nil {
		t.Fatal(err)
	}
	if len(kinds) == 0 {
		return slices.Clip(s.log.events) // what stands there never changes
	}
	var some []event.Event
	for _, e := range s.log.events {
		if slices.Contains(kinds, e.Kind) {
			some = append(some, e)
		}
	}
	return some
}

// WaitHook waits until the log has after so many events that a call of a session was refused, by this name; an empty one is none.
func (s *Sensor) WaitHook(t testing.TB, session *Session, hook string, after int) {
	t.Helper()
	if hook == "" {
		return
	}
	Eventually(t, "the log tells of a refused "+hook, func() bool {
		return slices.ContainsFunc(s.Events(t)[after:], func(e event.Event) bool {
			return e.Kind == event.Deny && e.Hook == hook && e.Container.Name == session.Name
		})
	})
}

// readOn reads the lines that are new, or all of a file that is another one, or shorter.
func (l *eventLog) readOn() error {
	f, err := os.Open(eventFile)
	if os.IsNotExist(err) {
		l.file, l.read, l.events = nil, 0, nil
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if l.file == nil || !os.SameFile(l.file, info) || info.Size() < l.read {
		l.read, l.events = 0, nil
	}
	l.file = info
	fresh, err := io.ReadAll(io.NewSectionReader(f, l.read, info.Size()-l.read))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(fresh) {
		var e event.Event
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		l.events = append(l.events, e)
		l.read += int64(len(line))
	}
	return nil
}
