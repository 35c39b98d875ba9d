package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/sirupsen/logrus"

	"weir/internal/event"
	"weir/internal/gate"
)

// Bounds of posting.
const (
	maxQueue     = 512 // notifications that wait
	maxFlying    = 4   // and that are on their way
	attemptTime  = 10 * time.Second
	firstBackoff = time.Second
	mostBackoff  = 30 * time.Second
	endedFor     = 5 * time.Minute // how long the end of a question is worth telling
	remembered   = 4096            // questions whose end was told
)

// Questions is where the notifier reads what it posts; the gate is one.
type Questions interface {
	Question(id string) (gate.Question, error)
	Pending() []gate.Question
}

// Options are what an Notifier needs.
type Options struct {
	Form    string // JSON or Slack
	URL     string // http or https; never logged
	Key     string // signs JSON; never logged
	Proxy   string // empty: none, whatever the environment says
	Host    string // names this host to who reads
	Version string
	Gate    Questions
	Logger  logrus.FieldLogger
	Tell    func(text string) // called when posting begins to fail, and when it works again; it must not block for long
}

// Notifier posts questions and their ends. It holds up nobody: what it cannot
// deliver it drops and counts.
type Notifier struct {
	o      Options
	url    *url.URL
	client *http.Client
	sent   atomic.Uint64
	failed atomic.Uint64 // attempts
	lost   atomic.Uint64 // notifications that were given up
}

// New checks o.
func New(o Options) (*Notifier, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("notify: the URL is not an http or https URL") // it is not repeated: it may be a secret
	}
	if o.Form != JSON && o.Form != Slack {
		return nil, fmt.Errorf("notify: unknown form %q", o.Form)
	}
	if o.Form == JSON && len(o.Key) < minKey {
		return nil, fmt.Errorf("notify: the key has %d bytes: make one of at least %d", len(o.Key), minKey)
	}
	t := &http.Transport{MaxIdleConnsPerHost: maxFlying, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: attemptTime, MaxResponseHeaderBytes: 16 << 10}
	if o.Proxy != "" {
		proxy, err := url.Parse(o.Proxy)
		if err != nil {
			return nil, errors.New("notify: the proxy is not a URL")
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	return &Notifier{o: o, url: u, client: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a question goes nowhere else
	}}, nil
}

// minKey is the least length of a key, in bytes.
const minKey = 16

// Counters gives what was posted and what was not.
func (a *Notifier) Counters() map[string]uint64 {
	return map[string]uint64{"notified": a.sent.Load(), "notify_failed": a.failed.Load(), "lost_notification": a.lost.Load()}
}

// job is one notification on its way.
type job struct {
	id, kind string
	at       time.Time // next attempt
	until    time.Time // then it is given up; zero: the question's deadline
	tries    int
}

// state is what Run alone knows.
type state struct {
	queue  []job
	flying map[string]bool          // ids
	open   map[string]bool          // asked, and not ended yet
	over   *lru.Cache[string, bool] // ids whose end was seen
	done   chan result
	down   bool // the last attempt failed
}

type result struct {
	job   job
	err   error
	gone  bool // nothing is to be told any more
	after time.Duration
	fatal bool // trying again is of no use
}

// Run posts what events tell of until ctx ends or events is closed. Questions
// that wait already are posted first.
func (a *Notifier) Run(ctx context.Context, events <-chan event.Event) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over, err := lru.New[string, bool](remembered)
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	s := &state{flying: map[string]bool{}, open: map[string]bool{}, over: over, done: make(chan result, maxFlying)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	a.catchUp(s)
	for {
		a.start(ctx, s)
		timer.Reset(s.next())
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-events:
			if !ok {
				return nil
			}
			a.see(s, e)
		case r := <-s.done:
			a.finish(s, r)
		case <-timer.C:
		}
	}
}

// see takes up what an event tells. Events carry ids only as far as this is
// concerned: what is posted is read from the gate when it is sent.
func (a *Notifier) see(s *state, e event.Event) {
	switch {
	case e.Kind == event.Lost && e.Loss != nil && e.Loss.Stage == "queue":
		a.catchUp(s)
	case e.Question == "":
	case e.Kind == event.Hold:
		a.ask(s, e.Question)
	case e.Kind == event.Verdict && !a.waits(e.Question):
		a.end(s, e.Question)
	}
}

// waits says whether a question still takes an answer: a verdict may be that of one asker, who left (G15).
func (a *Notifier) waits(id string) bool {
	q, err := a.o.Gate.Question(id)
	return err == nil && q.State == gate.StatePending
}

