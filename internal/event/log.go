package event

import (
	"fmt"
	"slices"
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
	writers   []*writer  // one for each sink
	also      []*writer  // for whom nobody waits
	without   map[Kind]bool
	followers map[*follower]bool
	now       func() time.Time
}

// counts is how many events of each kind are missing somewhere.
type counts map[Kind]uint64

// NewLog returns a log of these sinks. Without sinks only followers see events.
func NewLog(sinks ...Sink) *Log {
	l := &Log{followers: make(map[*follower]bool), now: time.Now}
	for _, s := range sinks {
		l.writers = append(l.writers, newWriter(s))
	}
	return l
}

// Also adds a sink for all events but those of some kinds; it must be called before others write. Nobody waits for it, and no error of it is returned:
// what it does not take, or what finds no room to wait for it, it is told later, and AlsoMissed counts it.
func (l *Log) Also(s Sink, without ...Kind) {
	w := newWriter(s)
	w.most, w.room = maxAlso, maxFollowed
	l.also = append(l.also, w)
	l.without = make(map[Kind]bool)
	for _, k := range without {
		l.without[k] = true
	}
}

// Write writes e to every sink, ahead of what WriteAsync has queued, and returns the
// first error after all were tried: a sink that does not take it within two
// seconds has failed. It fills a zero Time; Time is UTC afterwards. What e points
// to must not change any more. A sink that takes events again is first told how
// many it has missed, by a Lost event of the stage sink, or queue after a WriteAsync.
func (l *Log) Write(e Event) error {
	var waiting []*entry
	l.each(&e, func(ln *writer) { waiting = append(waiting, ln.writeSync(e)) })
	var first error
	for i, w := range waiting {
		if err := l.writers[i].await(w); err != nil && first == nil {
			first = fmt.Errorf("write event: %w", err)
		}
	}
	return first
}

// WriteAsync writes e when the sinks have the time for it, and never waits.
func (l *Log) WriteAsync(e Event) {
	l.each(&e, func(ln *writer) { ln.writeAsync(e) })
}

// each gives e its time, and gives it to every writer and follower.
func (l *Log) each(e *Event, give func(*writer)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = l.now()
	}
	e.Time = e.Time.UTC()
	for _, ln := range l.writers {
		give(ln)
	}
	if !l.without[e.Kind] {
		for _, ln := range l.also {
			ln.writeAsync(*e)
		}
	}
	for f := range l.followers {
		f.offer(*e)
	}
}

// Flush waits until all that was posted is written, for some seconds at most.
func (l *Log) Flush() {
	for _, ln := range slices.Concat(l.writers, l.also) {
		ln.flush()
	}
}

// Missed is how many events sinks have failed to take so far, and how many found
// no room to wait for one.
func (l *Log) Missed() (sink, queue uint64) { return missed(l.writers) }

// AlsoMissed is how many events did not get to the sinks of Also.
func (l *Log) AlsoMissed() uint64 {
	sink, queue := missed(l.also)
	return sink + queue
}

func missed(writers []*writer) (sink, queue uint64) {
	for _, ln := range writers {
		ln.mu.Lock()
		sink += ln.failed
		queue += ln.dropped
		ln.mu.Unlock()
	}
	return sink, queue
}
