package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"weir/internal/classify"
	"weir/internal/event"
	"weir/internal/gate/form"
	"weir/internal/gate/question"
	"weir/internal/gate/verdict"
)

// Decide gives the verdict on one request, for every caller and every way in, by
// the Table. Without taint it returns at once and touches nothing (G4). A tainted
// command may run, but that opens nothing (G24, G25). A tainted connect blocks
// until the reviewer or a person answered, its deadline passed or ctx ended; when
// ctx ends a person's question stays, and a later approval is claimed by the same
// command. So does a command that a bridge was asked about.
//
// On Allow with Reason Approved, call Used with the verdict's Question and open
// the destination only when that returns nil; with Reason Passed, open it.
func (g *Gate) Decide(ctx context.Context, r verdict.Request) verdict.Verdict {
	v := g.still(r, g.decide(ctx, r))
	g.counters[v.Reason].Add(1)
	return v
}

func (g *Gate) decide(ctx context.Context, r verdict.Request) verdict.Verdict {
	if r.Mode == "" {
		r.Mode = modeEnforce
	}
	level := levelOf(r.Container.Taint)
	switch {
	case r.Container.ID == "":
		return g.refuse(r, verdict.No(verdict.Malformed, "the request names no container"))
	case level == Clean && r.Mode != modeSeal:
		return verdict.Yes(verdict.Untainted, textUntainted)
	case !slices.Contains(modes, r.Mode):
		return g.refuse(r, verdict.No(verdict.Malformed, fmt.Sprintf("the request has the unknown mode %q", r.Mode)))
	case !slices.Contains(asks, r.Ask):
		return g.refuse(r, verdict.No(verdict.Malformed, fmt.Sprintf("the request asks for the unknown %d", r.Ask)))
	}
	judged := judge(r)
	r.Judged = &judged
	row := rowFor(g.table, r, judged.Class)
	if r.Ask == verdict.Run && r.Mode == modeEnforce {
		if v, ok := g.recognise(r); ok {
			return v.Classed(judged)
		}
	}
	return g.carry(ctx, r, row, judged).Classed(judged)
}

const textUntainted = "the container is not tainted"

// still gives a verdict that was made, unless the mode became seal meanwhile: then what would let something out is a denial, and an
// approval can be claimed when that is over.
func (g *Gate) still(r verdict.Request, v verdict.Verdict) verdict.Verdict {
	switch v.Reason {
	case verdict.Passed, verdict.Approved, verdict.Recognised:
	default:
		return v
	}
	if !g.sealed(r.Container.ID) {
		return v
	}
	if v.Reason == verdict.Approved {
		if err := g.desk.Release(v.Question); err != nil {
			g.logger.WithError(err).WithField("question", v.Question).Error("give back an approval")
		}
	}
	return g.refuse(r, verdict.No(verdict.Sealed, textSealed).About(v.Question))
}

const textSealed = "the mode became seal before it was let out"

// Confirm asks a person about a call of a tool, whatever taint the container has: no rule and no reviewer answers in their place, and
// only seal refuses without asking. On Allow call Used with the verdict's Question, and go on only when that returns nil.
func (g *Gate) Confirm(ctx context.Context, r verdict.Request) verdict.Verdict {
	r.Ask = verdict.Tool
	v := g.still(r, g.confirm(ctx, r))
	g.counters[v.Reason].Add(1)
	return v
}

func (g *Gate) confirm(ctx context.Context, r verdict.Request) verdict.Verdict {
	a, err := question.Check(r)
	switch {
	case r.Container.ID == "":
		return g.refuse(r, verdict.No(verdict.Malformed, "the request names no container"))
	case err != nil:
		return g.refuse(r, verdict.No(verdict.Malformed, err.Error()))
	case r.Mode == modeSeal:
		return g.refuse(r, verdict.No(verdict.Sealed, "the mode is seal"))
	case !g.desk.HasApprover():
		return g.refuse(r, verdict.No(verdict.NoApprover, verdict.NobodyToAsk))
	}
	return g.desk.Ask(ctx, a)
}

