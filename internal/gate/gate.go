package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"

	"weir/internal/event"
)

// Logger writes one event, and says when it could not: then nothing is allowed.
// It is called with the gate's lock held and must not call the gate.
type Logger interface {
	Write(event.Event) error
}

// Options are what a gate needs. DB and Log must be set.
type Options struct {
	DB         *bbolt.DB          // stays the caller's; bucket "questions" is the gate's
	Log        Logger             // hold, verdict and refused connect events
	Reviewer   Reviewer           // the Cop; nil: a person is asked in its place
	Logger     logrus.FieldLogger // failures that change no verdict; nil drops them
	Approver   bool               // a person answers; false denies at once
	AskFor     time.Duration      // how long a question waits; 0 is 300 s
	ClaimFor   time.Duration      // how long after the answer an approval can be used; 0 is 300 s
	MaxPending int                // questions that wait at once; 0 is 256
	Now        func() time.Time   // nil is time.Now

	// Resolve looks up the addresses of a name that a command has, on the host; nil:
	// a command that names hosts by name is asked about again when it connects (G26).
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)

	// Boot names this boot and tells the time since it began: deadlines that are
	// stored hold on that clock however the wall clock is set. nil: they hold on the
	// wall clock.
	Boot func() (id string, since time.Duration)
}

const (
	defaultWait    = 300 * time.Second
	defaultPending = 256
	maxAskers      = 64 // of one question
)

// Gate decides. All its methods may be called at the same time.
type Gate struct {
	store      store
	log        Logger
	logger     logrus.FieldLogger
	table      []Row
	maxPending int
	now        func() time.Time
	boot       func() (string, time.Duration)
	resolve    func(context.Context, string) ([]netip.Addr, error)
	counters   map[Reason]*atomic.Uint64 // the map itself never changes

	mu       sync.Mutex
	reviewer Reviewer
	approver bool
	askFor   time.Duration
	claimFor time.Duration
	live     []*question // pending, or answered and not over; in the order of asking
	ended    []ended     // oldest first
	pruned   struct {
		at   time.Time
		size int
	}
	paces   map[string]pace
	timer   *time.Timer
	closed  bool
	passed  []passed  // oldest first
	running []running // oldest first
}

// Open makes a gate and takes up the questions that an earlier one left: pending
// ones keep their id and deadline, approvals that were not used can be claimed
// until their time is over.
func Open(o Options) (*Gate, error) {
	switch {
	case o.DB == nil:
		return nil, errors.New("open gate: no database given")
	case o.Log == nil:
		return nil, errors.New("open gate: no event log given")
	case o.AskFor < 0 || o.ClaimFor < 0 || o.MaxPending < 0:
		return nil, fmt.Errorf("open gate: negative limit: ask %v, claim %v, pending %d", o.AskFor, o.ClaimFor, o.MaxPending)
	}
	s, err := openStore(o.DB)
	if err != nil {
		return nil, err
	}
	g := &Gate{
		store:      s,
		log:        o.Log,
		logger:     o.Logger,
		reviewer:   o.Reviewer,
		table:      Table(),
		maxPending: o.MaxPending,
		now:        o.Now,
		boot:       o.Boot,
		resolve:    o.Resolve,
		counters:   make(map[Reason]*atomic.Uint64),
		approver:   o.Approver,
		askFor:     orDefault(o.AskFor),
		claimFor:   orDefault(o.ClaimFor),
	}
	if g.maxPending == 0 {
		g.maxPending = defaultPending
	}
	if g.now == nil {
		g.now = time.Now
	}
	if g.boot == nil {
		g.boot = func() (string, time.Duration) { return "", 0 }
	}
	if g.logger == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		g.logger = quiet
	}
	for _, r := range reasons() {
		g.counters[r] = new(atomic.Uint64)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.restore(); err != nil {
		return nil, err
	}
	return g, nil
}

func orDefault(d time.Duration) time.Duration {
	if d <= 0 {
		return defaultWait
	}
	return d
}

// Configure takes over a reloaded policy. Questions keep the deadline they were
// asked with; without an approver, those that wait are denied now.
func (g *Gate) Configure(reviewer Reviewer, approver bool, askFor, claimFor time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reviewer = reviewer
	g.approver, g.askFor, g.claimFor = approver, orDefault(askFor), orDefault(claimFor)
	g.sweep()
	g.dropUnanswerable()
	g.schedule()
}

// Close denies everybody who waits. The questions stay stored, so that the next
// gate takes them up. A closed gate denies every connect of a tainted container.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
	for _, q := range g.live {
		for _, w := range q.waiters {
			w.answer <- g.refuse(w.Request, deny(Cancelled, textClosed).about(q.ID))
		}
		q.waiters = nil
	}
}

const textClosed = "the sensor is stopping; the question waits for its next start"

// Counters gives the number of verdicts by reason; every reason has a row.
func (g *Gate) Counters() map[Reason]uint64 {
	all := make(map[Reason]uint64, len(g.counters))
	for r, n := range g.counters {
		all[r] = n.Load()
	}
	return all
}

// Pending gives the questions that wait for an answer, oldest first.
func (g *Gate) Pending() []Question {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep()
	g.schedule()
	var all []Question
	for _, q := range g.live {
		if q.State == StatePending {
			all = append(all, q.Question)
		}
	}
	return all
}

// write logs an event about r; a hold has no verdict yet.
func (g *Gate) write(k event.Kind, r Request, v Verdict, message string) error {
	return g.put(g.event(k, r, v, message))
}

func (g *Gate) put(e event.Event) error {
	if err := g.log.Write(e); err != nil {
		g.logger.WithError(err).WithField("kind", e.Kind).Error("write event")
		return err
	}
	return nil
}

func (g *Gate) event(k event.Kind, r Request, v Verdict, message string) event.Event {
	e := event.Event{
		Time:      g.now().UTC(),
		Kind:      k,
		Container: &r.Container,
		Process:   &r.Process,
		Question:  v.Question,
		Message:   message,
		Command:   r.Command,
	}
	if r.Ask != Run && r.Ask != Command && r.Ask != Tool {
		e.Destination = &r.Destination
	}
	if slices.Contains(modes, r.Mode) {
		e.Mode = r.Mode
	}
	if k != event.Hold {
		if r.judged != nil {
			v = v.classed(*r.judged)
		}
		e.Verdict = v.Event()
	}
	return e
}

// Alive returns when the gate can make verdicts: not while a disk keeps it waiting.
func (g *Gate) Alive() {
	g.mu.Lock()
	defer g.mu.Unlock()
}

// Progress counts what was stored. While it grows, a gate that does not answer
// at once is busy, not stuck.
func (g *Gate) Progress() uint64 { return g.store.updates.Load() }

func (g *Gate) find(id string) *question {
	if i := slices.IndexFunc(g.live, func(q *question) bool { return q.ID == id }); i >= 0 {
		return g.live[i]
	}
	return nil
}
