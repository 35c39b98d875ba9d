//go:build vmguest

package clients

import (
	"sync"
	"testing"
	"time"

	"weir/internal/taint"
	"weir/test/vm/guest/rig"
)

// beats notes when the daemon did not beat: then the kernel holds nobody, whatever the client.
type beats struct {
	mu     sync.Mutex
	missed time.Time // the last moment
}

// stale is an age that no heartbeat passes without being seen, if it comes to the 3 s of the kernel.
const stale = 2500 * time.Millisecond

// listen looks at the heartbeat until t ends.
func listen(t *testing.T) *beats {
	t.Helper()
	b := &beats{}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			if age := int64(taint.Now()) - int64(rig.Heartbeat(t)); age > int64(stale) {
				b.mu.Lock()
				b.missed = time.Now()
				b.mu.Unlock()
			}
			select {
			case <-stop:
				return
			case <-time.After(stale / 10):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return b
}

// since says whether a beat was missed after a moment.
func (b *beats) since(from time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missed.After(from)
}
