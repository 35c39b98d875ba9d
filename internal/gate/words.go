package gate

import (
	"weir/internal/gate/question"
	"weir/internal/gate/verdict"
)

// The gate's words, which its callers have from here.
type (
	Ask      = verdict.Ask
	Request  = verdict.Request
	Decision = verdict.Decision
	Reason   = verdict.Reason
	Verdict  = verdict.Verdict
	Question = question.Question
	Reply    = question.Reply
)

// What can be asked.
const (
	Connect = verdict.Connect
	Run     = verdict.Run
	Command = verdict.Command
	Tool    = verdict.Tool
)

// The decisions, and who decided where no person did.
const (
	Deny  = verdict.Deny
	Allow = verdict.Allow
	ByCop = verdict.ByCop
)

// The reasons.
const (
	Untainted      = verdict.Untainted
	Observe        = verdict.Observe
	LocalRun       = verdict.LocalRun
	SealedRun      = verdict.SealedRun
	Passed         = verdict.Passed
	Approved       = verdict.Approved
	Recognised     = verdict.Recognised
	Denied         = verdict.Denied
	Flagged        = verdict.Flagged
	Timeout        = verdict.Timeout
	Sealed         = verdict.Sealed
	QUIC           = verdict.QUIC
	NoApprover     = verdict.NoApprover
	QueueFull      = verdict.QueueFull
	Flood          = verdict.Flood
	StoreFailed    = verdict.StoreFailed
	LogFailed      = verdict.LogFailed
	Malformed      = verdict.Malformed
	Cancelled      = verdict.Cancelled
	UsedOnce       = verdict.UsedOnce
	ArgvLimit      = verdict.ArgvLimit
	TextLimit      = verdict.TextLimit
	Unparsable     = verdict.Unparsable
	Differs        = verdict.Differs
	Unclaimed      = verdict.Unclaimed
	CopTimeout     = verdict.CopTimeout
	CopTransport   = verdict.CopTransport
	CopRateLimited = verdict.CopRateLimited
	CopServer      = verdict.CopServer
	CopRefused     = verdict.CopRefused
	CopMalformed   = verdict.CopMalformed
	CopTooLarge    = verdict.CopTooLarge
	CopQueueFull   = verdict.CopQueueFull
	CopClosed      = verdict.CopClosed
	CopCancelled   = verdict.CopCancelled
	CopNone        = verdict.CopNone
	CopFailed      = verdict.CopFailed
)

// The states of a question.
const (
	StatePending  = question.StatePending
	StateApproved = question.StateApproved
	StateDenied   = question.StateDenied
	StateExpired  = question.StateExpired
	StateUsed     = question.StateUsed
)

// What an approval of a tool's call covers, beyond the call itself.
const (
	ForSession = question.ForSession
	ForKey     = question.ForKey
)

// Why an id cannot be answered or used.
var (
	ErrUnknown  = question.ErrUnknown
	ErrAnswered = question.ErrAnswered
	ErrExpired  = question.ErrExpired
	ErrUsed     = question.ErrUsed
	ErrNotGiven = question.ErrNotGiven
	ErrScope    = question.ErrScope
)
