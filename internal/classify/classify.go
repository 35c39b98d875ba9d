package classify

import (
	"weir/internal/commands"
)

// Class is local, network or grey; the zero value is grey.
type Class = commands.Class

const (
	Grey    = commands.Grey
	Local   = commands.Local
	Network = commands.Network
)

// Result is how a text was judged. Its zero value is grey.
type Result struct {
	Class   Class
	Reasons []Reason
	Facts   Facts
}

// Shell judges a text as bash and POSIX shells would read it. dir is the directory that it runs in; where that is not known (empty), nothing
// relative to it is written.
func Shell(text, dir string) Result {
	j := newJudge(text, dir)
	j.nested(text)
	return Result{Class: j.Class, Reasons: j.Reasons, Facts: j.Facts}
}

// Argv judges a command that was seen to run.
func Argv(o Observed) Result {
	j := newJudge("", o.Dir)
	j.Observed(o)
	return Result{Class: j.Class, Reasons: j.Reasons, Facts: j.Facts}
}
