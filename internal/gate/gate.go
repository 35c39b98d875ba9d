package gate

import (
	"cmp"
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

	// Mode tells the mode that is in force for a container now, by its id: it may have become seal since a request said what it
	// was. nil: it stays what requests say.
	Mode func(container string) string

	// Two says whether two people have to approve what a container asks; nil: one may.
	Two func(container event.Container) bool

	// Causes tells why a container is tainted, by its id; nil: not known.
	Causes func(container string) []event.Cause

	// Broken is told when a rule that always holds is broken, by its name; nil: nobody is. Nothing is allowed by that. It must not call the gate.
	Broken func(invariant, what string)

	// Boot names this boot and tells the time since it began: deadlines that are
	// stored hold on that clock however the wall clock is set. nil: they hold on the
	// wall clock.
	Boot func() (id string, since time.Duration)
}

// Gate decides. All its methods may be called at the same time.
type Gate struct {
	*queue
	log      Logger
	logger   logrus.FieldLogger
	table    []Row
	now      func() time.Time
	resolve  func(context.Context, string) ([]netip.Addr, error)
	mode     func(container string) string
	counters map[Reason]*atomic.Uint64 // the map itself never changes

	mu       sync.Mutex // taken before the queue's, never the other way round
	reviewer Reviewer
	passed   []passed  // oldest first
	running  []running // oldest first
	started  uint64    // how many there were
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
	g := &Gate{
		log:      o.Log,
		logger:   o.Logger,
		reviewer: o.Reviewer,
		table:    Table(),
		now:      o.Now,
		resolve:  o.Resolve,
		mode:     o.Mode,
		counters: make(map[Reason]*atomic.Uint64),
	}
	if g.now == nil {
		g.now = time.Now
	}
	if g.logger == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		g.logger = quiet
	}
	for _, r := range reasons() {
		g.counters[r] = new(atomic.Uint64)
	}
	if err := g.openQueue(o); err != nil {
		return nil, fmt.Errorf("open gate: %w", err)
	}
	return g, nil
}

// Configure takes over a reloaded policy. Questions keep the deadline they were
// asked with; without an approver, and in seal, those that wait are denied now.
func (g *Gate) Configure(reviewer Reviewer, approver bool, askFor, claimFor time.Duration) {
	g.mu.Lock()
	g.reviewer = reviewer
	g.mu.Unlock()
	g.configure(approver, askFor, claimFor)
	g.ModeChanged()
}

// ModeChanged ends the questions about containers that are sealed now: seal asks nobody; and those that observe answers.
func (g *Gate) ModeChanged() {
	g.seal(g.sealed)
	g.EndNeedless(func(container string) bool { return g.mode != nil && g.mode(container) == modeObserve })
}

// sealed says whether a container is sealed now, which may have come after a request was made.
func (g *Gate) sealed(container string) bool { return g.mode != nil && g.mode(container) == modeSeal }

func (g *Gate) count(r Reason) { g.counters[r].Add(1) }

// Counters gives the number of verdicts by reason; every reason has a row.
func (g *Gate) Counters() map[Reason]uint64 {
	all := make(map[Reason]uint64, len(g.counters))
	for r, n := range g.counters {
		all[r] = n.Load()
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
		v = v.Classed(r.Judged)
		v.Failed = cmp.Or(v.Failed, r.Failed)
		e.Verdict = v.Event()
	}
	return e
}
