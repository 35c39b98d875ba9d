package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/cop"
)

// recall is the first stage: what was let run, or asked, before.
const recall Step = "recall"

// plan is what the cascade does with one request, made from the request and the table alone: the stages in their order, of which the first that
// gives a verdict ends it. Decide walks it with a Gate, and a dry run without effects: neither can do what the other does not.
type plan struct {
	request Request
	stages  []Step
	row     Row            // the table's
	given   Verdict        // by the stages Pass and Refuse
	asker   CheckedRequest // the request, checked; zero where no stage asks
	failed  Reason         // why a person has to decide
	asked   bool           // a person was asked this: their word comes before the reviewer's
	unasked bool           // the reviewer would have to ask a model (ErrUnasked)
}

// hands carry out the stages of a plan.
type hands interface {
	recall(ctx context.Context, p *plan) Verdict // may note in the plan what it found
	theReviewer() Reviewer
	ask(ctx context.Context, a CheckedRequest) Verdict // a person, if there is one
	give(p *plan, v Verdict) Verdict                   // that no person gave: it is written, and returned
	count(failed Reason)
}

const textUntainted = "the container is not tainted"

// early is the verdict that needs no judgement of what is asked; the zero Verdict is none.
func early(r *Request) Verdict {
	switch {
	case r.Container.ID == "":
		return No(Malformed, "the request names no container")
	case len(r.Container.Taint) == 0 && r.Mode != modeSeal:
		return Yes(Untainted, textUntainted)
	case !slices.Contains(modes, r.Mode):
		return No(Malformed, fmt.Sprintf("the request has the unknown mode %q", r.Mode))
	case !slices.Contains(asks, r.Ask):
		return No(Malformed, fmt.Sprintf("the request asks for the unknown %d", r.Ask))
	}
	return Verdict{}
}

// planOf makes the plan of a request.
func planOf(table []Row, r Request) *plan {
	r.Mode = cmp.Or(r.Mode, modeEnforce)
	p := &plan{request: r}
	if v := early(&p.request); v.Reason != "" {
		return p.gives(v)
	}
	judged := judge(r)
	p.request.Judged = &judged
	p.row = rowFor(table, r, judged.Class)
	if r.Ask == Run && r.Mode == modeEnforce {
		p.stages = []Step{recall}
	}
	switch p.row.Step {
	case Pass:
		return p.gives(Yes(p.row.Reason, p.row.Why))
	case Refuse:
		return p.gives(No(p.row.Reason, p.row.Why))
	}
	a, err := CheckRequest(p.request)
	if v := refusal(a, err); v.Reason != "" {
		return p.gives(v)
	}
	p.asker, p.failed = a, unreadable(a.Request, judged)
	p.stages = []Step{recall, p.row.Step, Person}
	if p.row.Step == Person {
		p.stages = p.stages[:2]
	}
	return p
}

// gives ends the plan with a verdict.
func (p *plan) gives(v Verdict) *plan {
	p.given, p.stages = v, append(p.stages, v.step())
	return p
}

// walk goes the stages until one gives a verdict.
func (p *plan) walk(ctx context.Context, h hands) Verdict {
	for _, s := range p.stages {
		var v Verdict
		switch s {
		case recall:
			v = h.recall(ctx, p)
		case Review:
			v = p.review(ctx, h)
		case Person:
			if p.failed != "" {
				h.count(p.failed)
				p.asker.Failed, p.asker.Why = p.failed, p.failed.Describe()+" ("+string(p.failed)+")"
			}
			v = h.ask(ctx, p.asker)
		default:
			v = h.give(p, p.given)
		}
		if v.Reason != "" {
			return v
		}
	}
	return h.give(p, No(Malformed, "the plan gives no verdict"))
}

// review asks the Cop, where its word counts. It gives no verdict where a person has to.
func (p *plan) review(ctx context.Context, h hands) Verdict {
	if p.failed != "" || p.asked {
		return Verdict{}
	}
	reviewer := h.theReviewer()
	if reviewer == nil {
		h.count(CopNone)
		p.row.Why = CopNone.Describe()
		return Verdict{}
	}
	o, err := reviewer.Review(ctx, caseOf(p.whole(), *p.request.Judged))
	switch {
	case err != nil:
		p.failed, p.unasked = reviewFailed(cop.CodeOf(err)), errors.Is(err, ErrUnasked)
		return Verdict{}
	case !o.Flagged:
		return h.give(p, Yes(Passed, o.Reason).From(ByCop))
	case p.row.Flagged == Person:
		p.asker.Why = "the reviewer flagged it: " + o.Reason
		return Verdict{}
	}
	return h.give(p, No(Flagged, o.Reason).From(ByCop))
}

// whole is the checked request with all of its text, of which a question and the log keep a part only.
func (p *plan) whole() Request {
	all := p.asker.Request
	all.Command = p.request.Command
	return all
}
