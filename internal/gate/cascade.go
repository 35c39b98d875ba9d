package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"weir/internal/event"
)

// Decide gives the verdict on one request, for every caller and every way in, by
// the Table. Without taint it returns at once and touches nothing (G4). A tainted
// command may run, but that opens nothing (G24, G25). A tainted connect blocks
// until the reviewer or a person answered, its deadline passed or ctx ended; when
// ctx ends a person's question stays, and a later approval is claimed by the same
// command. So does a command that a bridge was asked about.
//
// On Allow with Reason Approved, call Consume with the verdict's Question and open
// the destination only when that returns nil; with Reason Passed, open it.
func (g *Gate) Decide(ctx context.Context, r Request) Verdict {
	v := g.sound(r, g.still(r, g.decide(ctx, r)))
	g.counters[v.Reason].Add(1)
	return v
}

func (g *Gate) decide(ctx context.Context, r Request) Verdict {
	if v := early(&r); v.Reason == Untainted {
		return v
	}
	r.TaintRead = cmp.Or(r.TaintRead, g.clock().Sub(time.Unix(0, 0)))
	p := planOf(g.table, r)
	return p.walk(ctx, g).Classed(p.request.Judged)
}

// still gives a verdict that was made, unless the mode became seal meanwhile: then what would let something out is a denial, and an
// approval can be claimed when that is over.
func (g *Gate) still(r Request, v Verdict) Verdict {
	switch v.Reason {
	case Passed, Approved, Recognised, Standing:
	default:
		return v
	}
	if !g.sealed(r.Container.ID) {
		return v
	}
	if v.Open != nil {
		g.Return(v.Open.From, v.Open.Bytes)
	}
	if v.Reason == Approved {
		if err := g.Release(v.Question); err != nil {
			g.logger.WithError(err).WithField("question", v.Question).Error("give back an approval")
		}
	}
	return g.refuse(r, No(Sealed, textSealed).About(v.Question))
}

// sound gives a verdict, unless it allows what its reason never may.
func (g *Gate) sound(r Request, v Verdict) Verdict {
	if v.Decision != Allow || v.may(r) {
		return v
	}
	what := fmt.Sprintf("%s may not allow this in mode %s with taint %v", v.Reason, cmp.Or(r.Mode, modeEnforce), r.Container.Taint)
	g.opts.Broken("verdict", what)
	return g.refuse(r, No(Unsound, what+": a fault of the sensor's").About(v.Question))
}

// may says whether an allow with this reason can be given to a request at all (G4, G5, G7, G8, G15, G24, G25).
func (v Verdict) may(r Request) bool {
	mode := cmp.Or(r.Mode, modeEnforce)
	switch v.Reason {
	case Untainted:
		return len(r.Container.Taint) == 0 && (mode != modeSeal || r.Ask != Connect)
	case Observe:
		return mode == modeObserve
	case LocalRun, SealedRun, ReviewExec:
		return r.Ask != Connect && r.Ask != Tool // they open nothing
	case Passed:
		return mode == modeEnforce && r.Ask != Tool && v.By == ByCop
	case Recognised:
		return mode == modeEnforce && r.Ask != Tool && v.By != "" && (r.Ask != Connect || v.Open != nil && v.Open.Bytes > 0)
	case Standing:
		return mode == modeEnforce && r.Ask == Connect && v.Question != "" && v.Open != nil && v.Open.Bytes > 0
	case Approved:
		return mode != modeSeal && v.By != "" && v.Question != ""
	}
	return false
}

const textSealed = "the mode became seal before it was let out"

// Confirm asks a person about a call of a tool, whatever taint the container has: no rule and no reviewer answers in their place, and
// only seal refuses without asking. On Allow call Consume with the verdict's Question, and go on only when that returns nil.
func (g *Gate) Confirm(ctx context.Context, r Request) Verdict {
	r.Ask = Tool
	v := g.sound(r, g.still(r, g.confirm(ctx, r)))
	g.counters[v.Reason].Add(1)
	return v
}

