package gate

import (
	"context"
	"errors"
	"slices"

	"weir/internal/cop"
)

// ErrUnasked is the error of a Reviewer that would have to ask a model, and does
// not: Foresee tells it as Step Review.
var ErrUnasked = errors.New("the model is not asked")

// Foreseen is what the cascade would do with a request, as far as that can be told
// without asking a person: allow, deny, ask a person, or, where the reviewer gives
// ErrUnasked, ask the model.
type Foreseen struct {
	Step   Step
	Reason Reason // with Pass and Refuse
	Class  string // of the command
	Text   string // one sentence for people
}

// Foresee goes the steps of Decide without a store, a log or a question. What was
// let run before over a bridge is not known to it.
func Foresee(ctx context.Context, r Request, reviewer Reviewer, approver bool) Foreseen {
	if r.Mode == "" {
		r.Mode = modeEnforce
	}
	level := levelOf(r.Container.Taint)
	switch {
	case r.Container.ID == "":
		return Foreseen{Step: Refuse, Reason: Malformed, Text: "the request names no container"}
	case level == Clean && r.Mode != modeSeal:
		return Foreseen{Step: Pass, Reason: Untainted, Text: textUntainted}
	case !slices.Contains(modes, r.Mode) || !slices.Contains(asks, r.Ask):
		return Foreseen{Step: Refuse, Reason: Malformed, Text: "the request has an unknown mode, or asks for something unknown"}
	}
	judged := judge(r)
	row := rowFor(Table(), r, judged.Class)
	f := Foreseen{Step: row.Step, Reason: row.Reason, Class: judged.Class.String(), Text: row.Why}
	if row.Step == Pass || row.Step == Refuse {
		return f
	}
	a, err := CheckAsker(r)
	if v := refusal(a, err); v.Reason != "" {
		f.Step, f.Reason, f.Text = Refuse, v.Reason, v.Text
		return f
	}
	if failed := unreadable(a.Request, judged); failed != "" {
		f.Step, f.Text = Person, failed.Describe()
	}
	if f.Step == Review {
		f = foreseeReview(ctx, f, whole(a, r), row, reviewer)
	}
	if f.Step == Person && !approver {
		f.Step, f.Reason, f.Text = Refuse, NoApprover, NobodyToAsk
	}
	return f
}

func foreseeReview(ctx context.Context, f Foreseen, r Request, row Row, reviewer Reviewer) Foreseen {
	if reviewer == nil {
		f.Step, f.Text = Person, CopNone.Describe()
		return f
	}
	o, err := reviewer.Review(ctx, caseOf(r, judge(r)))
	switch {
	case errors.Is(err, ErrUnasked):
		f.Text = "the model would be asked"
	case err != nil:
		f.Step, f.Text = Person, reviewFailed(cop.CodeOf(err)).Describe()
	case !o.Flagged:
		f.Step, f.Reason, f.Text = Pass, Passed, o.Reason
	case row.Flagged == Person:
		f.Step, f.Text = Person, "the reviewer flags it: "+o.Reason
	default:
		f.Step, f.Reason, f.Text = Refuse, Flagged, o.Reason
	}
	return f
}
