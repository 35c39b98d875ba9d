package bpfobj

import "time"

const (
	quiet    = 100 * time.Millisecond // without a record, until the reader sleeps: to look takes more than to be woken by the first
	dozeMost = 10 * time.Second       // a look all the same. A writer that came in between while the reader fell asleep has been seen by the look before
)

// AdaptivePoll is one reader's. It is for one goroutine.
type AdaptivePoll struct {
	every  time.Duration
	sleep  func(asleep bool) error
	busy   time.Time
	asleep bool
}

// NewAdaptivePoll begins awake. every is how often the reader looks while records come; sleep tells the writers whether the next record
// is to wake it.
func NewAdaptivePoll(every time.Duration, sleep func(asleep bool) error) *AdaptivePoll {
	return &AdaptivePoll{every: every, sleep: sleep, busy: time.Now()}
}

// Busy says that something has come.
func (p *AdaptivePoll) Busy() { p.busy = time.Now() }

// Until is how long the reader waits for a record now. An error is sleep's.
func (p *AdaptivePoll) Until() (time.Time, error) {
	now := time.Now()
	idle := now.Sub(p.busy) > quiet
	if idle && p.asleep {
		return now.Add(dozeMost), nil
	}
	if idle != p.asleep {
		if err := p.sleep(idle); err != nil {
			return now, err
		}
		p.asleep = idle
	}
	return now.Add(p.every), nil // also just before it sleeps: what a writer submits meanwhile may not wake it
}

// End has the writers wake nobody any more.
func (p *AdaptivePoll) End() error {
	if !p.asleep {
		return nil
	}
	p.asleep = false
	return p.sleep(false)
}
