package gate

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// maxWraps bounds how deep a command is looked for.
const maxWraps = 5

// wrappedForms gives what a shell was told to run on its command line, from the
// outermost inwards: the text itself, and what is left when what agents put around
// a command is taken away. It is empty for what is no shell's command line.
func wrappedForms(argv []string) []commandForm {
	text, ok := shellText(argv)
	if !ok {
		return nil
	}
	return unwrap(text, nil)
}

// formText is a command line as a shell text: what a shell is told to run, or the
// words, quoted. It fails on what cannot be written so.
func formText(argv []string) (string, bool) {
	if forms := wrappedForms(argv); len(forms) > 0 {
		return forms[len(forms)-1].text, true
	}
	words := make([]string, len(argv))
	for i, arg := range argv {
		quoted, err := syntax.Quote(arg, syntax.LangBash)
		if err != nil {
			return "", false
		}
		words[i] = quoted
	}
	return strings.Join(words, " "), len(argv) > 0
}

func unwrap(text string, outer []commandForm) []commandForm {
	f, refused := shell.Parse(text)
	if refused != nil || len(f.Stmts) == 0 || len(outer) == maxWraps {
		return outer
	}
	outer = append(outer, formOf(f))
	rest := core(f)
	if len(rest) != 1 {
		return outer
	}
	if inner, ok := told(rest[0]); ok {
		return unwrap(inner, outer)
	}
	if kept := layout(rest[0]); kept != outer[len(outer)-1].text {
		return unwrap(kept, outer)
	}
	return outer
}

// shellText is the text of sh -c TEXT, with the shell's other options before it.
func shellText(argv []string) (string, bool) {
	if len(argv) < 2 || !shells[path.Base(argv[0])] {
		return "", false
	}
	at, ok := commands.ShellText(argv[1:])
	at++
	// One more word would be $0, which says nothing; further ones the text could use. A file says what runs first.
	if !ok || len(argv) > at+2 || slices.Contains(argv[:at], "--rcfile") || slices.Contains(argv[:at], "--init-file") {
		return "", false
	}
	return argv[at], true
}

var shells = commands.Names("sh bash dash zsh ash ksh")

// core is what a text does beside what agents add: they read a snapshot of the
// user's shell first, and write down the working directory last.
func core(f *syntax.File) []*syntax.Stmt {
	var rest []*syntax.Stmt
	for _, s := range f.Stmts {
		for _, part := range formChain(s) {
			if !added(part) {
				rest = append(rest, part)
			}
		}
	}
	return rest
}

// chain is the list a && b && c.
func formChain(s *syntax.Stmt) []*syntax.Stmt {
	b, ok := s.Cmd.(*syntax.BinaryCmd)
	if !ok || b.Op != syntax.AndStmt || !bare(s) {
		return []*syntax.Stmt{s}
	}
	return append(formChain(b.X), formChain(b.Y)...)
}

// bare says whether a statement has nothing but its command.
func bare(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && len(s.Redirs) == 0
}

// added says whether agents add such a statement.
func added(s *syntax.Stmt) bool {
	if s.Negated || s.Background || s.Coprocess {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return (c.Op == syntax.OrStmt || c.Op == syntax.AndStmt) && formQuiet(s) && added(c.X) && added(c.Y)
	case *syntax.Block:
		return formQuiet(s) && !slices.ContainsFunc(c.Stmts, func(s *syntax.Stmt) bool { return !added(s) })
	case *syntax.CallExpr:
		if len(c.Assigns) > 0 || len(c.Args) == 0 {
			return false
		}
		name, _ := literal(c.Args[0])
		switch name {
		case "source", ".":
			file, ok := literal(c.Args[min(1, len(c.Args)-1)])
			return ok && len(c.Args) == 2 && strings.Contains(file, "shell-snapshot") && formQuiet(s)
		case "shopt", "setopt", "unsetopt", "true":
			return formQuiet(s)
		case "pwd":
			return len(c.Args) == 2 && toFile(s)
		}
	}
	return false
}

// quiet says whether a statement's redirections go nowhere.
func formQuiet(s *syntax.Stmt) bool {
	return !slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool {
		target, ok := literal(r.Word)
		return !ok || target != "/dev/null" && !(r.Op == syntax.DplOut && (target == "1" || target == "2"))
	})
}

// toFile says whether a statement's only redirection is output to a fixed file.
func toFile(s *syntax.Stmt) bool {
	if len(s.Redirs) != 1 {
		return false
	}
	r := s.Redirs[0]
	target, ok := literal(r.Word)
	return ok && (r.Op == syntax.RdrClob || r.Op == syntax.RdrOut) && strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "/dev/")
}

// told is the text that a statement hands to eval, or to another shell.
func told(s *syntax.Stmt) (string, bool) {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || len(c.Assigns) > 0 || len(c.Args) < 2 || !fromNothing(s) {
		return "", false
	}
	words := make([]string, len(c.Args))
	for i, a := range c.Args {
		if words[i], ok = literal(a); !ok {
			return "", false
		}
	}
	if n := len(words); words[0] == "eval" {
		if n > 3 && words[n-2] == "<" && words[n-1] == "/dev/null" { // it reads that too
			n -= 2
		}
		return strings.Join(words[1:n], " "), true
	}
	return shellText(words)
}

// fromNothing says whether a statement's only redirection is input from nowhere.
func fromNothing(s *syntax.Stmt) bool {
	return !slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool {
		target, _ := literal(r.Word)
		return r.Op != syntax.RdrIn || target != "/dev/null"
	})
}
