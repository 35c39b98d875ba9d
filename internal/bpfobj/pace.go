// Package ring says how long a reader of a ring buffer waits whose writers do not wake it for each record, which costs them more
// than all else: it looks by itself while records come, and has itself woken once none has come for a while. It owns that pace
// and reads nothing.
package bpfobj

import "time"

const (
	quiet    = 100 * time.Millisecond // without a record, until the reader sleeps: to look takes more than to be woken by the first
	dozeMost = time.Second            // a look all the same: a writer may have come in between while the reader fell asleep
)

// Pace is one reader's. It is for one goroutine.
type Pace struct {
	every  time.Duration
	sleep  func(asleep bool) error
	busy   time.Time
	asleep bool
}

// NewPace begins awake. every is how often the reader looks while records come; sleep tells the writers whether the next record
// is to wake it.
func NewPace(every time.Duration, sleep func(asleep bool) error) *Pace {
	return &Pace{every: every, sleep: sleep, busy: time.Now()}
}

// Busy says that something has come.
func (p *Pace) Busy() { p.busy = time.Now() }

// Until is how long the reader waits for a record now. An error is sleep's.
func (p *Pace) Until() (time.Time, error) {
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
func (p *Pace) End() error {
	if !p.asleep {
		return nil
	}
	p.asleep = false
	return p.sleep(false)
}
