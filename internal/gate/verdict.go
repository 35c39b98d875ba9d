package gate

import "weir/internal/event"

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
	Untainted Reason = "untainted"  // tier 1: the container has no taint (G4)
	Observe   Reason = "observe"    // the mode denies nothing
	SealedRun Reason = "sealed_run" // a tainted command may run, and opens nothing (G25)
	Approved  Reason = "approved"   // a person approved this very question
)

// Reasons to deny.
const (
	Denied      Reason = "denied"       // a person said no
	Timeout     Reason = "timeout"      // nobody answered in time
	Sealed      Reason = "sealed"       // the mode denies all egress
	QUIC        Reason = "quic"         // UDP 443: the client shall fall back to TCP
	NoApprover  Reason = "no_approver"  // the policy has nobody to ask
	QueueFull   Reason = "queue_full"   // too many questions or askers wait
	Flood       Reason = "flood"        // the container has its share of questions, or asks too fast
	StoreFailed Reason = "store_failed" // the question or its answer could not be made durable
	LogFailed   Reason = "log_failed"   // the event could not be written
	Malformed   Reason = "malformed"    // the request does not say who wants what
	Cancelled   Reason = "cancelled"    // the asker went away, or the gate closed
	UsedOnce    Reason = "used_once"    // another asker of the same question has the approval
)

// Codes that are counted, or written in events, beside a verdict.
const (
	ArgvLimit Reason = "argv_limit" // argv is incomplete: asked, and bound to the one process
	Unclaimed Reason = "unclaimed"  // a late approval ended before anybody claimed it
)

func reasons() []Reason {
	return []Reason{
		Untainted, Observe, SealedRun, Approved,
		Denied, Timeout, Sealed, QUIC, NoApprover, QueueFull, Flood, StoreFailed, LogFailed, Malformed, Cancelled, UsedOnce,
		ArgvLimit, Unclaimed,
	}
}

// Verdict is the gate's answer. Verdict{} denies.
type Verdict struct {
	Decision Decision
	Reason   Reason
	Text     string // one sentence for people
	By       string // who answered; empty when no person did
	Question string // the question's id; empty when none was asked
}

// Event gives the verdict as events tell it.
func (v Verdict) Event() *event.Decision {
	return &event.Decision{Decision: v.Decision.String(), Reason: string(v.Reason), Text: v.Text, By: v.By}
}

func deny(r Reason, text string) Verdict { return Verdict{Reason: r, Text: text} }

func allow(r Reason, text string) Verdict { return Verdict{Decision: Allow, Reason: r, Text: text} }

// about ties a verdict to a question.
func (v Verdict) about(id string) Verdict {
	v.Question = id
	return v
}
