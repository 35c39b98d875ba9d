package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	Logger     logrus.FieldLogger // failures that change no verdict; nil drops them
	Approver   bool               // a person answers; false denies at once
	AskFor     time.Duration      // how long a question waits; 0 is 300 s
	ClaimFor   time.Duration      // how long after the answer an approval can be used; 0 is 300 s
	MaxPending int                // questions that wait at once; 0 is 256
	Now        func() time.Time   // nil is time.Now

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
	maxPending int
	now        func() time.Time
	boot       func() (string, time.Duration)
	counters   map[Reason]*atomic.Uint64 // the map itself never changes

	mu       sync.Mutex
	approver bool
	askFor   time.Duration
	claimFor time.Duration
	live     []*question // pending, or answered and not over; in the order of asking
	ended    []ended     // oldest first
	pruned   struct {
		at   time.Time
		size int
	}
	paces  map[string]pace
	timer  *time.Timer
	closed bool
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
		maxPending: o.MaxPending,
		now:        o.Now,
		boot:       o.Boot,
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
func (g *Gate) Configure(approver bool, askFor, claimFor time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
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

// Decide gives the verdict on one request, for every caller and every way in.
// Without taint it returns at once and touches nothing (G4). A tainted command
// may run, but that opens nothing (G24, G25). A tainted connect blocks until a
// person answered, its deadline passed or ctx ended; when ctx ends the question
// stays, and a later approval is claimed by the same command.
//
// On Allow with Reason Approved, call Used with the verdict's Question and open
// the destination only when that returns nil.
func (g *Gate) Decide(ctx context.Context, r Request) Verdict {
	v := g.decide(ctx, r)
	g.counters[v.Reason].Add(1)
	return v
}

func (g *Gate) decide(ctx context.Context, r Request) Verdict {
	switch {
	case r.Container.ID == "":
		return g.refuse(r, deny(Malformed, "the request names no container"))
	case r.Mode == modeSeal && r.Ask != Run:
		return g.refuse(r, deny(Sealed, "the mode is seal: nothing leaves, whatever the verdict"))
	case len(r.Container.Taint) == 0:
		return allow(Untainted, "the container is not tainted")
	case r.Ask == Run && r.Mode == modeObserve:
		return allow(Observe, "the mode is observe: nothing is denied")
	case r.Ask == Run:
		return allow(SealedRun, "the command may run; what it sends out is denied until a verdict opens it")
	}
	a, err := check(r)
	v, ask := g.refusal(a, err)
	switch {
	case r.Mode == modeObserve:
		return g.observe(r, v, ask)
	case !ask:
		return g.refuse(r, v)
	}
	return g.ask(ctx, a)
}

// refusal gives the denial that needs no question, or says that one must be asked.
func (g *Gate) refusal(a asker, malformed error) (v Verdict, ask bool) {
	switch {
	case malformed != nil:
		return deny(Malformed, malformed.Error()), false
	case a.Destination.Protocol == "udp" && a.Destination.Port == 443:
		return deny(QUIC, "QUIC is refused in a tainted container; use TCP"), false
	case !g.hasApprover():
		return deny(NoApprover, textNoApprover), false
	}
	return Verdict{}, true
}

const textNoApprover = "the policy names no approver, so nobody can open this"

func (g *Gate) hasApprover() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.approver
}

// refuse writes a denial that is about to be given.
func (g *Gate) refuse(r Request, v Verdict) Verdict {
	if err := g.write(event.Connect, r, v, ""); err != nil {
		return logFailed(err).about(v.Question)
	}
	return v
}

// observe allows, and writes what enforce would have done. Without the log there
// is nothing to observe with, and a failure is no allow (G9).
func (g *Gate) observe(r Request, would Verdict, ask bool) Verdict {
	text := fmt.Sprintf("would have been denied (%s): %s", would.Reason, would.Text)
	if ask {
		text = "would have been denied unless a person had approved it"
	}
	v := allow(Observe, text)
	if err := g.write(event.Connect, r, v, ""); err != nil {
		return logFailed(err)
	}
	return v
}

func logFailed(err error) Verdict {
	return deny(LogFailed, fmt.Sprintf("the event log cannot be written (%v); nothing is allowed until it can", err))
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
		Time:        g.now().UTC(),
		Kind:        k,
		Container:   &r.Container,
		Process:     &r.Process,
		Destination: &r.Destination,
		Question:    v.Question,
		Message:     message,
	}
	if known(r.Mode) {
		e.Mode = r.Mode
	}
	if k != event.Hold {
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
