package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// counted tells whether a word is what a program that counts prints: digits and white space, or nothing where it fails. No function has its name
// (a declaration of one is grey).
func counted(w *syntax.Word) bool {
	if w == nil || len(w.Parts) != 1 {
		return false
	}
	part := w.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && !q.Dollar && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	p, ok := part.(*syntax.CmdSubst)
	if !ok || len(p.Stmts) != 1 {
		return false
	}
	s := p.Stmts[0]
	for {
		if s.Negated || s.Background || s.Coprocess || s.Disown {
			return false
		}
		b, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		if !shell.Pipe(b.Op) || len(s.Redirs) > 0 {
			return false
		}
		s = b.Y
	}
	for _, r := range s.Redirs { // what it says of an error may have any text in it
		if r.Op != syntax.RdrIn && !(r.Op == syntax.RdrOut && r.N != nil && r.N.Value == "2" && shell.Bare(r.Word) == "/dev/null") {
			return false
		}
	}
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns) > 0 || len(c.Args) == 0 {
		return false
	}
	words := make([]string, len(c.Args))
	for i, a := range c.Args {
		if words[i] = shell.Bare(a); i == 2 && words[i] == "" && len(a.Parts) == 1 { // a pattern
			switch p := a.Parts[0].(type) {
			case *syntax.SglQuoted:
				words[i] = p.Value
			case *syntax.DblQuoted:
				words[i] = (&syntax.Word{Parts: p.Parts}).Lit()
			}
		}
	}
	switch args := strings.Join(words[1:], " "); words[0] {
	case "wc":
		return len(words) == 2 && commands.Listed("-l -c -w -m -L --lines --bytes --words --chars", args)
	case "grep", "egrep", "fgrep": // of one file
		return (len(words) == 3 || len(words) == 4 && words[3] != "" && words[3][0] != '-') && strings.HasPrefix(words[1], "-") && strings.Contains(words[1], "c") && strings.Trim(words[1][1:], "ciEFwxv") == "" &&
			words[2] != "" && words[2][0] != '-'
	case "date":
		return args == "+%s"
	case "nproc":
		return len(words) == 1
	case "id":
		return args == "-u" || args == "-g"
	}
	return false
}
