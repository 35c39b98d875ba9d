package gate

import (
	"fmt"

	"weir/internal/event"
)

// events writes what the queue tells.
type events struct{ *Gate }

// Write implements question.Events.
func (e events) Write(k event.Kind, r Request, v Verdict, message string) error {
	return e.write(k, r, v, message)
}

// Refuse implements question.Events.
func (e events) Refuse(r Request, v Verdict) Verdict { return e.refuse(r, v) }

// Ended implements question.Events.
func (e events) Ended(q Question, v Verdict) error {
	told := e.event(event.Verdict, q.Request(), v, "")
	told.Verdict.Why, told.Verdict.From, told.Verdict.Shown, told.Verdict.For, told.Verdict.Rule = q.Why, q.From, q.Shown, q.For, q.Rule
	return e.put(told)
}

// Stood implements question.Events.
func (e events) Stood(c event.Container, a *event.ApprovalInfo) error {
	return e.put(event.Event{Time: e.now().UTC(), Kind: event.Approval, Container: &c, Approval: a})
}

// Standing lists the approvals that go on, oldest first.
func (g *Gate) Standing() []StandingApproval { return g.queue.Standing() }

// InForce says whether a standing approval goes on.
func (g *Gate) InForce(id string) bool { return g.queue.InForce(id) }

// Revoke ends a standing approval, durably: it opens nothing from now on, also when the error is not nil, unless that is ErrNoneSuch.
func (g *Gate) Revoke(id, by, why string) (StandingApproval, error) {
	return g.queue.Revoke(id, by, why)
}

// EndStanding ends the approvals that which names, with the reason that it gives; an empty one goes on. It gives those that ended.
func (g *Gate) EndStanding(which func(StandingApproval) event.ApprovalEnd) ([]StandingApproval, error) {
	return g.queue.EndStanding(which)
}

// Cleared is told of taint that is about to be cleared in the containers that of names: when it comes again, it is new to what was allowed
// there before, to standing approvals, questions and commands that were let run.
func (g *Gate) Cleared(bits []string, of func(event.Container) bool) error {
	err := g.queue.Cleared(bits, of)
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

// Return gives back what a grant by a standing approval did not use, in bytes.
func (g *Gate) Return(id string, n int64) { g.queue.Return(id, n) }

// Pending gives the questions that wait for an answer, oldest first.
func (g *Gate) Pending() []Question { return g.queue.Pending() }

// Ended gives the questions that take no answer any more, newest end first: at
// most most of them, and no more than some megabytes. Those that a person answered
// are kept for 30 days, others for one.
func (g *Gate) Ended(most int) ([]Question, error) { return g.queue.Ended(most) }

// Question gives the question with this id, also when it has ended.
func (g *Gate) Question(id string) (Question, error) { return g.queue.Question(id) }

// Answer ends a pending question. When the answer cannot be written or stored,
// everybody who waits is denied and the error says so. The Question is as it is
// after the call.
func (g *Gate) Answer(id string, reply Reply) (Question, error) {
	return g.queue.Answer(id, reply)
}

// Consume takes the approval, durably: only the first call gets nil, and only that
// caller may open the destination, so call it before opening. question.ErrExpired comes
// when the approval's time is over.
func (g *Gate) Consume(id string) error {
	q, err := g.queue.Consume(id)
	if err != nil {
		return fmt.Errorf("use question %q: %w", id, err)
	}
	if q.Request().Ask == Run {
		g.begin(Request{Container: q.Container, Process: q.Process}, q.By, q.ID)
	}
	return nil
}

// Release gives back an approval whose asker was gone before anything was opened
// for it, so that the same command can claim it while its time lasts.
func (g *Gate) Release(id string) error { return g.queue.Release(id) }

// Alive returns when the gate can make verdicts: not while a disk keeps it waiting.
func (g *Gate) Alive() { g.queue.Alive() }

// Progress counts what was stored. While it grows, a gate that does not answer
// at once is busy, not stuck.
func (g *Gate) Progress() uint64 { return g.queue.Progress() }
