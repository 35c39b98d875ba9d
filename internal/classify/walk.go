package classify

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

func (j *judge) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		if j.Over {
			return
		}
		j.stmt(s)
	}
}

func (j *judge) stmt(s *syntax.Stmt) {
	if !j.down(s) {
		j.up()
		return
	}
	defer j.up()
	if s.Coprocess || s.Disown {
		j.grey(s, "syntax", "this kind of statement is not known")
		return
	}
	if s.Background {
		shell := j.Shell.Clone()
		defer func() { j.Shell = shell }()
	}
	j.redirects(s)
	switch {
	case s.Cmd == nil:
	case slices.ContainsFunc(s.Redirs, mayFail):
		j.maybe(func() { j.command(s) })
	default:
		j.command(s)
	}
}

// mayFail tells whether a redirection may not be made, so that a shell does not run what it belongs to.
func mayFail(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false
	}
	return !commands.Listed("/dev/null - 0 1 2", r.Word.Lit())
}

func (j *judge) command(s *syntax.Stmt) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		j.call(c)
	case *syntax.BinaryCmd:
		j.binary(c)
	case *syntax.Subshell:
		j.subshell(c, c.Stmts)
	case *syntax.Block:
		j.stmts(c.Stmts)
	case *syntax.IfClause:
		j.ifClause(c)
	case *syntax.WhileClause:
		j.loop(c, func() {
			j.stmts(c.Cond)
			j.stmts(c.Do)
		})
	case *syntax.ForClause:
		j.forClause(c)
	case *syntax.CaseClause:
		j.caseClause(c)
	case *syntax.FuncDecl:
		j.funcDecl(c)
	case *syntax.TestClause:
		j.testClause(c)
	case *syntax.DeclClause:
		j.declClause(c)
	case *syntax.ArithmCmd:
		j.arithmCmd(c)
	case *syntax.TimeClause:
		j.timed(c)
	case *syntax.LetClause:
		j.grey(c, "arithmetic", "let is read in different ways, and evaluates names")
	case *syntax.CoprocClause:
		j.grey(c, "syntax", "a coprocess is not followed")
		if c.Stmt != nil {
			j.subshell(c, []*syntax.Stmt{c.Stmt})
		}
	default:
		j.grey(s, "syntax", "this kind of command is not known")
	}
}

// timed walks time CMD. POSIX shells have a program of that name, so that only a plain
// command is the same to all of them: no assignment, function or builtin.
func (j *judge) timed(c *syntax.TimeClause) {
	j.Facts.Program("time")
	if c.Stmt == nil {
		return
	}
	j.stmt(c.Stmt)
	first := c.Stmt
	for {
		b, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		first = b.X
	}
	call, ok := first.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 || shell.Bare(call.Args[0]) == "" {
		j.grey(c, "syntax", "time is a program in some shells, which runs only programs")
		return
	}
	name := shell.Bare(call.Args[0])
	if _, ok := j.Shell.Funcs[name]; ok {
		j.grey(c, "function", "time is a program in some shells, which runs the program and not the function of this name")
	} else if cmd := commands.Lookup(name); cmd != nil && cmd.Builtin {
		j.grey(c, "syntax", "time is a program in some shells, which has no builtins")
	}
}

// subshell walks statements whose changes to the shell are lost at their end.
func (j *judge) subshell(n syntax.Node, list []*syntax.Stmt) {
	if !j.down(n) {
		j.up()
		return
	}
	defer j.up()
	shell := j.Shell.Clone()
	j.stmts(list)
	j.Shell = shell
}

