package classify

import "weir/internal/commands"

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

// Git looks at the repository that git finds from a directory, and says which of its settings can make git run a program or fetch
// something where it only reads; empty if none can (F20). Whoever asks for a judgement may have one; package classify itself looks at nothing.
type Git func(dir string) (why string)

// Shell judges a text as bash and POSIX shells would read it. dir is the directory that it runs in; where that is not known (empty), nothing
// relative to it is written.
func Shell(text, dir string) Result { return ShellWith(text, dir, nil) }

// ShellWith is Shell for who can look at repositories.
func ShellWith(text, dir string, git Git) Result {
	j := newJudge(text, dir, git)
	j.nested(text)
	return j.result()
}

// Argv judges a command that was seen to run.
func Argv(o Observed) Result {
	j := newJudge("", o.Dir, o.Git)
	j.Observed(o)
	return j.result()
}

// result is the judgement of the whole. What a part brings there may be another repository than the one that was looked at.
func (j *judge) result() Result {
	if j.brings && j.looked.Length > 0 {
		j.FindWord(j.looked, Grey, "git-config", "other parts copy, move or link directories, in which there may be a repository that was not looked at")
	}
	return Result{Class: j.Class, Reasons: j.Reasons, Facts: j.Facts}
}
