package classify

import (
	"weir/internal/classify/command"
	"weir/internal/classify/facts"
	"weir/internal/classify/shell"
	"weir/internal/classify/table"
)

// Class is local, network or grey; the zero value is grey.
type Class = table.Class

const (
	Grey    = table.Grey
	Local   = table.Local
	Network = table.Network
)

// Limits. What is over one is grey, with its own reason.
const (
	MaxText  = command.MaxText
	MaxNodes = command.MaxNodes
	MaxWraps = command.MaxWraps
)

type (
	// Reason says what part of the input mattered and why.
	Reason = command.Reason
	// Facts are what later stages want to know of a command.
	Facts = facts.Facts
	// Observed is a command as the kernel saw it start.
	Observed = command.Observed
)

// Result is how a text was judged. Its zero value is grey.
type Result struct {
	Class   Class
	Reasons []Reason
	Facts   Facts
}

// Shell judges a text as bash and POSIX shells would read it.
func Shell(text string) Result {
	j := command.New(text)
	shell.Attach(j)
	j.Source(text)
	return Result{Class: j.Class, Reasons: j.Reasons, Facts: j.Facts}
}

// Argv judges a command that was seen to run.
func Argv(o Observed) Result {
	j := command.New("")
	shell.Attach(j)
	j.Observed(o)
	return Result{Class: j.Class, Reasons: j.Reasons, Facts: j.Facts}
}