// carry goes the steps of a row.
func (g *Gate) carry(ctx context.Context, r verdict.Request, row Row, judged classify.Result) verdict.Verdict {
	switch {
	case row.Step == Refuse:
		return g.refuse(r, verdict.No(row.Reason, row.Why))
	case row.Step == Pass && row.Reason == verdict.Observe && r.Ask == verdict.Connect:
		return g.observe(r)
	case row.Step == Pass:
		return verdict.Yes(row.Reason, row.Why)
	}
	a, err := question.Check(r)
	if v := refusal(a, err); v.Reason != "" {
		return g.refuse(r, v)
	}
	failed := unreadable(a.Request, judged)
	if known, ok := g.runs(a.Request); ok && r.Ask == verdict.Connect {
		left := form.MaxSteps
		switch {
		case !known.covers(a.Process, &left):
			failed = verdict.Differs
		case g.says(ctx, known.facts, a.Destination):
			return g.reviewed(a.Request, known.verdict())
		default:
			a.Why = "the command was let run before, but did not say that it goes there"
		}
	}
	step := row.Step
	if failed != "" {
		g.counters[failed].Add(1)
		step, a.Why = Person, describe(failed)
	}
	if step == Review && !g.desk.Asked(a) { // a person's word comes before the reviewer's
		all := whole(a, r)
		v, why := g.opinion(ctx, all, row, judged)
		if v = g.reviewed(a.Request, v); v.Reason != "" {
			if v.Decision == verdict.Allow && r.Ask != verdict.Connect {
				g.remember(all, v)
			}
			return v
		}
		a.Why = cmp.Or(why, a.Why)
	}
	if !g.desk.HasApprover() {
		return g.refuse(a.Request, verdict.No(verdict.NoApprover, verdict.NobodyToAsk))
	}
	return g.desk.Ask(ctx, a)
}

// whole is a checked request with all of r's text, of which a question and the log keep a part only.
func whole(a question.Asker, r verdict.Request) verdict.Request {
	all := a.Request
	all.Command = r.Command
	return all
}

// describe words a failure for people.
func describe(r verdict.Reason) string {
	all := Failures()
	return all[slices.IndexFunc(all, func(f Failure) bool { return f.Reason == r })].What
}

// refusal gives the denial that no answer can change, or none.
func refusal(a question.Asker, malformed error) verdict.Verdict {
	switch {
	case malformed != nil:
		return verdict.No(verdict.Malformed, malformed.Error())
	case a.Ask == verdict.Connect && a.Destination.Protocol == "udp" && a.Destination.Port == 443:
		return verdict.No(verdict.QUIC, "QUIC is refused in a tainted container; use TCP")
	}
	return verdict.Verdict{}
}

// reviewed writes a verdict that is about to be given, if there is one.
func (g *Gate) reviewed(r verdict.Request, v verdict.Verdict) verdict.Verdict {
	switch {
	case v.Reason == "":
		return v
	case v.Decision != verdict.Allow:
		return g.refuse(r, v)
	}
	if err := g.write(event.Verdict, r, v, ""); err != nil {
		return verdict.NotLogged(err)
	}
	return v
}

// refuse writes a denial that is about to be given.
func (g *Gate) refuse(r verdict.Request, v verdict.Verdict) verdict.Verdict {
	kind := event.Connect
	if r.Ask == verdict.Run || r.Ask == verdict.Command || r.Ask == verdict.Tool {
		kind = event.Verdict
	}
	if err := g.write(kind, r, v, ""); err != nil {
		return verdict.NotLogged(err).About(v.Question)
	}
	return v
}

// observe allows, and writes what enforce would have done. Without the log there
// is nothing to observe with, and a failure is no allow (G9).
func (g *Gate) observe(r verdict.Request) verdict.Verdict {
	a, err := question.Check(r)
	would := refusal(a, err)
	if would.Reason == "" && !g.desk.HasApprover() && g.theReviewer() == nil {
		would = verdict.No(verdict.NoApprover, verdict.NobodyToAsk)
	}
	text := "would have been denied unless the reviewer or a person had let it out"
	if would.Reason != "" {
		text = fmt.Sprintf("would have been denied (%s): %s", would.Reason, would.Text)
	}
	v := verdict.Yes(verdict.Observe, text)
	if err := g.write(event.Connect, r, v, ""); err != nil {
		return verdict.NotLogged(err)
	}
	return v
}
