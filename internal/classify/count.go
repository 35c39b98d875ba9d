package classify

import (
	"slices"
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
	return counting(p.Stmts[0])
}

// counting says so of a statement: of a pipeline its last command counts, or drops some of what another counts.
func counting(s *syntax.Stmt) bool {
	if s.Negated || s.Background || s.Coprocess || s.Disown {
		return false
	}
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok {
		if !shell.Pipe(b.Op) || len(s.Redirs) > 0 {
			return false
		}
		switch last := literal(b.Y); {
		case b.Op == syntax.Pipe && len(last) == 3 && last[0] == "tr" && last[1] == "-d" && last[2] != "":
			return counting(b.X)
		case b.Op == syntax.Pipe && (slices.Equal(last, []string{"awk", "{print $1}"}) || slices.Equal(last, []string{"cut", "-d ", "-f1"}) || slices.Equal(last, []string{"cut", "-d", " ", "-f1"})):
			one := literal(b.X) // of one file
			return counting(b.X) || len(one) == 3 && one[0] == "wc" && commands.Listed(counts, one[1]) && one[2] != "" && one[2][0] != '-'
		}
		s = b.Y
	}
	words := literal(s)
	if len(words) == 0 {
		return false
	}
	switch args := strings.Join(words[1:], " "); words[0] {
	case "wc":
		return len(words) == 2 && commands.Listed(counts, args)
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

const counts = "-l -c -w -m -L --lines --bytes --words --chars"

// literal are the words of a plain command, empty where they are not known or patterns. None: it sets variables
// for it, or what it says of an error, which may have any text in it, goes where its output goes.
func literal(s *syntax.Stmt) []string {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns) > 0 || s.Negated || s.Background || s.Coprocess || s.Disown {
		return nil
	}
	for _, r := range s.Redirs {
		if r.Op != syntax.RdrIn && !(r.Op == syntax.RdrOut && r.N != nil && r.N.Value == "2" && shell.Bare(r.Word) == "/dev/null") {
			return nil
		}
	}
	words := make([]string, len(c.Args))
	for i, a := range c.Args {
		if words[i] = shell.Bare(a); words[i] != "" || i == 0 {
			continue
		}
		if w := shell.Words(a); len(w) == 1 && !strings.Contains(w[0], shell.Hole) && quotedOnly(a) {
			words[i] = w[0]
		}
	}
	return words
}

// quotedOnly says whether no part of a word is a pattern.
func quotedOnly(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && !shell.PlainLit(l.Value)
	})
}
