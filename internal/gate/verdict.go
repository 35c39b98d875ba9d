package gate

import (
	"fmt"

	"weir/internal/classify"
	"weir/internal/event"
)

// Decision is what a verdict says. Its zero value denies.
type Decision uint8

// The decisions.
const (
	Deny Decision = iota
	Allow
)

// String gives the word that events and wire formats use.
func (d Decision) String() string {
	if d == Allow {
		return "allow"
	}
	return "deny"
}

// Reason is the stable code of why a verdict is as it is; each has a counter.
type Reason string

// Reasons to allow.
const (
	Untainted  Reason = "untainted"   // tier 1: the container has no taint (G4)
	Observe    Reason = "observe"     // the mode denies nothing
	LocalRun   Reason = "local"       // tier 2: it provably stays inside, and opens nothing (G5)
	SealedRun  Reason = "sealed_run"  // a tainted command may run, and opens nothing (G25)
	ReviewExec Reason = "review_exec" // the same, but it is stopped, where it can be, and judged before it begins
	Passed     Reason = "not_flagged" // the reviewer found nothing (G7, G8)
	Approved   Reason = "approved"    // a person approved this very question
	Recognised Reason = "recognised"  // it is a command that was approved before it ran (G26)
	Standing   Reason = "standing"    // a person approved it for a time or a session
)

// Reasons to deny.
const (
	Denied      Reason = "denied"       // a person said no
	Flagged     Reason = "flagged"      // the reviewer found it suspicious
	Timeout     Reason = "timeout"      // nobody answered in time
	Sealed      Reason = "sealed"       // the mode denies all egress
	QUIC        Reason = "quic"         // UDP 443: the client shall fall back to TCP
	NoApprover  Reason = "no_approver"  // the policy has nobody to ask
	QueueFull   Reason = "queue_full"   // too many questions or askers wait
	Flood       Reason = "flood"        // the container has its share of questions, or asks too fast
	StoreFailed Reason = "store_failed" // the question or its answer could not be made durable
	LogFailed   Reason = "log_failed"   // the event could not be written
	Malformed   Reason = "malformed"    // the request does not say who wants what
	Cancelled   Reason = "cancelled"    // the asker went away or needs no answer any more, or the gate closed
	Unsound     Reason = "unsound"      // the verdict would have broken a rule that always holds
	UsedOnce    Reason = "used_once"    // another asker of the same question has the approval
)

// Codes that are counted, or written in events, beside a verdict.
const (
	ArgvLimit      Reason = "argv_limit" // argv is incomplete: asked, and bound to the one process
	TextLimit      Reason = "text_limit" // too long or too nested to be judged
	Unparsable     Reason = "unparsable" // no shell text
	Differs        Reason = "differs"    // below an approved command, but not what was approved (G26)
	Unclaimed      Reason = "unclaimed"  // a late approval ended before anybody claimed it
	CopTimeout     Reason = "cop_timeout"
	CopTransport   Reason = "cop_transport"
	CopRateLimited Reason = "cop_rate_limited"
	CopServer      Reason = "cop_server"
	CopRefused     Reason = "cop_refused"
	CopMalformed   Reason = "cop_malformed"
	CopTooLarge    Reason = "cop_too_large"
	CopQueueFull   Reason = "cop_queue_full"
	CopClosed      Reason = "cop_closed"
	CopCancelled   Reason = "cop_cancelled"
	CopNone        Reason = "cop_none"
	CopFailed      Reason = "cop_failed"
)

// ByCop is who answered, where no person did.
const ByCop = "cop"

// Verdict is the gate's answer. Verdict{} denies.
type Verdict struct {
	Decision Decision
	Reason   Reason
	Text     string        // one sentence for people
	By       string        // who answered: a person, or cop; empty when nobody was asked
	Question string        // the question's id; empty when none was asked
	Scope    int           // of an approval that lets a process out, from 1, which is who asked
	Root     *event.Member // with a scope above 1: who is let out with all that it starts
	For      string        // what an approval of a tool's call covers: empty, ForSession or ForKey
	Rule     string        // with For: the permission rule that allows as much
	Open     *Opening      // with Standing, and with Recognised of a connection: what it opens
	Class    string        // of the command, as it was classified; empty when that did not matter
	Judged   string        // why it is of that class
	Failed   Reason        // what failed before, so that a person had to decide; empty: nothing
}

// Event gives the verdict as events tell it.
func (v Verdict) Event() *event.Decision {
	return &event.Decision{Decision: v.Decision.String(), Reason: string(v.Reason), Text: v.Text, By: v.By, Class: v.Class, Judged: v.Judged, Failed: string(v.Failed), Scope: v.Scope, Process: v.Root}
}

// No denies.
func No(r Reason, text string) Verdict { return Verdict{Reason: r, Text: text} }

// Yes allows.
func Yes(r Reason, text string) Verdict { return Verdict{Decision: Allow, Reason: r, Text: text} }

// NotLogged denies, since an event could not be written.
func NotLogged(err error) Verdict {
	return No(LogFailed, fmt.Sprintf("the event log cannot be written (%v); nothing is allowed until it can", err))
}

// NobodyToAsk is the text of a denial with NoApprover.
const NobodyToAsk = "the policy names no approver, so nobody can open this"

func nobody(a CheckedRequest) Verdict { return No(NoApprover, NobodyToAsk).after(a.Failed) }

// after adds to a denial why a person was needed at all: something failed before (F14).
func (v Verdict) after(failed Reason) Verdict {
	v.Failed = failed
	if what := failed.Describe(); what != "" && v.Decision == Deny {
		v.Text += "; a person had to decide: " + what
	}
	return v
}

// About ties a verdict to a question.
func (v Verdict) About(id string) Verdict {
	v.Question = id
	return v
}

// From names who answered.
func (v Verdict) From(who string) Verdict {
	v.By = who
	return v
}

// step is the one that ends with v.
func (v Verdict) step() Step {
	if v.Decision == Allow {
		return Pass
	}
	return Refuse
}

// Classed says how the command was classified; nil: it was not.
func (v Verdict) Classed(judged *classify.Result) Verdict {
	if judged == nil {
		return v
	}
	v.Class = judged.Class.String()
	if len(judged.Reasons) > 0 {
		v.Judged = judged.Reasons[0].Text
	}
	return v
}

// Tier says which part of the cascade gives a verdict with this reason: taint, class, reviewer, person, earlier (a verdict on
// the same command), mode, or gate where none of them had a say. Empty: the code stands beside a verdict.
func (r Reason) Tier() string {
	switch r {
	case Untainted:
		return "taint"
	case LocalRun, SealedRun, ReviewExec:
		return "class"
	case Passed, Flagged:
		return "reviewer"
	case Approved, Denied, Timeout, NoApprover, UsedOnce:
		return "person"
	case Recognised, Standing:
		return "earlier"
	case Observe, Sealed:
		return "mode"
	case QUIC, QueueFull, Flood, StoreFailed, LogFailed, Malformed, Cancelled, Unsound:
		return "gate"
	}
	return ""
}

// Decision is that of a verdict with this reason.
func (r Reason) Decision() Decision {
	switch r {
	case Untainted, Observe, LocalRun, SealedRun, ReviewExec, Passed, Approved, Recognised, Standing:
		return Allow
	}
	return Deny
}
