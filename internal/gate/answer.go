package gate

import (
	"errors"
	"fmt"
	"slices"

	"weir/internal/event"
)

// Why an id cannot be answered or used.
var (
	ErrUnknown  = errors.New("no such question; see weir pending")
	ErrAnswered = errors.New("already answered")
	ErrExpired  = errors.New("its time is over; run the command again to be asked again")
	ErrUsed     = errors.New("the approval was used already")
	ErrNotGiven = errors.New("not approved")
	ErrScope    = errors.New("an approval for a session or for a key is one of a tool's call that uses a key")
	errClosed   = errors.New("the sensor is stopping")
)

// Answer ends a pending question. When the answer cannot be written or stored,
// everybody who waits is denied and the error says so. The Question is as it is
// after the call.
func (g *Gate) Answer(id string, reply Reply) (Question, error) {
	if reply.By == "" {
		return Question{}, fmt.Errorf("answer question %q: no operator named", id)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return Question{}, fmt.Errorf("answer question %q: %w", id, errClosed)
	}
	g.sweep()
	defer g.schedule()
	q := g.find(id)
	if q == nil || q.State != StatePending {
		r, err := g.past(id)
		if err == nil {
			err = answered(r)
		}
		return r.Question, fmt.Errorf("answer question %q: %w", id, err)
	}
	if !slices.Contains(scopes, reply.Scope) || reply.Scope != "" && (!q.Tool || !reply.Allow) {
		return q.Question, fmt.Errorf("answer question %s: %w", id, ErrScope)
	}
	reason := Denied
	if reply.Allow {
		reason = Approved
	}
	if err := g.end(q, reason, reply); err != nil {
		return q.Question, fmt.Errorf("answer question %s: denied: %w", id, err)
	}
	return q.Question, nil
}

// answered says why a question that is not pending takes no answer.
func answered(r record) error {
	if r.State == StatePending || r.Outcome == Timeout {
		return ErrExpired
	}
	at := r.Answered.Format("15:04:05 MST")
	switch r.Outcome {
	case Approved, Denied:
		return fmt.Errorf("%w: %s by %s at %s", ErrAnswered, r.Outcome, r.By, at)
	default:
		return fmt.Errorf("%w: denied by the sensor at %s (%s)", ErrAnswered, at, r.Outcome)
	}
}

// past finds a question that is not pending.
func (g *Gate) past(id string) (record, error) {
	if q := g.find(id); q != nil {
		return q.record, nil
	}
	r, found, err := g.store.get(id)
	switch {
	case err != nil:
		return record{}, err
	case !found:
		return record{}, ErrUnknown
	}
	return r, nil // one still pending is over too: its end could not be stored
}

// Used takes the approval, durably: only the first call gets nil, and only that
// caller may open the destination, so call it before opening. ErrExpired comes
// when the approval's time is over.
func (g *Gate) Used(id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.use(id); err != nil {
		return fmt.Errorf("use question %q: %w", id, err)
	}
	return nil
}

func (g *Gate) use(id string) error {
	if g.closed {
		return errClosed
	}
	g.sweep()
	defer g.schedule()
	q, err := g.approved(id)
	if err != nil {
		return err
	}
	r := q.record
	r.State = StateUsed
	if err := g.store.put(r); err != nil {
		return err
	}
	q.record = r
	g.drop(q)
	if q.request().Ask == Run {
		g.begin(q.Container, q.Process, q.By, q.ID)
	}
	return nil
}

// Release gives back an approval whose asker was gone before anything was opened
// for it, so that the same command can claim it while its time lasts.
func (g *Gate) Release(id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.release(id); err != nil {
		return fmt.Errorf("release question %q: %w", id, err)
	}
	return nil
}

func (g *Gate) release(id string) error {
	if g.closed {
		return errClosed
	}
	g.sweep()
	defer g.schedule()
	q, err := g.approved(id)
	if err != nil {
		return err
	}
	r := q.record
	r.Taker = process{}
	if err := g.store.put(r); err != nil {
		return err
	}
	q.record = r
	return nil
}

func (g *Gate) approved(id string) (*question, error) {
	q := g.find(id)
	if q != nil && q.State == StateApproved {
		return q, nil
	}
	if q != nil {
		return nil, ErrNotGiven
	}
	r, err := g.past(id)
	switch {
	case err != nil:
		return nil, err
	case r.State == StateUsed:
		return nil, ErrUsed
	case r.Outcome == Approved:
		return nil, ErrExpired
	}
	return nil, ErrNotGiven
}

// end gives a pending question its answer: written, then stored, then told to
// those who wait. When the log or the store fails, an approval becomes a denial.
func (g *Gate) end(q *question, reason Reason, reply Reply) error {
	now := g.now()
	r := q.record
	r.Answered = now.UTC()
	r.By, r.Why, r.From, r.Shown = reply.By, reply.Why, reply.From, shown(reply.Shown)
	if q.Tool && reply.Allow {
		r.Scope = reply.Scope
	}
	q.record = r
	v := q.verdict(reason)

	logErr := g.record(q.Question, q.request(), v)
	if logErr != nil {
		v = logFailed(logErr).about(q.ID)
	}
	taker := q.taker()
	switch {
	case v.Reason == Approved:
		r.State = StateApproved
		if taker != nil {
			r.Taker = taker.self
		}
	case reason == Timeout:
		r.State = StateExpired
	default:
		r.State = StateDenied
	}
	r.Outcome = v.Reason
	q.until = now.Add(g.claimFor)
	r.Claim = q.until.UTC()
	r.ends(g.boot, g.claimFor)
	storeErr := g.store.put(r)
	if storeErr != nil {
		g.logger.WithError(storeErr).Error("store an answer")
		if v.Decision == Allow {
			v = deny(StoreFailed, fmt.Sprintf("the approval cannot be stored: %v", storeErr)).about(q.ID)
			r.State, r.Outcome, r.Taker = StateDenied, v.Reason, process{}
			_ = g.write(event.Verdict, q.request(), v, "the approval is taken back") // it is a denial either way
		}
	}
	q.record = r
	g.tell(q, v, taker)
	// Only a person's word outlives the question.
	if v.Reason != Approved && v.Reason != Denied {
		g.drop(q)
	}
	if logErr != nil {
		return errors.Join(fmt.Errorf("write the verdict: %w", logErr), storeErr)
	}
	return storeErr
}

// taker is who gets an approval: the first who waits in the kernel, since others
// may be gone; else the first who waits.
func (q *question) taker() *waiter {
	for _, w := range q.waiters {
		if w.Held {
			return w
		}
	}
	if len(q.waiters) > 0 {
		return q.waiters[0]
	}
	return nil
}

func (g *Gate) tell(q *question, v Verdict, taker *waiter) {
	for _, w := range q.waiters {
		own := v
		if v.Decision == Allow && w.self != taker.self {
			own = g.refuse(w.Request, q.verdict(UsedOnce))
		}
		w.answer <- own
	}
	q.waiters = nil
}

// request is q as its first asker put it, for events.
func (q *question) request() Request {
	r := Request{Container: q.Container, Process: q.Process, Destination: q.Destination, Command: q.Text, Held: q.Held}
	switch {
	case q.Tool:
		r.Ask = Tool
	case q.Text != "":
		r.Ask = Command
	case q.Destination == event.Destination{}:
		r.Ask = Run
	}
	return r
}
