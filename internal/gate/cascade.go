package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"weir/internal/classify"
	"weir/internal/event"
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
func (g *Gate) Decide(ctx context.Context, r Request) Verdict {
	v := g.still(r, g.decide(ctx, r))
	g.counters[v.Reason].Add(1)
	return v
}

func (g *Gate) decide(ctx context.Context, r Request) Verdict {
	if r.Mode == "" {
		r.Mode = modeEnforce
	}
	level := levelOf(r.Container.Taint)
	switch {
	case r.Container.ID == "":
		return g.refuse(r, No(Malformed, "the request names no container"))
	case level == Clean && r.Mode != modeSeal:
		return Yes(Untainted, textUntainted)
	case !slices.Contains(modes, r.Mode):
		return g.refuse(r, No(Malformed, fmt.Sprintf("the request has the unknown mode %q", r.Mode)))
	case !slices.Contains(asks, r.Ask):
		return g.refuse(r, No(Malformed, fmt.Sprintf("the request asks for the unknown %d", r.Ask)))
	}
	judged := judge(r)
	r.Judged = &judged
	row := rowFor(g.table, r, judged.Class)
	if r.Ask == Run && r.Mode == modeEnforce {
		if v, ok := g.recognise(r); ok {
			return v.Classed(judged)
		}
	}
	return g.carry(ctx, r, row, judged).Classed(judged)
}

const textUntainted = "the container is not tainted"

// still gives a verdict that was made, unless the mode became seal meanwhile: then what would let something out is a denial, and an
// approval can be claimed when that is over.
func (g *Gate) still(r Request, v Verdict) Verdict {
	switch v.Reason {
	case Passed, Approved, Recognised:
	default:
		return v
	}
	if !g.sealed(r.Container.ID) {
		return v
	}
	if v.Reason == Approved {
		if err := g.desk.Release(v.Question); err != nil {
			g.logger.WithError(err).WithField("question", v.Question).Error("give back an approval")
		}
	}
	return g.refuse(r, No(Sealed, textSealed).About(v.Question))
}

const textSealed = "the mode became seal before it was let out"

// Confirm asks a person about a call of a tool, whatever taint the container has: no rule and no reviewer answers in their place, and
// only seal refuses without asking. On Allow call Used with the verdict's Question, and go on only when that returns nil.
func (g *Gate) Confirm(ctx context.Context, r Request) Verdict {
	r.Ask = Tool
	v := g.still(r, g.confirm(ctx, r))
	g.counters[v.Reason].Add(1)
	return v
}

func (g *Gate) confirm(ctx context.Context, r Request) Verdict {
	a, err := CheckAsker(r)
	switch {
	case r.Container.ID == "":
		return g.refuse(r, No(Malformed, "the request names no container"))
	case err != nil:
		return g.refuse(r, No(Malformed, err.Error()))
	case r.Mode == modeSeal:
		return g.refuse(r, No(Sealed, "the mode is seal"))
	case !g.desk.HasApprover():
		return g.refuse(r, No(NoApprover, NobodyToAsk))
	}
	return g.desk.Ask(ctx, a)
}

// carry goes the steps of a row.
func (g *Gate) carry(ctx context.Context, r Request, row Row, judged classify.Result) Verdict {
	switch {
	case row.Step == Refuse:
		return g.refuse(r, No(row.Reason, row.Why))
	case row.Step == Pass && row.Reason == Observe && r.Ask == Connect:
		return g.observe(r)
	case row.Step == Pass:
		return Yes(row.Reason, row.Why)
	}
	a, err := CheckAsker(r)
	if v := refusal(a, err); v.Reason != "" {
		return g.refuse(r, v)
	}
	failed := unreadable(a.Request, judged)
	if known, ok := g.runs(a.Request); ok && r.Ask == Connect {
		left := maxSteps
		switch {
		case !known.covers(a.Process, &left):
			failed = Differs
		case g.says(ctx, known.facts, a.Destination):
			return g.reviewed(a.Request, known.verdict())
		default:
			a.Why = "the command was let run before, but did not say that it goes there"
		}
	}
	step := row.Step
	if failed != "" {
		g.counters[failed].Add(1)
		step, a.Why = Person, failed.Describe()
	}
	if step == Review && !g.desk.Asked(a) { // a person's word comes before the reviewer's
		all := whole(a, r)
		v, broke, why := g.opinion(ctx, all, row, judged)
		if v = g.reviewed(a.Request, v); v.Reason != "" {
			if v.Decision == Allow && r.Ask != Connect {
				g.remember(all, v)
			}
			return v
		}
		failed, a.Why = broke, cmp.Or(why, a.Why)
	}
	a.Failed = failed
	if !g.desk.HasApprover() {
		return g.refuse(a.Request, No(NoApprover, NobodyToAsk).after(failed))
	}
	return g.desk.Ask(ctx, a)
}

// whole is a checked request with all of r's text, of which a question and the log keep a part only.
func whole(a Asker, r Request) Request {
	all := a.Request
	all.Command = r.Command
	return all
}

// Describe words a failure for people; empty for what is none.
func (r Reason) Describe() string {
	all := Failures()
	if i := slices.IndexFunc(all, func(f Failure) bool { return f.Reason == r }); i >= 0 {
		return all[i].What
	}
	return ""
}

// refusal gives the denial that no answer can change, or none.
func refusal(a Asker, malformed error) Verdict {
	switch {
	case malformed != nil:
		return No(Malformed, malformed.Error())
	case a.Ask == Connect && a.Destination.Protocol == "udp" && a.Destination.Port == 443:
		return No(QUIC, "QUIC is refused in a tainted container; use TCP")
	}
	return Verdict{}
}

// reviewed writes a verdict that is about to be given, if there is one.
func (g *Gate) reviewed(r Request, v Verdict) Verdict {
	switch {
	case v.Reason == "":
		return v
	case v.Decision != Allow:
		return g.refuse(r, v)
	}
	if err := g.write(event.Verdict, r, v, ""); err != nil {
		return NotLogged(err)
	}
	return v
}

// refuse writes a denial that is about to be given.
func (g *Gate) refuse(r Request, v Verdict) Verdict {
	kind := event.Connect
	if r.Ask == Run || r.Ask == Command || r.Ask == Tool {
		kind = event.Verdict
	}
	message := ""
	if r.Ask == Run && r.Held {
		message = "it is killed before it begins"
	}
	if err := g.write(kind, r, v, message); err != nil {
		return NotLogged(err).About(v.Question)
	}
	return v
}

// observe allows, and writes what enforce would have done. Without the log there
// is nothing to observe with, and a failure is no allow (G9).
func (g *Gate) observe(r Request) Verdict {
	a, err := CheckAsker(r)
	would := refusal(a, err)
	if would.Reason == "" && !g.desk.HasApprover() && g.theReviewer() == nil {
		would = No(NoApprover, NobodyToAsk)
	}
	text := "would have been denied unless the reviewer or a person had let it out"
	if would.Reason != "" {
		text = fmt.Sprintf("would have been denied (%s): %s", would.Reason, would.Text)
	}
	v := Yes(Observe, text)
	if err := g.write(event.Connect, r, v, ""); err != nil {
		return NotLogged(err)
	}
	return v
}
