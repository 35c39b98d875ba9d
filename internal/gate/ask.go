package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weir/internal/event"
)

// ask blocks until the question about a is answered, is over, or ctx ends. A command that waits before it begins cannot ask again by itself:
// when another one has the approval, that is done for it.
func (d *queue) ask(ctx context.Context, a CheckedRequest) Verdict {
	for {
		if ctx.Err() != nil {
			return d.gate.refuse(a.Request, No(Cancelled, "the asker went away before it could be asked"))
		}
		w, v := d.enter(a)
		if w == nil {
			return v
		}
		if v = d.await(ctx, w); a.Ask != Run || v.Reason != UsedOnce {
			return v
		}
		a = w.CheckedRequest // without the taint that was cleared while it waited
	}
}

func (d *queue) await(ctx context.Context, w *waiter) Verdict {
	var v Verdict
	select {
	case v = <-w.answer:
		if ctx.Err() == nil {
			return v
		}
	case <-ctx.Done():
	}
	return d.leave(w, v)
}

// enter returns a waiter on a's question, or the verdict when there is one already.
func (d *queue) enter(a CheckedRequest) (*waiter, Verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, d.gate.refuse(a.Request, No(Cancelled, textClosed))
	}
	if !d.approver {
		return nil, d.gate.refuse(a.Request, nobody(a))
	}
	d.sweep()
	defer d.schedule()
	// A denial comes before all else: who was told no does not ask again in other words.
	if q := d.match(a, func(q *question) bool { return q.State == StateDenied && q.asked(a.self) }); q != nil {
		return nil, d.gate.refuse(a.Request, q.verdict(Denied))
	}
	if q := d.match(a, func(q *question) bool {
		return q.State == StateApproved && q.openTo(a.self) && Within(a.Container.Taint, q.Container.Taint)
	}); q != nil {
		return nil, d.claim(q, a)
	}
	a.Container = d.left(a.Request)
	if q := d.match(a, func(q *question) bool { return q.State == StatePending && Within(a.Container.Taint, q.Container.Taint) }); q != nil {
		return d.join(q, a)
	}
	return d.open(a)
}

func (d *queue) match(a CheckedRequest, state func(*question) bool) *question {
	if i := slices.IndexFunc(d.live, func(q *question) bool { return state(q) && q.matches(a) }); i >= 0 {
		return d.live[i]
	}
	return nil
}

// openTo says whether p may have the approval: nobody has it, or p itself, whose
// call the kernel restarted before it was used.
func (q *question) openTo(p process) bool {
	return q.ClaimedBy == process{} || q.ClaimedBy == p
}

// open asks a new question: stored first, then written, then pending.
func (d *queue) open(a CheckedRequest) (*waiter, Verdict) {
	if v, limited := d.rateLimited(a); limited {
		return nil, d.gate.refuse(a.Request, v)
	}
	id, err := d.freeID()
	if err != nil {
		return nil, d.storeFailed(a, err)
	}
	now := d.gate.now()
	q := &question{
		record: record{
			Question: Question{
				ID:           id,
				Container:    a.Container,
				Process:      a.Process,
				Destination:  a.Destination,
				Text:         a.Request.Command,
				Tool:         a.Ask == Tool,
				Note:         a.Why,
				Failed:       a.Failed,
				Chain:        a.chain,
				GrantSeconds: a.GrantSeconds,
				GrantBytes:   a.GrantBytes,
				Covers:       a.Covers,
				To:           a.to(),
				Held:         a.Held,
				Asked:        now.UTC(),
				Deadline:     now.Add(d.askFor).UTC(),
				State:        StatePending,
				Askers:       1,
			},
			Command: a.command,
			Bound:   a.bound,
			Asking:  []process{a.self},
		},
		until: d.clock().Add(d.askFor),
	}
	if d.opts.Causes != nil {
		q.Causes = d.opts.Causes(a.Container.ID)
	}
	q.ends(d.opts.Boot, d.askFor)
	if err := d.store.put(q.record); err != nil {
		return nil, d.storeFailed(a, err)
	}
	if err := d.gate.write(event.Hold, a.Request, Verdict{Question: id}, q.holdText(a)); err != nil {
		if err := d.store.remove(id); err != nil {
			d.gate.logger.WithError(err).Error("take back a question that could not be logged")
		}
		return nil, NotLogged(err)
	}
	d.live = append(d.live, q)
	return q.wait(a), Verdict{}
}

func (q *question) holdText(a CheckedRequest) string {
	until := q.Deadline.Format(time.RFC3339)
	s := "waits for an answer until " + until
	if a.Ask == Connect && !a.Held {
		s = "was refused: it cannot be held; an answer until " + until + " is for its next try"
	}
	switch {
	case a.Process.Claimed:
		s += "; its arguments are by its own account"
	case a.Process.Truncated:
		s += "; its arguments are incomplete"
	}
	if a.Why != "" {
		s += "; " + a.Why
	}
	return s
}

