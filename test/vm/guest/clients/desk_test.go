//go:build vmguest

package clients

import (
	"sync"
	"testing"
	"time"

	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

// desk looks at the open questions for all tests: a dozen that poll would keep the VM busy.
type desk struct {
	mu      sync.Mutex
	pending []gate.Question
	changed chan struct{}
}

// open lets a desk work until t ends.
func open(t *testing.T, s *rig.Sensor) *desk {
	t.Helper()
	d := &desk{changed: make(chan struct{})}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			list := s.Pending(t)
			d.mu.Lock()
			d.pending = list
			close(d.changed)
			d.changed = make(chan struct{})
			d.mu.Unlock()
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return d
}

func (d *desk) open() []gate.Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending
}

// wait returns the open questions that want picks, as soon as there are some, or reports that the command ended before. It gives up
// after the time given.
func (d *desk) wait(p *rig.Proc, limit time.Duration, want func(gate.Question) bool) (found []gate.Question, ended bool) {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		_, over := p.WaitFor(0)
		d.mu.Lock()
		changed := d.changed
		d.mu.Unlock()
		if over {
			<-changed // what it asked last is on the list by then
			d.mu.Lock()
			changed = d.changed
			d.mu.Unlock()
			<-changed
		}
		for _, q := range d.open() {
			if want(q) {
				found = append(found, q)
			}
		}
		if over || len(found) > 0 {
			return found, over
		}
		<-changed
	}
	return nil, false
}
