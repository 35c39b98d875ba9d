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

// Log writes events in order to every sink and to live followers. A sink that is
// slow or stuck holds up nothing but what must be written before it is done. Its
// methods are safe for concurrent use.
type Log struct {
	mu        sync.Mutex // orders events; never held while a sink writes
	lanes     []*lane    // one for each sink
	followers map[*follower]bool
	now       func() time.Time
}

// counts is how many events of each kind are missing somewhere.
type counts map[Kind]uint64

// NewLog returns a log of these sinks. Without sinks only followers see events.
func NewLog(sinks ...Sink) *Log {
	l := &Log{followers: make(map[*follower]bool), now: time.Now}
	for _, s := range sinks {
		l.lanes = append(l.lanes, newLane(s))
	}
	return l
}

// Write writes e to every sink, ahead of what Post has queued, and returns the
// first error after all were tried: a sink that does not take it within two
// seconds has failed. It fills a zero Time; Time is UTC afterwards. What e points
// to must not change any more. A sink that takes events again is first told how
// many it has missed, by a Lost event of the stage sink, or queue after a Post.
func (l *Log) Write(e Event) error {
	var waiting []*entry
	l.each(&e, func(ln *lane) { waiting = append(waiting, ln.urgent(e)) })
	var first error
	for i, w := range waiting {
		if err := l.lanes[i].await(w); err != nil && first == nil {
			first = fmt.Errorf("write event: %w", err)
		}
	}
	return first
}

// Post writes e when the sinks have the time for it, and never waits.
func (l *Log) Post(e Event) {
	l.each(&e, func(ln *lane) { ln.post(e) })
}

// each gives e its time, and gives it to every lane and follower.
func (l *Log) each(e *Event, give func(*lane)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = l.now()
	}
	e.Time = e.Time.UTC()
	for _, ln := range l.lanes {
		give(ln)
	}
	for f := range l.followers {
		f.offer(*e)
	}
}

// Flush waits until all that was posted is written, for some seconds at most.
func (l *Log) Flush() {
	for _, ln := range l.lanes {
		ln.flush()
	}
}

// Missed is how many events sinks have failed to take so far, and how many found
// no room to wait for one.
func (l *Log) Missed() (sink, queue uint64) {
	for _, ln := range l.lanes {
		ln.mu.Lock()
		sink += ln.failed
		queue += ln.dropped
		ln.mu.Unlock()
	}
	return sink, queue
}
