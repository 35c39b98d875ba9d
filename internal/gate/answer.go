package gate

import (
	"errors"
	"fmt"

	"weir/internal/event"
)

// Why an id cannot be answered or used.
var (
	ErrUnknown  = errors.New("no such question; see weir pending")
	ErrAnswered = errors.New("already answered")
	ErrExpired  = errors.New("its time is over; run the command again to be asked again")
	ErrUsed     = errors.New("the approval was used already")
	ErrNotGiven = errors.New("not approved")
	ErrScope    = errors.New("nothing was answered") // as an end of what is wrong with the scope
	ErrTwo      = errors.New("its container has read secrets and may be corrupted: the policy wants two operators of the fleet to approve it, or root on the node")
	ErrFor      = errors.New("its answer cannot cover that; weir pending lists what an approval of it can cover")
	errClosed   = errors.New("the sensor is stopping")
)

// textNeedless is why a question ended whose command needs no answer.
const textNeedless = "the container was untainted, or its mode became observe: the command goes on without an answer"

// Answer ends a pending question. When the answer cannot be written or stored,
// everybody who waits is denied and the error says so. The Question is as it is
// after the call.
func (d *queue) Answer(id string, reply Reply) (Question, error) {
	if reply.By == "" {
		return Question{}, fmt.Errorf("answer question %q: no operator named", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return Question{}, fmt.Errorf("answer question %q: %w", id, errClosed)
	}
	d.sweep()
	defer d.schedule()
	q := d.find(id)
	if q == nil || q.State != StatePending {
		r, err := d.past(id)
		if err == nil {
			err = answered(r)
		}
		return r.Question, fmt.Errorf("answer question %q: %w", id, err)
	}
	if _, ok := q.cover(reply); !ok {
		return q.told(), fmt.Errorf("answer question %s: %w", id, ErrFor)
	}
	stands := reply.For != "" && !q.Tool
	if !stands {
		if err := q.takes(reply); err != nil {
			return q.told(), fmt.Errorf("answer question %s: %w", id, err)
		}
	}
	if reply.alone() && d.opts.Two(q.Container) {
		return q.told(), fmt.Errorf("answer question %s: %w", id, ErrTwo)
	}
	if stands {
		if err := d.stand(q, reply); err != nil {
			return q.told(), fmt.Errorf("answer question %s: %w", id, err)
		}
		return q.Question, nil
	}
	reason := Denied
	if reply.Allow {
		reason = Approved
	}
	if err := d.end(q, reason, reply); err != nil {
		return q.Question, fmt.Errorf("answer question %s: denied: %w", id, err)
	}
	return q.Question, nil
}

// takes says why a reply's scope cannot be had.
func (q *question) takes(reply Reply) error {
	switch n := len(q.Chain); {
	case reply.Scope == 0 || reply.Allow && reply.Scope > 0 && reply.Scope <= n:
		return nil
	case !reply.Allow:
		return fmt.Errorf("a denial has no scope: %w", ErrScope)
	case n == 0:
		return fmt.Errorf("this question has no scopes: %w", ErrScope)
	case n == 1:
		return fmt.Errorf("this question has no wider scope: %w", ErrScope)
	default:
		return fmt.Errorf("no scope %d, the question lists 1 to %d: %w", reply.Scope, n, ErrScope)
	}
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
	case Cancelled:
		return fmt.Errorf("%w: at %s %s", ErrAnswered, at, textNeedless)
	default:
		return fmt.Errorf("%w: denied by the sensor at %s (%s)", ErrAnswered, at, r.Outcome)
	}
}

// past finds a question that is not pending.
func (d *queue) past(id string) (record, error) {
	if q := d.find(id); q != nil {
		return q.record, nil
	}
	r, found, err := d.store.get(id)
	switch {
	case err != nil:
		return record{}, err
	case !found:
		return record{}, ErrUnknown
	}
	return r, nil // one still pending is over too: its end could not be stored
}

// consume takes an approval, durably, and gives its question: only the first call gets
// no error. ErrExpired comes when the approval's time is over.
func (d *queue) consume(id string) (Question, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.schedule()
	q, err := d.change(id, func(r *record) { r.State = StateUsed })
	if err != nil {
		return Question{}, err
	}
	d.drop(q)
	return q.Question, nil
}

