package classify

import (
	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// funcDecl judges a function's body for every state it may be called in, so that a
// call of it is no new question.
func (j *judge) funcDecl(c *syntax.FuncDecl) {
	if c.Name == nil || !shell.FunctionName(c.Name.Value) || commands.Lookup(c.Name.Value) != nil {
		j.grey(c, "function", "takes the name of a command, a builtin, or of something the shell calls by itself")
		return
	}
	if !shell.Compound(c.Body) {
		j.grey(c, "function", "a function that is part of a pipeline or a list is not followed")
		return
	}
	if j.Shell.Function || j.Shell.Handler || len(j.Shell.Funcs) >= MaxTracked {
		j.grey(c, "function", "functions inside functions, or too many of them, are not followed")
		return
	}
	name := c.Name.Value
	before := j.Shell.Clone()
	j.Shell = shellState{Function: true, Dir: j.Shell.Dir, Funcs: before.Funcs}
	_, again := before.Funcs[name]
	if j.Shell.Funcs == nil {
		j.Shell.Funcs = make(map[string]bool)
	}
	j.Shell.Funcs[name] = true // recursion
	j.Shell.Dir.Leave()
	moves := false
	syntax.Walk(c.Body, func(n syntax.Node) bool {
		if !j.scan() {
			return false
		}
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			switch name := shell.Bare(call.Args[0]); name {
			case "cd", "pushd", "popd", "command", "builtin", "eval", "":
				moves = true
			default:
				moves = moves || j.Shell.Funcs[name]
			}
		}
		return true
	})
	if again {
		j.grey(c, "function", "declares a function twice")
	}
	piped := j.Piped
	j.Piped = false
	j.stmt(c.Body)
	j.Piped = piped
	funcs := j.Shell.Funcs
	j.Shell = before
	j.Shell.Funcs = funcs
	j.Shell.Funcs[name] = moves
}
