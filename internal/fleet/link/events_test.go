package link

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/event"
)

// read counts the events of a node in the stream, and says what was lost.
func read(t *testing.T, s *Servers, node string) (events int, lost []string) {
	t.Helper()
	err := s.Events(t.Context(), node, false, func(_ string, line []byte) error {
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if events++; e.Kind == event.Lost {
			lost = append(lost, e.Loss.What)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events, lost
}

// TestLossIsSent: that rotation has removed what was not sent is told, also if the first try fails.
func TestLossIsSent(t *testing.T) {
	s, _ := hub(t)
	p, write := node(t, s, "n1")
	write(10)
	if err := p.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.at.File = "rotated away"
	p.known = true
	away, cancel := context.WithCancel(t.Context())
	log := p.log
	p.log = func(context.Context) (*event.Stored, error) {
		cancel() // the log is read, and then nothing can be sent
		return log(t.Context())
	}
	if err := p.publish(away); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	p.log, p.known = log, true // the stream has nothing that is in the log
	if err := p.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, lost := read(t, s, "n1"); len(lost) != 1 || lost[0] != "log" {
		t.Errorf("lost: %q", lost)
	}
}

// TestSmallPayload: a server that takes short messages alone gets all lines, but for one that is too long by itself.
func TestSmallPayload(t *testing.T) {
	s, _ := hubOf(t, 16<<10)
	p, write := node(t, s, "n1")
	write(300)
	long := filepath.Join(t.TempDir(), "long")
	sink, err := event.NewFileSink(long, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{100, 14 << 10, 100} {
		if err := sink.Write(event.Event{Kind: event.Error, Message: string(make([]byte, length/6))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(sink.Close(), p.publish(t.Context())); err != nil {
		t.Fatal(err)
	}
	if events, lost := read(t, s, "n1"); events != 300 || lost != nil {
		t.Errorf("%d events, lost: %q", events, lost)
	}
	if _, err := os.Stat(long); err != nil {
		t.Fatal(err)
	}
	p, err = newPublisher(s, "n2", t.TempDir(), func(context.Context) (*event.Stored, error) { return event.OpenStored(long) })
	if err == nil {
		err = p.publish(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if events, lost := read(t, s, "n2"); events != 3 || len(lost) != 1 || lost[0] != "line" {
		t.Errorf("%d events, lost: %q", events, lost)
	}
}
