package exec

import (
	"slices"
	"time"
)

// waiter waits until all that was in the ring when the reader took note of it has been handled.
type waiter struct {
	noted  bool
	until  uint64 // bytes of the ring, with noted
	served chan struct{}
}

// Drain returns when everything that was executed before the call has been handled: after some milliseconds, one second at most,
// and at once if Run is not running. Where that fails, or something was lost, Find is sure of nothing that is older.
func (p *Probe) Drain() {
	lost, err := p.lost() // before the mark: what is older than these is handled by then
	w := &waiter{served: make(chan struct{})}
	p.mu.Lock()
	running := p.running
	if running != nil {
		p.waiters = append(p.waiters, w)
	}
	wake := p.wake
	p.mu.Unlock()
	if running == nil {
		return
	}
	if wake != nil {
		wake()
	}
	limit := time.NewTimer(drainMost)
	defer limit.Stop()
	select {
	case <-w.served:
		if p.cache.lose(lost); err != nil {
			p.cache.doubt()
		}
		return
	case <-running:
	case <-limit.C:
		p.logger.Warn("exec records come faster than they are handled")
	}
	p.cache.doubt()
	p.mu.Lock()
	p.waiters = slices.DeleteFunc(p.waiters, func(other *waiter) bool { return other == w })
	p.mu.Unlock()
}

// serve takes note of new waiters, lets go those that have what they wait for, and tells whether others are left. handled is what
// the reader is through with, available what is still in the ring.
func (p *Probe) serve(handled uint64, available func() int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters = slices.DeleteFunc(p.waiters, func(w *waiter) bool {
		if !w.noted {
			w.noted, w.until = true, handled+uint64(available())
		}
		if w.until <= handled {
			close(w.served)
			return true
		}
		return false
	})
	return len(p.waiters) > 0
}

// ringSize is the room that a record takes in the ring: a header of 8 bytes, and all rounded up to 8.
func ringSize(length int) uint64 {
	return (uint64(length)+7)&^7 + 8
}
