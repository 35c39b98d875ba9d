package event

import (
	"fmt"
	"sync"
	"time"
)

// Sink takes events, one at a time. An error means that the event is not there.
type Sink interface {
	Write(Event) error
}

// Log writes events in order to every sink and to live followers. Its methods
// are safe for concurrent use.
type Log struct {
	mu        sync.Mutex
	sinks     []Sink
	missed    []counts // for each sink
	followers map[*follower]bool
	now       func() time.Time
}

// counts is how many events of each kind are missing somewhere.
type counts map[Kind]uint64

// NewLog returns a log of these sinks. Without sinks only followers see events.
func NewLog(sinks ...Sink) *Log {
	l := &Log{sinks: sinks, followers: make(map[*follower]bool), now: time.Now}
	for range sinks {
		l.missed = append(l.missed, make(counts))
	}
	return l
}

// Write writes e to every sink and returns the first error after all were
// tried. It fills a zero Time; Time is UTC afterwards. What e points to must not
// change any more. A sink that takes events again is first told how many it has
// missed, by a Lost event of the stage sink.
func (l *Log) Write(e Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = l.now()
	}
	e.Time = e.Time.UTC()
	var first error
	for i, s := range l.sinks {
		if err := l.sink(s, l.missed[i], e); err != nil && first == nil {
			first = fmt.Errorf("write event: %w", err)
		}
	}
	for f := range l.followers {
		f.offer(e)
	}
	return first
}

// sink writes e to s, after the losses that s has not seen yet.
func (l *Log) sink(s Sink, missed counts, e Event) error {
	for _, lost := range missed.events("sink", e.Time) {
		if err := s.Write(lost); err != nil {
			missed[e.Kind]++
			return err
		}
		delete(missed, Kind(lost.Loss.What))
	}
	if err := s.Write(e); err != nil {
		missed[e.Kind]++
		return err
	}
	return nil
}
