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
	v := g.decide(ctx, r)
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
		return g.refuse(r, deny(Malformed, "the request names no container"))
	case level == Clean && r.Mode != modeSeal:
		return allow(Untainted, textUntainted)
	case !slices.Contains(modes, r.Mode):
		return g.refuse(r, deny(Malformed, fmt.Sprintf("the request has the unknown mode %q", r.Mode)))
	case !slices.Contains(asks, r.Ask):
		return g.refuse(r, deny(Malformed, fmt.Sprintf("the request asks for the unknown %d", r.Ask)))
	}
	judged := judge(r)
	r.judged = &judged
	row := rowOf(g.table, r.Mode, level, judged.Class, r.point())
	if r.Ask == Run && row.Reason != Observe {
		if v, ok := g.recognise(r); ok {
			return v.classed(judged)
		}
	}
	return g.carry(ctx, r, row, judged).classed(judged)
}

const textUntainted = "the container is not tainted"

// Confirm asks a person about a call of a tool, whatever taint the container has: no rule and no reviewer answers in their place, and
// only seal refuses without asking. On Allow call Used with the verdict's Question, and go on only when that returns nil.
func (g *Gate) Confirm(ctx context.Context, r Request) Verdict {
	r.Ask = Tool
	v := g.confirm(ctx, r)
	g.counters[v.Reason].Add(1)
	return v
}

func (g *Gate) confirm(ctx context.Context, r Request) Verdict {
	a, err := check(r)
	switch {
	case r.Container.ID == "":
		return g.refuse(r, deny(Malformed, "the request names no container"))
	case err != nil:
		return g.refuse(r, deny(Malformed, err.Error()))
	case r.Mode == modeSeal:
		return g.refuse(r, deny(Sealed, "the mode is seal"))
	case !g.hasApprover():
		return g.refuse(r, deny(NoApprover, textNoApprover))
	}
	return g.ask(ctx, a)
}

// carry goes the steps of a row.
func (g *Gate) carry(ctx context.Context, r Request, row Row, judged classify.Result) Verdict {
	switch {
	case row.Step == Refuse:
		return g.refuse(r, deny(row.Reason, row.Why))
	case row.Step == Pass && row.Reason == Observe && r.Ask == Connect:
		return g.observe(r)
	case row.Step == Pass:
		return allow(row.Reason, row.Why)
	}
	a, err := check(r)
	if v := refusal(a, err); v.Reason != "" {
		return g.refuse(r, v)
	}
	failed := unreadable(a.Request, judged)
	if known, ok := g.runs(a.Request); ok && r.Ask == Connect {
		switch {
		case !known.covers(a.Process):
			failed = Differs
		case g.says(ctx, classify.Shell(known.text).Facts, a.Destination):
			return g.reviewed(a.Request, known.verdict())
		default:
			a.why = "the command was let run before, but did not say that it goes there"
		}
	}
	step := row.Step
	if failed != "" {
		g.counters[failed].Add(1)
		step, a.why = Person, describe(failed)
	}
	if step == Review && !g.asked(a) {
		v, why := g.opinion(ctx, a.Request, row, judged)
		if v = g.reviewed(a.Request, v); v.Reason != "" {
			return v
		}
		a.why = cmp.Or(why, a.why)
	}
	if !g.hasApprover() {
		return g.refuse(r, deny(NoApprover, textNoApprover))
	}
	return g.ask(ctx, a)
}

// describe words a failure for people.
func describe(r Reason) string {
	all := Failures()
	return all[slices.IndexFunc(all, func(f Failure) bool { return f.Reason == r })].What
}

// refusal gives the denial that no answer can change, or none.
func refusal(a asker, malformed error) Verdict {
	switch {
	case malformed != nil:
		return deny(Malformed, malformed.Error())
	case a.Ask == Connect && a.Destination.Protocol == "udp" && a.Destination.Port == 443:
		return deny(QUIC, "QUIC is refused in a tainted container; use TCP")
	}
	return Verdict{}
}

const textNoApprover = "the policy names no approver, so nobody can open this"

func (g *Gate) hasApprover() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.approver
}

// asked says whether a person was asked this already: their word comes before the reviewer's.
func (g *Gate) asked(a asker) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep()
	defer g.schedule()
	return g.match(a, func(*question) bool { return true }) != nil
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
		return logFailed(err)
	}
	if r.Ask != Connect {
		g.remember(r, v)
	}
	return v
}

// refuse writes a denial that is about to be given.
func (g *Gate) refuse(r Request, v Verdict) Verdict {
	kind := event.Connect
	if r.Ask == Run || r.Ask == Command || r.Ask == Tool {
		kind = event.Verdict
	}
	if err := g.write(kind, r, v, ""); err != nil {
		return logFailed(err).about(v.Question)
	}
	return v
}

// observe allows, and writes what enforce would have done. Without the log there
// is nothing to observe with, and a failure is no allow (G9).
func (g *Gate) observe(r Request) Verdict {
	a, err := check(r)
	would := refusal(a, err)
	if would.Reason == "" && !g.hasApprover() && g.theReviewer() == nil {
		would = deny(NoApprover, textNoApprover)
	}
	text := "would have been denied unless the reviewer or a person had let it out"
	if would.Reason != "" {
		text = fmt.Sprintf("would have been denied (%s): %s", would.Reason, would.Text)
	}
	v := allow(Observe, text)
	if err := g.write(event.Connect, r, v, ""); err != nil {
		return logFailed(err)
	}
	return v
}

func logFailed(err error) Verdict {
	return deny(LogFailed, fmt.Sprintf("the event log cannot be written (%v); nothing is allowed until it can", err))
}
