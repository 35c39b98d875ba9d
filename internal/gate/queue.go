package gate

import (
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"

	"weir/internal/event"
)

// QueueEvents are written about questions. They are called with the queue's lock held and
// must not call the queue.
type QueueEvents interface {
	// Write logs an event about a request; a hold has no verdict yet.
	Write(k event.Kind, r Request, v Verdict, message string) error
	// Refuse logs a denial that is about to be given, and gives what to say in its place.
	Refuse(r Request, v Verdict) Verdict
	// Stood logs that a standing approval was given or, with an end, that it is over.
	Stood(c event.Container, a *event.ApprovalInfo) error
	// Ended logs the verdict that ends a question, with all that is known of who gave it.
	Ended(q Question, v Verdict) error
}

// QueueOptions are what a queue needs; all must be set, but zero limits have defaults.
type QueueOptions struct {
	DB         *bbolt.DB // stays the caller's; bucket "questions" is the queue's
	Events     QueueEvents
	Logger     logrus.FieldLogger // failures that change no verdict
	Count      func(Reason)       // counts what stands beside a verdict
	Approver   bool               // a person answers; false denies at once
	AskFor     time.Duration      // how long a question waits; 0 is 300 s
	ClaimFor   time.Duration      // how long after the answer an approval can be used; 0 is 300 s
	MaxPending int                // questions that wait at once; 0 is 256
	Now        func() time.Time
	Causes     func(container string) []event.Cause // why it is tainted; nil: not known

	// Boot names this boot and tells the time since it began: deadlines that are
	// stored hold on that clock however the wall clock is set. An empty id: they hold
	// on the wall clock.
	Boot func() (id string, since time.Duration)
}

const (
	defaultWait    = 300 * time.Second
	defaultPending = 256
	maxAskers      = 64 // of one question
)

// Queue keeps the questions. All its methods may be called at the same time.
type Queue struct {
	opts  QueueOptions // never changes
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

// OpenQueue takes up the questions that an earlier queue left: pending ones keep their id
// and deadline, approvals that were not used can be claimed until their time is over.
func OpenQueue(o QueueOptions) (*Queue, error) {
	s, err := openStore(o.DB)
	if err != nil {
		return nil, err
	}
	if o.MaxPending == 0 {
		o.MaxPending = defaultPending
	}
	d := &Queue{opts: o, store: s, clock: clockOf(o.Now, o.Boot), approver: o.Approver, askFor: orDefault(o.AskFor), claimFor: orDefault(o.ClaimFor)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.restore(); err != nil {
		return nil, err
	}
	return d, nil
}

func orDefault(d time.Duration) time.Duration {
	if d <= 0 {
		return defaultWait
	}
	return d
}

// Configure takes over a reloaded policy. Questions keep the deadline they were
// asked with; without an approver, those that wait are denied now.
func (d *Queue) Configure(approver bool, askFor, claimFor time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.approver, d.askFor, d.claimFor = approver, orDefault(askFor), orDefault(claimFor)
	d.sweep()
	d.dropUnanswerable()
	d.schedule()
}

// Seal ends the questions about containers that are sealed: no answer to them would open anything.
func (d *Queue) Seal(sealed func(container string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giveUpAll(Sealed, func(q *question) bool { return sealed(q.Container.ID) })
	d.schedule()
}

// EndNeedless ends the questions of the kernel about containers that are free: their commands need no answer. A hook waits for its own.
func (d *Queue) EndNeedless(free func(container string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giveUpAll(Cancelled, func(q *question) bool { return q.Text == "" && free(q.Container.ID) })
	d.schedule()
}

// HasApprover says whether a person answers.
func (d *Queue) HasApprover() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.approver
}

// ClaimFor is how long after an answer an approval can be used.
func (d *Queue) ClaimFor() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.claimFor
}

// Close denies everybody who waits. The questions stay stored, so that the next
// queue takes them up. A closed queue denies all that is asked.
func (d *Queue) Close() {
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
			w.answer <- d.opts.Events.Refuse(w.Request, No(Cancelled, textClosed).About(q.ID))
		}
		q.waiters = nil
	}
}

const textClosed = "the sensor is stopping; the question waits for its next start"

// Pending gives the questions that wait for an answer, oldest first.
func (d *Queue) Pending() []Question {
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

// Approvals gives those of commands that a bridge was asked about, in the order of asking.
func (d *Queue) Approvals() []Approval {
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

// Asked says whether a person was asked this already.
func (d *Queue) Asked(a CheckedRequest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	defer d.schedule()
	return d.match(a, func(*question) bool { return true }) != nil
}

// Alive returns when questions can be stored: not while a disk keeps the queue waiting.
func (d *Queue) Alive() {
	d.mu.Lock()
	defer d.mu.Unlock()
}

// Progress counts what was stored. While it grows, a queue that does not answer
// at once is busy, not stuck.
func (d *Queue) Progress() uint64 { return d.store.updates.Load() }

func (d *Queue) find(id string) *question {
	if i := slices.IndexFunc(d.live, func(q *question) bool { return q.ID == id }); i >= 0 {
		return d.live[i]
	}
	return nil
}
