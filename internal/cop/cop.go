package cop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
)

// Options say which reviewer there is, and its limits. A zero limit is its default, but for CacheFor.
type Options struct {
	Model       Reviewer      // asked where static facts are not certain; nil: static alone
	None        bool          // there is no reviewer: every review fails
	Timeout     time.Duration // of one review, with waiting and retry; 5 s
	Concurrency int           // reviews that a model is asked at the same time; 8
	Queue       int           // reviews that may wait beyond that; 16 for each of Concurrency
	CacheFor    time.Duration // how long a verdict is kept; 0: not at all
	CacheSize   int           // verdicts that are kept; 4096
}

// Cop reviews cases by one reviewer, within limits. Build one with New.
type Cop struct {
	model    Reviewer // nil: static alone
	none     bool
	timeout  time.Duration
	queue    int64
	cacheFor time.Duration

	slots   chan struct{}
	waiting atomic.Int64
	flights singleflight.Group
	cache   *lru.Cache[cacheKey, verdict]

	counting sync.Mutex
	stats    Stats

	life    context.Context // until Close
	end     context.CancelCauseFunc
	mu      sync.Mutex        // guards running.Add against Close, and
	shares  map[string]*share // of containers that have reviews
	done    bool
	running sync.WaitGroup
}

// share is what one container has of the reviews: half of those that run, a quarter of those that wait (B155).
type share struct {
	slots   chan struct{}
	reviews int // that run or wait
}

// verdict is a cached opinion.
type verdict struct {
	opinion Opinion
	at      time.Time
}

var errClosed = errors.New("closed")

// New makes a reviewer. It fails on a negative limit, and contacts nobody.
func New(o Options) (*Cop, error) {
	c := &Cop{
		model:    o.Model,
		none:     o.None,
		timeout:  cmp.Or(o.Timeout, 5*time.Second),
		cacheFor: o.CacheFor,
	}
	concurrency := cmp.Or(o.Concurrency, 8)
	c.queue = int64(cmp.Or(o.Queue, 16*concurrency))
	if c.timeout < 0 || concurrency < 0 || c.queue < 0 || o.CacheSize < 0 {
		return nil, errors.New("make reviewer: a limit is negative")
	}
	var err error
	if c.cache, err = lru.New[cacheKey, verdict](cmp.Or(o.CacheSize, 4096)); err != nil {
		return nil, fmt.Errorf("make reviewer: %w", err)
	}
	c.stats.Failures = map[Code]uint64{}
	c.slots, c.shares = make(chan struct{}, concurrency), map[string]*share{}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c, nil
}

// Review gives an opinion within the time limit, or an *Error. Equal cases that are asked at the same time are one
// review. What the static facts are sure of is flagged without asking a model.
func (c *Cop) Review(ctx context.Context, k Case) (Opinion, error) {
	c.count(func(s *Stats) { s.Calls++ })
	o, err := c.review(ctx, k)
	c.count(func(s *Stats) {
		switch {
		case err != nil:
			s.Failures[CodeOf(err)]++
		case o.Flagged:
			s.Flagged++
		default:
			s.Passed++
		}
	})
	return o, err
}

func (c *Cop) review(ctx context.Context, k Case) (Opinion, error) {
	switch {
	case c.none:
		return Opinion{}, Fail(None, "the policy names no reviewer")
	case c.life.Err() != nil:
		return Opinion{}, Fail(Closed, "the reviewer was closed")
	case Size(k) > MaxCase:
		return Opinion{}, Fail(TooLarge, "the case has more than %d bytes", MaxCase)
	}
	if err := ctx.Err(); err != nil {
		return Opinion{}, gone(err)
	}
	exact := keyOf(k)
	v, ok := c.cached(exact)
	if ok {
		c.count(func(s *Stats) { s.Hits++ })
		return v.opinion, nil
	}
	id := exact
	if text := normal(k.Command); text != k.Command {
		other := k
		other.Command = text
		id = keyOf(other)
		if v, ok = c.cached(id); ok {
			c.cache.Add(exact, v) // the next time it is found without a parser
			c.count(func(s *Stats) { s.Hits++ })
			return v.opinion, nil
		}
	}
	o, certain := static(k)
	if c.model == nil || certain {
		if c.model != nil {
			c.count(func(s *Stats) { s.Overruled++ })
		}
		c.keep(id, o)
		return o, nil
	}
	select {
	case r := <-c.flights.DoChan(string(id[:]), func() (any, error) { return c.fly(id, k) }):
		if r.Shared {
			c.count(func(s *Stats) { s.Shared++ })
		}
		if r.Err != nil {
			return Opinion{}, r.Err
		}
		return r.Val.(Opinion), nil
	case <-ctx.Done():
		return Opinion{}, gone(ctx.Err())
	}
}

