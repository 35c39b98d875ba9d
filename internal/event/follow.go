package event

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Subscribe returns a channel of the events that are written from now on, and
// what ends it; the channel is closed then. buffer is how many events may wait
// for a slow follower, at least 1, and no more than some megabytes of them. It never slows the log: what does not fit is
// lost to it and counted, and it is told by Lost events of the stage queue as
// soon as it has read what did fit.
func (l *Log) Subscribe(buffer int) (<-chan Event, func()) {
	f := &follower{
		most: max(buffer, 1),
		lost: make(counts),
		wake: make(chan struct{}, 1),
		done: make(chan struct{}),
		out:  make(chan Event),
		now:  l.now,
	}
	l.mu.Lock()
	l.followers[f] = true
	l.mu.Unlock()
	go f.run()
	return f.out, sync.OnceFunc(func() {
		l.mu.Lock()
		delete(l.followers, f)
		l.mu.Unlock()
		close(f.done)
	})
}

// follower is a bounded queue before one reader.
type follower struct {
	mu    sync.Mutex
	queue []Event
	lost  counts
	bytes int // of queue
	most  int
	wake  chan struct{} // something is in queue or lost
	done  chan struct{}
	out   chan Event
	now   func() time.Time
}

// offer queues e or counts it. It never waits.
func (f *follower) offer(e Event) {
	f.mu.Lock()
	n := size(e)
	if len(f.queue) >= f.most || f.bytes+n > maxFollowed && len(f.queue) > 0 {
		f.lost[e.Kind]++
	} else {
		for _, one := range append(f.losses(e.Time), e) {
			f.queue = append(f.queue, one)
			f.bytes += size(one)
		}
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// losses takes the losses that are to be told before the next event.
func (f *follower) losses(at time.Time) []Event {
	events := f.lost.events("queue", at)
	clear(f.lost)
	return events
}

// take returns the next event for the reader.
func (f *follower) take() (Event, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		f.queue, f.bytes = f.losses(f.now().UTC()), 0
		for _, e := range f.queue {
			f.bytes += size(e)
		}
	}
	if len(f.queue) == 0 {
		return Event{}, false
	}
	e := f.queue[0]
	f.queue = f.queue[1:]
	f.bytes -= size(e)
	return e, true
}

func (f *follower) run() {
	defer close(f.out)
	for {
		e, ok := f.take()
		if !ok {
			select {
			case <-f.wake:
				continue
			case <-f.done:
				return
			}
		}
		select {
		case f.out <- e:
		case <-f.done:
			return
		}
	}
}

// events tells the counts, by kind in order of their names.
func (c counts) events(stage string, at time.Time) []Event {
	var events []Event
	for _, k := range slices.Sorted(maps.Keys(c)) {
		events = append(events, Event{Time: at, Kind: Lost, Loss: &Loss{Stage: stage, What: string(k), Count: c[k]}})
	}
	return events
}
