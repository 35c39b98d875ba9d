package event

import (
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	patience  = 2 * time.Second // for one event to be written
	flushTime = 8 * time.Second // for all that are queued
	maxQueued = 16384           // events
	maxBytes  = 24 << 20        // of them, roughly
	maxAlso   = 4096            // events that wait for a sink for which nobody waits

	maxFollowed = 4 << 20 // bytes that wait for a follower
)

var errStuck = errors.New("the event log does not take anything: what reads it, or its disk, is stuck")

// writer is a sink with the events that wait for it.
type writer struct {
	sink Sink
	most int // events in rest, and
	room int // bytes of them

	mu      sync.Mutex
	first   []*entry // what somebody waits for
	rest    []*entry
	bytes   int       // of rest
	running bool      // somebody empties the queues
	since   time.Time // when the event that is being written began to be; zero: none is
	missed  counts    // failed, and not told yet
	over    counts    // dropped, and not told yet
	failed  uint64
	dropped uint64
}

// entry is an event on its way.
type entry struct {
	event Event
	bytes int
	begun bool
	done  chan error // holds one; nil: nobody waits
}

func newWriter(s Sink) *writer {
	return &writer{sink: s, most: maxQueued, room: maxBytes, missed: counts{}, over: counts{}}
}

// writeSync queues e ahead of the others, for await.
func (l *writer) writeSync(e Event) *entry {
	w := &entry{event: e, done: make(chan error, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stuck() {
		l.miss(e.Kind)
		w.begun = true
		w.done <- errStuck
		return w
	}
	l.first = append(l.first, w)
	l.run()
	return w
}

// await returns what became of an entry.
func (l *writer) await(w *entry) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-w.done:
		return err
	case <-late.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.begun {
		l.first = slices.DeleteFunc(l.first, func(o *entry) bool { return o == w })
		l.miss(w.event.Kind)
	}
	select {
	case err := <-w.done:
		return err
	default:
		return errStuck // if it is being written it may still arrive: not lost, but too late
	}
}

func (l *writer) writeAsync(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := size(e)
	if len(l.rest) >= l.most || l.bytes+n > l.room {
		l.over[e.Kind]++
		l.dropped++
		return
	}
	l.rest = append(l.rest, &entry{event: e, bytes: n})
	l.bytes += n
	l.run()
}

// stuck says whether an event has been on its way into the sink for too long.
func (l *writer) stuck() bool { return !l.since.IsZero() && time.Since(l.since) >= patience }

func (l *writer) miss(k Kind) {
	l.missed[k]++
	l.failed++
}

// run lets somebody empty the queues, unless somebody does.
func (l *writer) run() {
	if !l.running {
		l.running = true
		go l.empty()
	}
}

func (l *writer) empty() {
	for {
		l.mu.Lock()
		w := l.next()
		if w == nil {
			l.running = false
			l.mu.Unlock()
			return
		}
		w.begun = true
		losses := append(l.missed.events("sink", w.event.Time), l.over.events("queue", w.event.Time)...)
		l.since = time.Now()
		l.mu.Unlock()
		err := l.write(losses, w.event)
		l.mu.Lock()
		l.since = time.Time{}
		if err != nil {
			l.miss(w.event.Kind)
		}
		l.mu.Unlock()
		if w.done != nil {
			w.done <- err
		}
	}
}

func (l *writer) next() *entry {
	if len(l.first) > 0 {
		w := l.first[0]
		l.first = l.first[1:]
		return w
	}
	if len(l.rest) > 0 {
		w := l.rest[0]
		l.rest[0] = nil
		l.rest = l.rest[1:]
		l.bytes -= w.bytes
		return w
	}
	return nil
}

// write writes e after the losses that the sink has not seen yet.
func (l *writer) write(losses []Event, e Event) error {
	for _, lost := range losses {
		if err := l.sink.Write(lost); err != nil {
			return err
		}
		l.mu.Lock()
		from, k := l.missed, Kind(lost.Loss.What)
		if lost.Loss.Stage == "queue" {
			from = l.over
		}
		if from[k] -= lost.Loss.Count; from[k] == 0 {
			delete(from, k)
		}
		l.mu.Unlock()
	}
	return l.sink.Write(e)
}

// flush waits until nothing is queued, the sink is stuck, or it takes too long.
func (l *writer) flush() {
	for end := time.Now().Add(flushTime); time.Now().Before(end); {
		l.mu.Lock()
		over := !l.running || l.stuck()
		l.mu.Unlock()
		if over {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// size is roughly what a queued event takes.
func size(e Event) int {
	n := 512 + len(e.Message)
	var lists [][]string
	if p := e.Process; p != nil {
		n += 512
		lists = append(lists, p.Argv, p.Env)
	}
	if g := e.Grant; g != nil && g.Process != nil {
		lists = append(lists, g.Process.Argv)
	}
	for _, list := range lists {
		for _, s := range list {
			n += len(s) + 16
		}
	}
	return n
}
