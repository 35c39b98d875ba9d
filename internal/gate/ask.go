package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weir/internal/event"
)

// ask blocks until the question about a is answered, is over, or ctx ends.
func (g *Gate) ask(ctx context.Context, a asker) Verdict {
	if ctx.Err() != nil {
		return g.refuse(a.Request, deny(Cancelled, "the asker went away before it could be asked"))
	}
	w, v := g.enter(a)
	if w == nil {
		return v
	}
	return g.await(ctx, w)
}

func (g *Gate) await(ctx context.Context, w *waiter) Verdict {
	var v Verdict
	select {
	case v = <-w.answer:
		if ctx.Err() == nil {
			return v
		}
	case <-ctx.Done():
	}
	return g.leave(w, v)
}

// enter returns a waiter on a's question, or the verdict when there is one already.
func (g *Gate) enter(a asker) (*waiter, Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, g.refuse(a.Request, deny(Cancelled, textClosed))
	}
	g.sweep()
	defer g.schedule()
	// A denial comes before all else: who was told no does not ask again in other words.
	if q := g.match(a, func(q *question) bool { return q.State == StateDenied && q.asked(a.self) }); q != nil {
		return nil, g.refuse(a.Request, q.verdict(Denied))
	}
	if q := g.match(a, func(q *question) bool {
		return q.State == StateApproved && q.openTo(a.self) && within(a.Container.Taint, q.Container.Taint)
	}); q != nil {
		return nil, g.claim(q, a)
	}
	if q := g.match(a, func(q *question) bool { return q.State == StatePending && within(a.Container.Taint, q.Container.Taint) }); q != nil {
		return g.join(q, a)
	}
	return g.open(a)
}

func (g *Gate) match(a asker, state func(*question) bool) *question {
	if i := slices.IndexFunc(g.live, func(q *question) bool { return state(q) && q.matches(a) }); i >= 0 {
		return g.live[i]
	}
	return nil
}

// openTo says whether p may have the approval: nobody has it, or p itself, whose
// call the kernel restarted before it was used.
func (q *question) openTo(p process) bool { return q.Taker == process{} || q.Taker == p }

// open asks a new question: stored first, then written, then pending.
func (g *Gate) open(a asker) (*waiter, Verdict) {
	if v, crowded := g.crowded(a); crowded {
		return nil, g.refuse(a.Request, v)
	}
	id, err := g.freeID()
	if err != nil {
		return nil, g.storeFailed(a, err)
	}
	now := g.now()
	until := now.Add(g.askFor)
	q := &question{
		record: record{
			Question: Question{
				ID:          id,
				Container:   a.Container,
				Process:     a.Process,
				Destination: a.Destination,
				Text:        a.Request.Command,
				Tool:        a.Ask == Tool,
				Note:        a.why,
				Held:        a.Held,
				Asked:       now.UTC(),
				Deadline:    until.UTC(),
				State:       StatePending,
				Askers:      1,
			},
			Command: a.command,
			Bound:   a.bound,
			Asking:  []process{a.self},
		},
		until: until,
	}
	q.ends(g.boot, g.askFor)
	if err := g.store.put(q.record); err != nil {
		return nil, g.storeFailed(a, err)
	}
	if err := g.write(event.Hold, a.Request, Verdict{Question: id}, q.announcement(a)); err != nil {
		if err := g.store.remove(id); err != nil {
			g.logger.WithError(err).Error("take back a question that could not be logged")
		}
		return nil, logFailed(err)
	}
	g.live = append(g.live, q)
	return q.wait(a), Verdict{}
}

func (q *question) announcement(a asker) string {
	s := "waits for an answer until " + q.Deadline.Format(time.RFC3339)
	if a.Process.Truncated {
		s += "; its arguments are incomplete"
	}
	if a.why != "" {
		s += "; " + a.why
	}
	return s
}

func (g *Gate) storeFailed(a asker, err error) Verdict {
	g.logger.WithError(err).Error("store a question")
	return g.refuse(a.Request, deny(StoreFailed, fmt.Sprintf("the question cannot be stored (%v); nothing is allowed until it can", err)))
}

// freeID makes an id that no stored question has, ended ones included: an answer
// that comes late must not meet another question.
func (g *Gate) freeID() (string, error) {
	for {
		id := newID()
		_, taken, err := g.store.get(id)
		if err != nil || !taken {
			return id, err
		}
	}
}

// join makes a one more asker of a pending question.
func (g *Gate) join(q *question, a asker) (*waiter, Verdict) {
	known := q.asked(a.self)
	if len(q.waiters) >= maxAskers || !known && len(q.Asking) >= maxAskers {
		text := fmt.Sprintf("%d processes wait for the same answer already", len(q.Asking))
		return nil, g.refuse(a.Request, deny(QueueFull, text).about(q.ID))
	}
	if !known {
		if err := g.write(event.Hold, a.Request, Verdict{Question: q.ID}, q.announcement(a)+"; joins the others who ask this"); err != nil {
			return nil, logFailed(err).about(q.ID)
		}
		q.Asking = append(q.Asking, a.self)
		q.Askers++
	}
	return q.wait(a), Verdict{}
}

func (q *question) wait(a asker) *waiter {
	w := &waiter{asker: a, question: q, answer: make(chan Verdict, 1)}
	q.waiters = append(q.waiters, w)
	return w
}

// claim gives an approval that came late, or again to the process that has it.
func (g *Gate) claim(q *question, a asker) Verdict {
	v := q.verdict(Approved)
	if err := g.write(event.Verdict, a.Request, v, "claims the approval"); err != nil {
		return logFailed(err).about(q.ID)
	}
	if q.Taker == a.self {
		return v
	}
	r := q.record
	r.Taker = a.self
	if err := g.store.put(r); err != nil {
		return g.storeFailed(a, err).about(q.ID)
	}
	q.record = r
	return v
}

// leave takes w off its question, which stays. If it was answered meanwhile, with
// v or with what w did not receive yet, an approval is given back.
func (g *Gate) leave(w *waiter, v Verdict) Verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case v = <-w.answer:
	default:
	}
	q := w.question
	switch {
	case v.Decision == Allow:
		if err := g.release(q.ID); err != nil {
			g.logger.WithError(err).WithField("question", q.ID).Error("give back an approval")
		}
	case v.Reason != "":
		return v
	}
	q.waiters = slices.DeleteFunc(q.waiters, func(o *waiter) bool { return o == w })
	return g.refuse(w.Request, deny(Cancelled, "the asker went away; an approval can still be claimed by the same command").about(q.ID))
}

// verdict words the answer to q.
func (q *question) verdict(r Reason) Verdict {
	why := ""
	if q.Why != "" {
		why = ": " + q.Why
	}
	v := Verdict{Reason: r, By: q.By, Question: q.ID, Scope: q.Scope}
	switch r {
	case Approved:
		v.Decision, v.Text = Allow, q.By+" approved"+why
	case Denied:
		v.Text = q.By + " denied" + why
	case Timeout:
		v.Text = fmt.Sprintf("nobody answered within %v; run the command again to ask again", q.Deadline.Sub(q.Asked).Round(time.Second))
	case NoApprover:
		v.Text = textNoApprover
	case Unclaimed:
		v.Text = "nobody used the approval in time"
	case UsedOnce:
		v.Text = "an approval counts once, and another process that asked the same has it"
	}
	return v
}
