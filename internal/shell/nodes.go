package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
)

// ArithmValue tells whether a word is an integer whatever it expands to.
func ArithmValue(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.ArithmExp:
		return true
	case *syntax.Lit:
		return commands.IsNumber(p.Value)
	}
	return false
}

// FunctionName tells whether a name is plain, and not one that the shell itself calls.
func FunctionName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(commands.Letter(c) || c == '_' || i > 0 && (c >= '0' && c <= '9' || c == '-')) {
			return false
		}
	}
	return s != "" && !strings.HasSuffix(s, "_handle") && !strings.HasPrefix(s, "_")
}

// Compound tells whether a function's body is a compound command. The parser takes what
// follows it (f() { :; } && x) for the body as well.
func Compound(s *syntax.Stmt) bool {
	switch s.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
		return true
	}
	return false
}

// Unquoted tells whether a word has an expansion outside quotes whose value is split.
func Unquoted(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst:
			return true
		}
	}
	return false
}

// QuotedKey tells whether a subscript is one text in double quotes.
func QuotedKey(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	switch w.Parts[0].(type) {
	case *syntax.DblQuoted:
		return true
	}
	return false
}

// OperatorFirst tells whether an expression begins with an operator such as -f, which
// is no command.
func OperatorFirst(x syntax.TestExpr) bool {
	switch x := x.(type) {
	case *syntax.UnaryTest:
		return x.Op != syntax.TsNot
	case *syntax.BinaryTest:
		return OperatorFirst(x.X)
	}
	return false
}

// BareOperator tells whether a pattern has an unquoted operator of the shell.
func BareOperator(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.ContainsAny(l.Value, "|&;")
	})
}

// Bare is the text of a word without quotes, expansions and patterns; empty for any other.
func Bare(w *syntax.Word) string {
	if lit := w.Lit(); PlainLit(lit) {
		return lit
	}
	return ""
}

// Pipe tells whether an operator joins two commands by a pipe.
func Pipe(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }
