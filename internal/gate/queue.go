package gate

import (
	"slices"
	"sync"
	"time"

	"weir/internal/event"
)

const (
	defaultWait    = 300 * time.Second
	defaultPending = 256
	maxAskers      = 64 // of one question
)

// queue keeps the questions. All its methods may be called at the same time. It writes events with its lock held.
type queue struct {
	gate  *Gate
	opts  Options // never changes; the optional ones that it uses are set
	store store
	clock func() time.Time

	mu       sync.Mutex
	approver bool
	askFor   time.Duration
	claimFor time.Duration
	live     []*question // pending, or answered and not over; in the order of asking
	ended    []ended     // oldest first
	standing []*standing // approvals that go on, oldest first
	cleared  []clearing  // of the last hour, oldest first
	pruned   struct {
		at   time.Time
		size int
	}
	paces  map[string]pace
	timer  *time.Timer
	closed bool
}

// openQueue takes up the questions that an earlier queue left: pending ones keep their id
// and deadline, approvals that were not used can be claimed until their time is over.
func (g *Gate) openQueue(o Options) error {
	s, err := openStore(o.DB)
	if err != nil {
		return err
	}
	if o.MaxPending == 0 {
		o.MaxPending = defaultPending
	}
	if o.Two == nil {
		o.Two = func(event.Container) bool { return false }
	}
	if o.Broken == nil {
		o.Broken = func(string, string) {}
	}
	if o.Boot == nil {
		o.Boot = func() (string, time.Duration) { return "", 0 }
	}
	d := &queue{gate: g, opts: o, store: s, clock: clockOf(g.now, o.Boot), approver: o.Approver, askFor: orDefault(o.AskFor), claimFor: orDefault(o.ClaimFor)}
	g.queue = d
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.restore()
}

func orDefault(d time.Duration) time.Duration {
	if d <= 0 {
		return defaultWait
	}
	return d
}

// configure takes over a reloaded policy. Questions keep the deadline they were
// asked with; without an approver, those that wait are denied now.
func (d *queue) configure(approver bool, askFor, claimFor time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.approver, d.askFor, d.claimFor = approver, orDefault(askFor), orDefault(claimFor)
	d.sweep()
	d.dropUnanswerable()
	d.schedule()
}

// seal ends the questions about containers that are sealed: no answer to them would open anything.
func (d *queue) seal(sealed func(container string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giveUpAll(Sealed, func(q *question) bool { return sealed(q.Container.ID) })
	d.schedule()
}

// EndNeedless ends the questions of the kernel about containers that are free: their commands need no answer. A hook waits for its own.
func (d *queue) EndNeedless(free func(container string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giveUpAll(Cancelled, func(q *question) bool { return q.Text == "" && free(q.Container.ID) })
	d.schedule()
}

// hasApprover says whether a person answers.
func (d *queue) hasApprover() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.approver
}

// claimTime is how long after an answer an approval can be used.
func (d *queue) claimTime() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.claimFor
}

// Close denies everybody who waits. The questions stay stored, so that the next
// queue takes them up. A closed queue denies all that is asked.
func (d *queue) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
	for _, q := range d.live {
		for _, w := range q.waiters {
			w.answer <- d.gate.refuse(w.Request, No(Cancelled, textClosed).About(q.ID))
		}
		q.waiters = nil
	}
}

const textClosed = "the sensor is stopping; the question waits for its next start"

// Pending gives the questions that wait for an answer, oldest first.
func (d *queue) Pending() []Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	d.schedule()
	var all []Question
	for _, q := range d.live {
		if q.State == StatePending {
			all = append(all, q.told())
		}
	}
	return all
}

// Approval is one that was not used yet.
type Approval struct {
	Question
	Until time.Time // on the queue's clock
}

// approvals gives those of commands that a bridge was asked about, in the order of asking.
func (d *queue) approvals() []Approval {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Approval
	for _, q := range d.live {
		if q.Text != "" && !q.Tool && q.State == StateApproved {
			all = append(all, Approval{q.Question, q.until})
		}
	}
	return all
}

// wasAsked says whether a person was asked this already.
func (d *queue) wasAsked(a CheckedRequest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	defer d.schedule()
	return d.match(a, func(*question) bool { return true }) != nil
}

// Alive returns when questions can be stored: not while a disk keeps the queue waiting.
func (d *queue) Alive() {
	d.mu.Lock()
	defer d.mu.Unlock()
}

// Progress counts what was stored. While it grows, a queue that does not answer
// at once is busy, not stuck.
func (d *queue) Progress() uint64 { return d.store.updates.Load() }

func (d *queue) find(id string) *question {
	if i := slices.IndexFunc(d.live, func(q *question) bool { return q.ID == id }); i >= 0 {
		return d.live[i]
	}
	return nil
}
