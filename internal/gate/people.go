package gate

import (
	"fmt"

	"weir/internal/event"
)

// tellEnd writes the verdict that ends a question, with all that is known of who gave it.
func (g *Gate) tellEnd(q Question, v Verdict) error {
	told := g.event(event.Verdict, q.Request(), v, "")
	told.Verdict.Why, told.Verdict.From, told.Verdict.Shown, told.Verdict.For, told.Verdict.Rule = q.Why, q.From, q.Shown, q.For, q.Rule
	return g.put(told)
}

// tellStanding writes that a standing approval was given or, with an end, that it is over.
func (g *Gate) tellStanding(c event.Container, a *event.ApprovalInfo) error {
	return g.put(event.Event{Time: g.now().UTC(), Kind: event.Approval, Container: &c, Approval: a})
}

// Cleared is told of taint that is about to be cleared in the containers that of names: when it comes again, it is new to what was allowed
// there before, to standing approvals, questions and commands that were let run.
func (g *Gate) Cleared(bits []string, of func(event.Container) bool) error {
	err := g.clearTaint(bits, of)
	g.mu.Lock()
	for i := range g.passed {
		g.passed[i].cleared(bits, of)
	}
	for i := range g.running {
		g.running[i].cleared(bits, of)
	}
	g.mu.Unlock()
	return err
}

// Consume takes the approval, durably: only the first call gets nil, and only that
// caller may open the destination, so call it before opening. ErrExpired comes
// when the approval's time is over.
func (g *Gate) Consume(id string) error {
	q, err := g.consume(id)
	if err != nil {
		return fmt.Errorf("use question %q: %w", id, err)
	}
	if q.Request().Ask == Run {
		g.begin(Request{Container: q.Container, Process: q.Process}, q.By, q.ID)
	}
	return nil
}