func (d *queue) storeFailed(a CheckedRequest, err error) Verdict {
	d.gate.logger.WithError(err).Error("store a question")
	return d.gate.refuse(a.Request, No(StoreFailed, fmt.Sprintf("the question cannot be stored (%v); nothing is allowed until it can", err)))
}

// freeID makes an id that no stored question has, ended ones included: an answer
// that comes late must not meet another question.
func (d *queue) freeID() (string, error) {
	for {
		id := newID()
		_, taken, err := d.store.get(id)
		if err != nil || !taken {
			return id, err
		}
	}
}

// join makes a one more asker of a pending question.
func (d *queue) join(q *question, a CheckedRequest) (*waiter, Verdict) {
	known := q.asked(a.self)
	if len(q.waiters) >= maxAskers || !known && len(q.Asking) >= maxAskers {
		text := fmt.Sprintf("%d processes wait for the same answer already", len(q.Asking))
		return nil, d.gate.refuse(a.Request, No(QueueFull, text).About(q.ID))
	}
	if !known {
		if err := d.gate.write(event.Hold, a.Request, Verdict{Question: q.ID}, q.holdText(a)+"; joins the others who ask this"); err != nil {
			return nil, NotLogged(err).About(q.ID)
		}
		q.Asking = append(q.Asking, a.self)
		q.Askers++
	}
	return q.wait(a), Verdict{}
}

func (q *question) wait(a CheckedRequest) *waiter {
	w := &waiter{CheckedRequest: a, question: q, answer: make(chan Verdict, 1)}
	q.waiters = append(q.waiters, w)
	return w
}

// claim gives an approval that came late, or again to the process that has it.
func (d *queue) claim(q *question, a CheckedRequest) Verdict {
	v, message := q.approval(a), "claims the approval"
	if v.Scope < q.Scope {
		message += ", alone: it does not descend from the process that was chosen"
	}
	if err := d.gate.write(event.Verdict, a.Request, v, message); err != nil {
		return NotLogged(err).About(q.ID)
	}
	if q.ClaimedBy == a.self {
		return v
	}
	r := q.record
	r.ClaimedBy = a.self
	if err := d.store.put(r); err != nil {
		return d.storeFailed(a, err).About(q.ID)
	}
	q.record = r
	return v
}

// leave takes w off its question, which stays. If it was answered meanwhile, with
// v or with what w did not receive yet, an approval is given back.
func (d *queue) leave(w *waiter, v Verdict) Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case v = <-w.answer:
	default:
	}
	q := w.question
	switch {
	case v.Open != nil:
		d.giveBack(v.Question, v.Open.Bytes)
	case v.Decision == Allow:
		if err := d.release(q.ID); err != nil {
			d.gate.logger.WithError(err).WithField("question", q.ID).Error("give back an approval")
		}
	case v.Reason != "":
		return v
	}
	q.waiters = slices.DeleteFunc(q.waiters, func(o *waiter) bool { return o == w })
	return d.gate.refuse(w.Request, No(Cancelled, "the asker went away; an approval can still be claimed by the same command").About(q.ID))
}

// approval is q's approval as a has it. A wider scope counts for who descends from the process that was chosen: another one, which
// runs the same command, is let out alone (F01, G16).
func (q *question) approval(a CheckedRequest) Verdict {
	v := q.verdict(Approved)
	if v.Root != nil && !slices.ContainsFunc(a.chain, func(m event.Member) bool { return m.PID == v.Root.PID && m.Start == v.Root.Start }) {
		v.Scope, v.Root = 1, nil
	}
	return v
}

// verdict words the answer to q.
func (q *question) verdict(r Reason) Verdict {
	why := ""
	if q.Why != "" {
		why = ": " + q.Why
	}
	v := Verdict{Reason: r, By: q.By, Question: q.ID, For: q.For, Rule: q.Rule, Failed: q.Failed}
	switch r {
	case Approved:
		v.Scope, v.Root = q.Scope, q.Root()
		if v.Root != nil {
			why = fmt.Sprintf(" with scope %d%s", q.Scope, why)
		}
		v.Decision, v.Text = Allow, q.By+" approved"+why
	case Denied:
		v.Text = q.By + " denied" + why
	case Timeout:
		v.Text = fmt.Sprintf("nobody answered within %v; run the command again to ask again", q.Deadline.Sub(q.Asked).Round(time.Second))
		v = v.after(q.Failed)
	case NoApprover:
		v.Text = NobodyToAsk
		v = v.after(q.Failed)
	case Sealed:
		v.Text = "the mode became seal: nothing leaves, and nobody is asked"
	case Cancelled:
		v.Text = textNeedless
	case Unclaimed:
		v.Text = "nobody used the approval in time"
	case UsedOnce:
		v.Text = "an approval counts once, and another process that asked the same has it"
	}
	return v
}
