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

	"weir/internal/classify"
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

// Decide gives the verdict on one request, for every caller and every way in, by
// the Table. Without taint it returns at once and touches nothing (G4). A tainted
// command may run, but that opens nothing (G24, G25). A tainted connect blocks
// until the reviewer or a person answered, its deadline passed or ctx ended; when
// ctx ends a person's question stays, and a later approval is claimed by the same
// command. So does a command that a bridge was asked about.
//
// On Allow with Reason Approved, call Used with the verdict's Question and open
// the destination only when that returns nil; with Reason Passed, open it.
func (g *Gate) Decide(ctx context.Context, r Request) Verdict {
	v := g.decide(ctx, r)
	g.counters[v.Reason].Add(1)
	return v
}

func (g *Gate) decide(ctx context.Context, r Request) Verdict {
	if r.Mode == "" {
		r.Mode = modeEnforce
	}
	level := levelOf(r.Container.Taint)
	switch {
	case r.Container.ID == "":
		return g.refuse(r, deny(Malformed, "the request names no container"))
	case level == Clean && r.Mode != modeSeal:
		return allow(Untainted, textUntainted)
	case !slices.Contains(modes, r.Mode):
		return g.refuse(r, deny(Malformed, fmt.Sprintf("the request has the unknown mode %q", r.Mode)))
	case !slices.Contains(asks, r.Ask):
		return g.refuse(r, deny(Malformed, fmt.Sprintf("the request asks for the unknown %d", r.Ask)))
	}
	judged := judge(r)
	r.judged = &judged
	row := rowOf(g.table, r.Mode, level, judged.Class, r.point())
	if r.Ask == Run && row.Reason != Observe {
		if v, ok := g.recognise(r); ok {
			return v.classed(judged)
		}
	}
	return g.carry(ctx, r, row, judged).classed(judged)
}

const textUntainted = "the container is not tainted"

// carry goes the steps of a row.
func (g *Gate) carry(ctx context.Context, r Request, row Row, judged classify.Result) Verdict {
	switch {
	case row.Step == Refuse:
		return g.refuse(r, deny(row.Reason, row.Why))
	case row.Step == Pass && row.Reason == Observe && r.Ask == Connect:
		return g.observe(r)
	case row.Step == Pass:
		return allow(row.Reason, row.Why)
	}
	a, err := check(r)
	if v := refusal(a, err); v.Reason != "" {
		return g.refuse(r, v)
	}
	step := row.Step
	failed := unreadable(a.Request, judged)
	if r.Ask == Connect {
		known, ok := g.runs(a.Request)
		switch {
		case !ok:
		case !known.covers(a.Process):
			failed = Differs
		case g.says(ctx, classify.Shell(known.text).Facts, a.Destination):
			return g.reviewed(a.Request, allow(Recognised, "part of a command that "+known.by+" let run before").from(known.by).about(known.question))
		default:
			a.why = "the command was let run before, but did not say that it goes there"
		}
	}
	if failed != "" {
		g.counters[failed].Add(1)
		step, a.why = Person, describe(failed)
	}
	if step == Review && !g.asked(a) {
		v, why := g.opinion(ctx, a.Request, row, judged)
		if v = g.reviewed(a.Request, v); v.Reason != "" {
			return v
		}
		a.why = cmp.Or(why, a.why)
	}
	if !g.hasApprover() {
		return g.refuse(r, deny(NoApprover, textNoApprover))
	}
	return g.ask(ctx, a)
}

// describe words a failure for people.
func describe(r Reason) string {
	i := slices.IndexFunc(Failures(), func(f Failure) bool { return f.Reason == r })
	return Failures()[i].What
}

// refusal gives the denial that no answer can change, or none.
func refusal(a asker, malformed error) Verdict {
	switch {
	case malformed != nil:
		return deny(Malformed, malformed.Error())
	case a.Ask == Connect && a.Destination.Protocol == "udp" && a.Destination.Port == 443:
		return deny(QUIC, "QUIC is refused in a tainted container; use TCP")
	}
	return Verdict{}
}

const textNoApprover = "the policy names no approver, so nobody can open this"

func (g *Gate) hasApprover() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.approver
}

// asked says whether a person was asked this already: their word comes before the reviewer's.
func (g *Gate) asked(a asker) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep()
	defer g.schedule()
	return g.match(a, func(*question) bool { return true }) != nil
}

// reviewed writes a verdict that is about to be given, if there is one.
func (g *Gate) reviewed(r Request, v Verdict) Verdict {
	switch {
	case v.Reason == "":
		return v
	case v.Decision != Allow:
		return g.refuse(r, v)
	}
	if err := g.write(event.Verdict, r, v, ""); err != nil {
		return logFailed(err)
	}
	if r.Ask != Connect {
		g.remember(r, v)
	}
	return v
}

// refuse writes a denial that is about to be given.
func (g *Gate) refuse(r Request, v Verdict) Verdict {
	kind := event.Connect
	if r.Ask == Run || r.Ask == Command {
		kind = event.Verdict
	}
	if err := g.write(kind, r, v, ""); err != nil {
		return logFailed(err).about(v.Question)
	}
	return v
}

// observe allows, and writes what enforce would have done. Without the log there
// is nothing to observe with, and a failure is no allow (G9).
func (g *Gate) observe(r Request) Verdict {
	a, err := check(r)
	would := refusal(a, err)
	if would.Reason == "" && !g.hasApprover() && g.theReviewer() == nil {
		would = deny(NoApprover, textNoApprover)
	}
	text := "would have been denied unless the reviewer or a person had let it out"
	if would.Reason != "" {
		text = fmt.Sprintf("would have been denied (%s): %s", would.Reason, would.Text)
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
		Time:      g.now().UTC(),
		Kind:      k,
		Container: &r.Container,
		Process:   &r.Process,
		Question:  v.Question,
		Message:   message,
		Command:   r.Command,
	}
	if r.Ask != Run && r.Ask != Command {
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