// Release gives back an approval whose asker was gone before anything was opened
// for it, so that the same command can claim it while its time lasts.
func (d *queue) Release(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.release(id); err != nil {
		return fmt.Errorf("release question %q: %w", id, err)
	}
	return nil
}

func (d *queue) release(id string) error {
	defer d.schedule()
	_, err := d.change(id, func(r *record) { r.ClaimedBy = process{} })
	return err
}

// change stores an approved question as how makes it.
func (d *queue) change(id string, how func(*record)) (*question, error) {
	if d.closed {
		return nil, errClosed
	}
	d.sweep()
	q, err := d.approved(id)
	if err != nil {
		return nil, err
	}
	r := q.record
	how(&r)
	if err := d.store.put(r); err != nil {
		return nil, err
	}
	q.record = r
	return q, nil
}

// Unused is the denial of who was approved and could not use that, by what Consume says.
func Unused(err error) Verdict {
	switch {
	case errors.Is(err, ErrUsed):
		return No(UsedOnce, err.Error())
	case errors.Is(err, ErrExpired):
		return No(Unclaimed, err.Error())
	case errors.Is(err, errClosed):
		return No(Cancelled, err.Error())
	}
	return No(StoreFailed, err.Error())
}

func (d *queue) approved(id string) (*question, error) {
	q := d.find(id)
	if q != nil && q.State == StateApproved {
		return q, nil
	}
	if q != nil {
		return nil, ErrNotGiven
	}
	r, err := d.past(id)
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
func (d *queue) end(q *question, reason Reason, reply Reply) error {
	now := d.gate.now()
	r := q.record
	r.Answered = now.UTC()
	r.By, r.Why, r.From, r.Shown = reply.By, reply.Why, reply.From, shown(reply.Shown)
	r.Gone = q.gone()
	if c, ok := q.cover(reply); ok {
		r.For, r.Rule = c.For, c.Rule
	}
	if len(q.Chain) > 0 && reply.Allow {
		r.Scope = max(reply.Scope, 1)
	}
	q.record = r
	v := q.verdict(reason)

	logErr := d.gate.tellEnd(q.Question, v)
	if logErr != nil {
		v = NotLogged(logErr).About(q.ID)
	}
	taker := q.taker()
	switch {
	case v.Reason == Approved:
		r.State = StateApproved
		if taker != nil {
			r.ClaimedBy = taker.self
		}
	case reason == Timeout:
		r.State = StateExpired
	default:
		r.State = StateDenied
	}
	r.Outcome = v.Reason
	q.until = d.clock().Add(d.claimFor)
	r.Claim = now.Add(d.claimFor).UTC()
	r.ends(d.opts.Boot, d.claimFor)
	storeErr := d.store.put(r)
	if storeErr != nil {
		d.gate.logger.WithError(storeErr).Error("store an answer")
		if v.Decision == Allow {
			v = No(StoreFailed, fmt.Sprintf("the approval cannot be stored: %v", storeErr)).About(q.ID)
			r.State, r.Outcome, r.ClaimedBy = StateDenied, v.Reason, process{}
			_ = d.gate.write(event.Verdict, q.Request(), v, "the approval is taken back") // it is a denial either way
		}
	}
	q.record = r
	d.tell(q, v, taker)
	// Only a person's word outlives the question.
	if v.Reason != Approved && v.Reason != Denied {
		d.drop(q)
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

// told is q as people are told of it.
func (q *question) told() Question {
	t := q.Question
	if q.State == StatePending {
		t.Gone = q.gone()
	}
	return t
}

// gone says whether q had an asker who waited, and has none now.
func (q *question) gone() bool {
	w := q.taker()
	return q.Text != "" && w == nil || q.Held && (w == nil || !w.Held)
}

func (d *queue) tell(q *question, v Verdict, taker *waiter) {
	for _, w := range q.waiters {
		own := v
		switch {
		case v.Decision != Allow:
		case w.self == taker.self:
			own = q.approval(w.CheckedRequest)
		case w.Ask == Run:
			own = q.verdict(UsedOnce) // nothing to write: it is asked about again
		default:
			own = d.gate.refuse(w.Request, q.verdict(UsedOnce))
		}
		w.answer <- own
	}
	q.waiters = nil
}
