package gate

import (
	"cmp"
	"context"
	"errors"
)

// ErrUnasked is the error of a Reviewer that would have to ask a model, and does
// not: DryRun tells it as Step Review.
var ErrUnasked = errors.New("the model is not asked")

// DryRunResult is what the cascade would do with a request, as far as that can be told
// without asking a person: allow, deny, ask a person, or, where the reviewer gives
// ErrUnasked, ask the model.
type DryRunResult struct {
	Step   Step
	Reason Reason // with Pass and Refuse
	Class  string // of the command
	Text   string // one sentence for people
}

// DryRun walks the plan of Decide without a store, a log or a question. What was
// let run before over a bridge is not known to it.
func DryRun(ctx context.Context, r Request, reviewer Reviewer, approver bool) DryRunResult {
	d := &dryRun{reviewer: reviewer, approver: approver}
	p := planOf(Table(), r)
	v := p.walk(ctx, d).Classed(p.request.Judged)
	switch {
	case p.unasked:
		return DryRunResult{Step: Review, Class: v.Class, Text: "the model would be asked"}
	case d.asked != nil:
		return DryRunResult{Step: Person, Class: v.Class, Text: cmp.Or(d.asked.Why, p.row.Why)}
	}
	return DryRunResult{v.step(), v.Reason, v.Class, v.Text}
}

// dryRun are hands that do nothing.
type dryRun struct {
	reviewer Reviewer
	approver bool
	asked    *CheckedRequest // who a person would be asked about
}

func (d *dryRun) recall(context.Context, *plan) Verdict { return Verdict{} }
func (d *dryRun) theReviewer() Reviewer                 { return d.reviewer }
func (d *dryRun) give(_ *plan, v Verdict) Verdict       { return v }
func (d *dryRun) count(Reason)                          {}

func (d *dryRun) ask(_ context.Context, a CheckedRequest) Verdict {
	if !d.approver {
		return nobody(a)
	}
	d.asked = &a
	return Verdict{Reason: Denied} // or approved
}
