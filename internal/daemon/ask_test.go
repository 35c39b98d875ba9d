package daemon

import (
	"sync"
	"sync/atomic"
	"testing"
)

// One container may have 2,048 questions on their way, however many it asks at once, and others as many; one that is answered leaves room.
func TestB95Questions(t *testing.T) {
	d := &daemon{asks: map[uint64]int{}}
	var taken atomic.Int32
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 1000 {
				if d.takes(7) {
					taken.Add(1)
				}
			}
		})
	}
	asking.Wait()
	if taken.Load() != 2048 {
		t.Errorf("%d questions are on their way", taken.Load())
	}
	if !d.takes(8) {
		t.Error("another container cannot ask")
	}
	d.asked(8)
	d.asked(7)
	if !d.takes(7) || d.takes(7) {
		t.Error("an answer does not leave room for one question")
	}
	for range 2048 {
		d.asked(7)
	}
	if len(d.asks) != 0 {
		t.Errorf("containers that ask nothing are kept: %v", d.asks)
	}
}
