package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// testClause walks [[ … ]].
func (j *judge) testClause(c *syntax.TestClause) {
	if strings.Contains(j.slice(c), "\n") {
		j.grey(c, "syntax", "[[ over more than one line is a list of commands in some shells")
	}
	j.testExpr(c.X)
	j.local(c, "a test of the shell")
}

func (j *judge) testExpr(x syntax.TestExpr) {
	if !j.down(x) {
		j.up()
		return
	}
	defer j.up()
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest, syntax.OrTest:
			j.testExpr(x.X)
			// POSIX shells run what is behind && or || as a command.
			if !shell.OperatorFirst(x.Y) {
				j.grey(x, "syntax", "some shells take what is behind && or || in [[ ]] for a command")
			}
			j.testExpr(x.Y)
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			j.testNumber(x.X)
			j.testNumber(x.Y)
		case syntax.TsAfter:
			j.testExpr(x.X)
			if w, ok := x.Y.(*syntax.Word); ok {
				j.Write(j.single(w)) // in POSIX shells
			}
		case syntax.TsReMatch:
			j.testExpr(x.X)
			if w, ok := x.Y.(*syntax.Word); ok && shell.BareOperator(w) {
				j.grey(x, "syntax", "some shells take | and & in a pattern for operators")
			}
			j.testExpr(x.Y)
		default:
			j.testExpr(x.X)
			j.testExpr(x.Y)
		}
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			w, ok := x.X.(*syntax.Word)
			if !ok || !commands.PlainName(w.Lit()) {
				j.grey(x, "arithmetic", "a subscript in a name can run commands")
			}
			return
		}
		j.testExpr(x.X)
	case *syntax.ParenTest:
		j.testExpr(x.X)
	case *syntax.Word:
		j.pattern(x)
	default:
		j.grey(x, "syntax", "this kind of test is not known")
	}
}

// testNumber accepts a number, or a variable that holds one: [[ ]] evaluates both
// sides of -eq as expressions.
func (j *judge) testNumber(x syntax.TestExpr) {
	w, ok := x.(*syntax.Word)
	if !ok {
		j.grey(x, "arithmetic", "this kind of test is not known")
		return
	}
	v := j.single(w)
	if v.Fixed && commands.IsNumber(v.Text) {
		return
	}
	if len(w.Parts) == 1 {
		part := w.Parts[0]
		if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
			part = q.Parts[0]
		}
		if p, ok := part.(*syntax.ParamExp); ok && p.Param != nil {
			simple := !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
			if simple && (p.Length || len(p.Param.Value) == 1 && strings.Contains("?#$", p.Param.Value) || j.Shell.Get(p.Param.Value).counts()) {
				return
			}
		}
		if _, ok := part.(*syntax.ArithmExp); ok || counted(w) {
			return
		}
	}
	j.grey(x, "arithmetic", "[[ ]] evaluates a value as an expression, which can run commands in its subscripts")
}

// arithmCmd walks (( … )). POSIX shells take it for two subshells, so only forms are
// accepted whose words are no commands.
func (j *judge) arithmCmd(c *syntax.ArithmCmd) {
	name := ""
	switch x := c.X.(type) {
	case *syntax.UnaryArithm:
		if w, ok := x.X.(*syntax.Word); ok && x.Post {
			name = w.Lit()
		}
	case *syntax.BinaryArithm:
		if w, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.AddAssgn || x.Op == syntax.SubAssgn) {
			if y, ok := x.Y.(*syntax.Word); ok && commands.Digits(y.Lit()) {
				name = w.Lit()
			}
		}
	}
	if name == "" {
		j.grey(c, "arithmetic", "some shells take (( )) for a command in brackets")
		return
	}
	j.arithm(c.X)
}