func (g *Gate) confirm(ctx context.Context, r Request) Verdict {
	a, err := CheckRequest(r)
	switch {
	case r.Container.ID == "":
		return g.refuse(r, No(Malformed, "the request names no container"))
	case err != nil:
		return g.refuse(r, No(Malformed, err.Error()))
	case r.Mode == modeSeal:
		return g.refuse(r, No(Sealed, "the mode is seal"))
	}
	return g.ask(ctx, a)
}

// recall finds what was let run before, and whether a person was asked the same. It takes the permission of a command that begins, which counts once.
func (g *Gate) recall(ctx context.Context, p *plan) Verdict {
	if p.request.Ask == Run {
		if v, ok := g.recognise(p.request); ok {
			return v
		}
	}
	if p.row.Step == Pass || p.row.Step == Refuse {
		return Verdict{}
	}
	a := p.asker
	if known, ok := g.runs(a.Request); ok && a.Ask == Connect {
		left := maxSteps
		to, part := known.covers(a.Process, &left)
		switch {
		case !part:
			p.failed = Differs
		case g.says(ctx, to, a.Destination):
			if v := g.lets(known, a.Request); v.Reason != "" {
				given := g.give(p, v)
				if given.Decision != Allow {
					g.Return(v.Open.From, v.Open.Bytes)
				}
				return given
			}
			p.asker.Why = "the command was let run before, and has all the bytes that it may send"
		default:
			p.asker.Why = "the command was let run before, but did not say that it goes there"
		}
	}
	if v := g.standsFor(a); v.Reason != "" {
		return v
	}
	if to := p.request.Judged.Facts; a.Ask == Command && !a.Person && !to.Cut {
		if id := g.awaits(a, to.To); id != "" {
			return g.runSealed(p, id)
		}
	}
	p.asked = g.wasAsked(a)
	return Verdict{}
}

// runSealed lets a command run, which opens nothing: where it goes is let out by a standing approval when it connects, or asked about.
func (g *Gate) runSealed(p *plan, approval string) Verdict {
	v := Yes(SealedRun, "where it says that it goes is approved for longer; each connection is judged when it is made").About(approval)
	if err := g.write(event.Verdict, p.asker.Request, v, ""); err != nil {
		return NotLogged(err)
	}
	return v
}

// give writes a verdict that is about to be given. What only runs, and gets nowhere by it, is the caller's to write.
func (g *Gate) give(p *plan, v Verdict) Verdict {
	r := p.request
	if p.asker.self.PID != 0 { // it was checked
		r = p.asker.Request
	}
	switch {
	case v.Decision != Allow:
		return g.refuse(r, v)
	case v.Reason == Observe && r.Ask == Connect:
		return g.observe(r)
	case v.By == "":
		return v
	}
	if err := g.write(event.Verdict, r, v, ""); err != nil {
		return NotLogged(err)
	}
	if r.Ask != Connect {
		g.remember(p.whole(), v)
	}
	return v
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
func refusal(a CheckedRequest, malformed error) Verdict {
	switch {
	case malformed != nil:
		return No(Malformed, malformed.Error())
	case a.Ask == Connect && a.Destination.Protocol == "udp" && a.Destination.Port == 443:
		return No(QUIC, "QUIC is refused in a tainted container; use TCP")
	}
	return Verdict{}
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
	would := r
	would.Mode = modeEnforce
	text := "would have been denied unless the reviewer or a person had let it out"
	if f := DryRun(context.Background(), would, nil, g.hasApprover() || g.theReviewer() != nil); f.Step == Refuse {
		text = fmt.Sprintf("would have been denied (%s): %s", f.Reason, f.Text)
	}
	v := Yes(Observe, text)
	if err := g.write(event.Connect, r, v, ""); err != nil {
		return NotLogged(err)
	}
	return v
}