// binary walks && || | from left to right. The tree leans to the left: it is
// unrolled, so that a long list is not deep.
func (j *judge) binary(c *syntax.BinaryCmd) {
	var few [8]*syntax.BinaryCmd
	chain := append(few[:0], c)
	for {
		s := chain[len(chain)-1].X
		x, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok || len(s.Redirs) > 0 || s.Background || !j.Step() {
			break
		}
		chain = append(chain, x)
	}
	last := chain[len(chain)-1]
	if shell.Pipe(last.Op) {
		j.piped(last.X, true)
	} else {
		j.stmt(last.X)
	}
	at, all := j.succeeded(last.X), true // all: what follows runs where all before it succeeded
	for i := len(chain) - 1; i >= 0 && !j.Over; i-- {
		if shell.Pipe(chain[i].Op) {
			j.piped(chain[i].Y, i > 0 && shell.Pipe(chain[i-1].Op))
			at = j.Shell.Dir.At
			continue
		}
		all = all && chain[i].Op == syntax.AndStmt
		j.maybe(func() {
			if all {
				j.Shell.Dir.At = at
			}
			j.stmt(chain[i].Y)
			at = j.succeeded(chain[i].Y)
		})
	}
}

// succeeded is every directory that the shell may be in after a statement that has just been walked, and that did not fail.
func (j *judge) succeeded(s *syntax.Stmt) []string {
	if enters(s) {
		return j.Shell.Dir.Next
	}
	return j.Shell.Dir.At
}

// enters tells whether a statement is cd, and nothing else.
func enters(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && !s.Negated && !s.Background && len(c.Args) > 0 && shell.Bare(c.Args[0]) == "cd"
}

// piped walks a part of a pipeline. It runs in a subshell, or the last one here: then
// what it assigned is not known.
func (j *judge) piped(s *syntax.Stmt, on bool) {
	piped := j.Piped
	j.Piped = piped || on
	j.maybe(func() { j.stmt(s) })
	j.Piped = piped
}

// maybe walks a part that may not run.
func (j *judge) maybe(walk func()) {
	before := j.Shell.Clone()
	walk()
	j.Shell.Join(&before)
}

func (j *judge) ifClause(c *syntax.IfClause) {
	depth := j.Depth
	defer func() { j.Depth = depth }()
	var after *shellState
	for ; c != nil && !j.Over; c = c.Else {
		j.Step()
		j.stmts(c.Cond)
		before := j.Shell.Clone()
		j.stmts(c.Then)
		if after == nil {
			after = new(shellState)
			*after = j.Shell.Clone()
		} else {
			after.Join(&j.Shell)
		}
		if c.ThenPos.IsValid() {
			j.Shell = before
		}
	}
	if after != nil {
		j.Shell.Join(after)
	}
}

func (j *judge) caseClause(c *syntax.CaseClause) {
	j.single(c.Word)
	after := j.Shell.Clone()
	for _, item := range c.Items {
		if !j.Step() {
			return
		}
		for _, p := range item.Patterns {
			j.maybe(func() { j.pattern(p) })
		}
		before := j.Shell.Clone()
		j.stmts(item.Stmts)
		after.Join(&j.Shell)
		if item.Op == syntax.Break {
			j.Shell = before
		} else {
			j.Shell.Join(&before) // the next item is come to from here, or from the pattern
		}
	}
	after.Join(&j.Shell)
	j.Shell = after
}

// pattern walks a pattern of case and [[ ]] for what it does.
func (j *judge) pattern(w *syntax.Word) { j.single(w) }

// evaluate gives the words of a command.
func (j *judge) evaluate(args []*syntax.Word) []commands.Word {
	mark := len(j.words)
	for _, w := range args {
		if !j.Step() {
			break
		}
		j.words = j.fields(j.words, w)
	}
	return j.words[mark:len(j.words):len(j.words)]
}

// call walks a simple command.
func (j *judge) call(c *syntax.CallExpr) {
	if !j.Spend(int(c.End().Offset()) - int(c.Pos().Offset())) {
		return
	}
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			j.assign(a)
		}
		j.local(c, "sets variables of this shell only")
		return
	}
	mark := len(j.words)
	words := j.evaluate(c.Args)
	defer func() { j.words = j.words[:mark] }()
	if j.Over {
		return
	}
	if len(words) == 0 {
		j.grey(c, "word-unknown", "the command's name comes from an expansion")
		return
	}
	if len(c.Assigns) > 0 {
		cmd, name := j.Named(words[0], Written)
		j.prefix(c.Assigns, cmd, name)
	}
	j.Run(words, Written)
}