// catchUp compares what was seen with what is, after a start or a loss.
func (a *Notifier) catchUp(s *state) {
	pending := map[string]bool{}
	for _, q := range a.o.Gate.Pending() {
		pending[q.ID] = true
		a.ask(s, q.ID)
	}
	for id := range s.open {
		if !pending[id] {
			a.end(s, id)
		}
	}
}

func (a *Notifier) ask(s *state, id string) {
	if s.open[id] || s.over.Contains(id) {
		return
	}
	if a.push(s, job{id: id, kind: asked, at: time.Now()}) {
		s.open[id] = true
	}
}

// end posts the end of a question whose asking was posted. One that was
// not yet told of is not told at all.
func (a *Notifier) end(s *state, id string) {
	if s.over.Contains(id) {
		return
	}
	s.over.Add(id, true)
	if !s.open[id] {
		return
	}
	delete(s.open, id)
	now := time.Now()
	for i, j := range s.queue {
		if j.id == id && j.tries == 0 {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			return
		}
	}
	a.push(s, job{id: id, kind: ended, at: now, until: now.Add(endedFor)})
}

func (a *Notifier) push(s *state, j job) bool {
	if len(s.queue) >= maxQueue {
		a.lost.Add(1)
		return false
	}
	s.queue = append(s.queue, j)
	return true
}

// next is how long until something is due.
func (s *state) next() time.Duration {
	wait := time.Hour
	for _, j := range s.queue {
		if !s.flying[j.id] && len(s.flying) < maxFlying {
			wait = min(wait, time.Until(j.at))
		}
	}
	return max(wait, 0)
}

// start sends what is due, one notification of a question at a time.
func (a *Notifier) start(ctx context.Context, s *state) {
	now := time.Now()
	for i := 0; i < len(s.queue) && len(s.flying) < maxFlying; i++ {
		j := s.queue[i]
		if s.flying[j.id] || j.at.After(now) {
			continue
		}
		s.queue = append(s.queue[:i], s.queue[i+1:]...)
		i--
		s.flying[j.id] = true
		go func() { s.done <- a.try(ctx, j) }()
	}
}

func (a *Notifier) finish(s *state, r result) {
	delete(s.flying, r.job.id)
	switch {
	case r.gone:
		return
	case r.err == nil:
		a.sent.Add(1)
		if s.down {
			s.down = false
			a.o.Tell("posting works again")
		}
		return
	}
	a.failed.Add(1)
	if !s.down {
		s.down = true
		a.o.Tell(fmt.Sprintf("posting a question fails, weir pending shows it: %v", r.err))
	}
	j := r.job
	wait := max(min(firstBackoff<<min(j.tries, 10), mostBackoff), r.after)
	wait += rand.N(wait / 4)
	j.tries++
	j.at = time.Now().Add(wait)
	if r.fatal || j.at.After(j.until) {
		a.lost.Add(1)
		a.o.Logger.WithError(r.err).WithField("question", j.id).Error("give up a notification")
		return
	}
	a.push(s, j)
}

// try makes one attempt.
func (a *Notifier) try(ctx context.Context, j job) result {
	q, err := a.o.Gate.Question(j.id)
	if err != nil || j.kind == asked && q.State != gate.StatePending {
		return result{job: j, gone: true}
	}
	if j.until.IsZero() {
		j.until = q.Deadline
	}
	body, err := encode(a.o.Form, j.kind, a.o.Host, q, time.Now())
	if err != nil {
		return result{job: j, err: err, fatal: true}
	}
	ctx, cancel := context.WithDeadline(ctx, time.Now().Add(min(attemptTime, max(time.Until(j.until), time.Second))))
	defer cancel()
	r := a.post(ctx, body)
	r.job = j
	return r
}

// post sends one body. Errors never hold the URL.
func (a *Notifier) post(ctx context.Context, body []byte) result {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "", bytes.NewReader(body))
	if err != nil {
		return result{err: fmt.Errorf("post: %w", err)}
	}
	req.URL, req.Host = a.url, a.url.Host
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "weir/"+a.o.Version)
	if a.o.Form == JSON {
		now := fmt.Sprint(time.Now().Unix())
		req.Header.Set(headerTime, now)
		req.Header.Set(headerSign, "v1="+signature([]byte(a.o.Key), purposeNotify, now, body))
	}
	resp, err := a.client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL
		}
		return result{err: fmt.Errorf("post: %w", err)}
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection serves again
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return result{}
	}
	again := code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500
	return result{err: fmt.Errorf("the receiver answers %d", code), after: retryAfter(resp), fatal: !again}
}

// retryAfter is what the receiver asks for, in bounds.
func retryAfter(r *http.Response) time.Duration {
	n, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, 5*time.Minute)
}