func gone(err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return Fail(Timeout, "no answer in time")
	}
	return Fail(Cancelled, "who asked went away")
}

// fly is one review for all who ask the same. It goes on when they leave: the next one finds its verdict.
func (c *Cop) fly(id cacheKey, k Case) (Opinion, error) {
	ctx, cancel := context.WithTimeout(c.life, c.timeout)
	defer cancel()
	free, err := c.slot(ctx, k.ID)
	if err != nil {
		return Opinion{}, err
	}
	c.mu.Lock()
	if c.done {
		c.mu.Unlock()
		free()
		return Opinion{}, Fail(Closed, "the reviewer was closed")
	}
	c.running.Add(1)
	c.mu.Unlock()

	type answer struct {
		opinion Opinion
		err     error
	}
	answers := make(chan answer, 1)
	go func() { // a reviewer that ignores its context keeps its slot, and nobody waits for it
		defer c.running.Done()
		defer free()
		o, err := c.ask(ctx, k)
		answers <- answer{o, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return Opinion{}, c.ended(ctx, a.err)
		}
		c.keep(id, a.opinion)
		return a.opinion, nil
	case <-ctx.Done():
		return Opinion{}, c.ended(ctx, ctx.Err())
	}
}

// ended tells a failure of the reviewer from its time limit and from Close.
func (c *Cop) ended(ctx context.Context, err error) error {
	switch {
	case c.life.Err() != nil:
		return Fail(Closed, "the reviewer was closed")
	case ctx.Err() != nil:
		return Fail(Timeout, "no answer within %s", c.timeout)
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return Fail(Failed, "%w", err)
}

// slot waits for one of the reviews that may run at the same time: first those of the container among themselves, so that few of them
// are before another's. free gives it back.
func (c *Cop) slot(ctx context.Context, container string) (free func(), err error) {
	half, quarter := max(cap(c.slots)/2, 1), max(int(c.queue)/4, 1)
	c.mu.Lock()
	own := c.shares[container]
	if own == nil {
		own = &share{slots: make(chan struct{}, half)}
		c.shares[container] = own
	}
	own.reviews++
	full := own.reviews > half+quarter
	c.mu.Unlock()
	leave := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if own.reviews--; own.reviews == 0 {
			delete(c.shares, container)
		}
	}
	if full {
		leave()
		return nil, Fail(QueueFull, "%d reviews of this container wait already, its share", quarter)
	}
	if err := c.enter(ctx, own.slots); err != nil {
		leave()
		return nil, err
	}
	if err := c.enter(ctx, c.slots); err != nil {
		<-own.slots
		leave()
		return nil, err
	}
	return func() {
		<-c.slots
		<-own.slots
		leave()
	}, nil
}

func (c *Cop) enter(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	default:
	}
	if c.waiting.Add(1) > c.queue {
		c.waiting.Add(-1)
		return Fail(QueueFull, "%d reviews wait already", c.queue)
	}
	defer c.waiting.Add(-1)
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return c.ended(ctx, ctx.Err())
	}
}

// ask asks the model, and once more if it was not reached. An answer that is no opinion is an error.
func (c *Cop) ask(ctx context.Context, k Case) (Opinion, error) {
	for again := false; ; again = true {
		start := time.Now()
		o, err := c.model.Review(ctx, k)
		c.asked(time.Since(start))
		if err == nil && (strings.TrimSpace(o.Reason) == "" || len(o.Reason) > MaxReason) {
			err = Fail(Malformed, "an opinion without a short reason")
		}
		if err == nil || again || CodeOf(err) != Transport || ctx.Err() != nil {
			return o, err
		}
		c.count(func(s *Stats) { s.Retries++ })
	}
}

func (c *Cop) cached(id cacheKey) (verdict, bool) {
	if c.cacheFor <= 0 {
		return verdict{}, false
	}
	v, ok := c.cache.Get(id)
	if !ok || time.Since(v.at) >= c.cacheFor { // monotonic: a step of the clock changes nothing
		return verdict{}, false
	}
	return v, true
}

func (c *Cop) keep(id cacheKey, o Opinion) {
	if c.cacheFor > 0 {
		c.cache.Add(id, verdict{o, time.Now()})
	}
}

// Close ends running reviews, refuses new ones, and waits for reviewers to return. It may be called again.
func (c *Cop) Close() {
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	c.end(errClosed)
	c.running.Wait()
}
