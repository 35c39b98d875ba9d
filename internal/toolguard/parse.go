package toolguard

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/shell"
)

// maxFrames bounds the parser's recursion, in function calls; what is deeper is not read.
const maxFrames = 1200

// forkBomb is the name of the command that stands for a function which runs itself twice at once.
const forkBomb = "\x01bomb"

// cleanPOSIX takes out of a text what shells do not see, or see as something else.
func cleanPOSIX(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "\r\n", "\n")
}

// eachPOSIX gives the commands of a clean text, in the order in which they stand there, a statement's at a time, for as long as goOn says so. Behind a
// syntax error there are none: a shell stops there too, and so it is told. of is the length of the text that this one is a part of.
func eachPOSIX(text string, of int, goOn func([]*Command) bool) error {
	w := &walker{vars: map[string]string{"HOME": "~"}, budget: 4*of + MaxValue}
	if !shell.Crowded(text) {
		w.each(text, goOn)
		return w.failed
	}
	for more := true; more && text != ""; { // too much for the parser at once
		n := min(len(text), pieceLen)
		if end := strings.LastIndexByte(text[:n], '\n'); end >= 0 && n < len(text) {
			n = end + 1
		}
		more = w.each(text[:n], goOn)
		text = text[n:]
	}
	return w.failed
}

// pieceLen is how long the pieces are that a text with very many parts is read in, in bytes.
const pieceLen = 32 << 10

func (w *walker) each(text string, goOn func([]*Command) bool) bool {
	done := false
	for s, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(shell.Guard(text, maxFrames)) {
		if err != nil {
			w.failed = err
		}
		if done || err != nil { // the parser may go on after a break, so there is none
			continue
		}
		w.stmt(s, nil)
		done = len(w.out) > 0 && !goOn(w.out)
		w.out = w.out[:0]
	}
	return !done
}

type walker struct {
	out    []*Command
	vars   map[string]string
	budget int // bytes that variables may still add
	failed error
}

func (w *walker) stmts(list []*syntax.Stmt, from *Command) *Command {
	var last *Command
	for _, s := range list {
		if c := w.stmt(s, from); c != nil {
			last = c
		}
	}
	return last
}

// stmt walks one statement; its result is the command whose output it has.
func (w *walker) stmt(s *syntax.Stmt, from *Command) *Command {
	if s == nil {
		return nil
	}
	var c *Command
	switch x := s.Cmd.(type) {
	case *syntax.CallExpr:
		c = w.call(x, from)
	case *syntax.BinaryCmd:
		c = w.binary(x, from)
	case *syntax.Block:
		c = w.stmts(x.Stmts, from)
	case *syntax.Subshell:
		c = w.stmts(x.Stmts, from)
	case *syntax.TimeClause:
		c = w.stmt(x.Stmt, from)
	case *syntax.IfClause:
		for ; x != nil; x = x.Else {
			w.stmts(x.Cond, from)
			c = w.stmts(x.Then, from)
		}
	case *syntax.WhileClause:
		w.stmts(x.Cond, from)
		c = w.stmts(x.Do, from)
	case *syntax.FuncDecl:
		if bomb(x) {
			w.out = append(w.out, &Command{Name: forkBomb, Program: x.Name.Value})
		}
		w.stmt(x.Body, nil)
	case nil:
	default:
		w.inside(x)
	}
	if len(s.Redirs) == 0 {
		return c
	}
	if c == nil {
		c = &Command{From: from}
		w.out = append(w.out, c)
	}
	for _, r := range s.Redirs {
		w.redirect(r, c)
	}
	return c
}

// inside walks the statements in any other node.
func (w *walker) inside(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			w.stmt(n, nil)
			return false
		case *syntax.Assign:
			w.assign(n)
			return false
		}
		return true
	})
}

// binary walks a list from left to right; the tree leans to the left.
func (w *walker) binary(b *syntax.BinaryCmd, from *Command) *Command {
	chain := []*syntax.BinaryCmd{b}
	for {
		s := chain[len(chain)-1].X
		x, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok || len(s.Redirs) > 0 {
			break
		}
		chain = append(chain, x)
	}
	c := w.stmt(chain[len(chain)-1].X, from)
	for i := len(chain) - 1; i >= 0; i-- {
		var up *Command
		if shell.Pipe(chain[i].Op) {
			up = c
		}
		c = w.stmt(chain[i].Y, up)
	}
	return c
}

func (w *walker) call(x *syntax.CallExpr, from *Command) *Command {
	for _, a := range x.Assigns {
		w.assign(a)
	}
	if len(x.Args) == 0 {
		return nil
	}
	c := &Command{From: from}
	var words []Value
	for i, a := range x.Args {
		if i > MaxArgs {
			break
		}
		words = append(words, w.words(a)...)
	}
	if len(words) == 0 {
		return nil
	}
	c.Program, c.Args = words[0].Text, words[1:]
	if words[0].Known() {
		c.Name = posixName(c.Program)
	}
	w.out = append(w.out, c)
	return c
}

// posixName is a program's name as rules have it, where a shell starts it.
func posixName(program string) string {
	name := program[strings.LastIndexByte(program, '/')+1:]
	if strings.Contains(name, `\`) || len(name) > 4 && strings.EqualFold(name[len(name)-4:], ".exe") {
		name = baseName(name)
	}
	if len(name) > 1 {
		name = strings.TrimLeft(name, ".") // .name is a method
	}
	return name
}

func (w *walker) assign(a *syntax.Assign) {
	if a.Value != nil {
		v := w.one(a.Value)
		if a.Name != nil && !a.Append && len(v.Text) <= MaxValue {
			w.vars[a.Name.Value] = v.Text
		}
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Value != nil {
				w.one(e.Value)
			}
		}
	}
}

func (w *walker) redirect(r *syntax.Redirect, c *Command) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil {
			c.Reads = append(c.Reads, w.one(r.Hdoc))
		}
	case syntax.WordHdoc:
		c.Reads = append(c.Reads, w.one(r.Word))
	case syntax.RdrIn, syntax.DplIn:
		if v := w.one(r.Word); v.Of != nil {
			c.Reads = append(c.Reads, v)
		}
	case syntax.DplOut:
	default:
		if r.Word != nil {
			c.Writes = append(c.Writes, w.one(r.Word))
		}
	}
}

// words are what a word expands to.
func (w *walker) words(x *syntax.Word) []Value {
	if lit := x.Lit(); strings.ContainsRune(lit, '{') {
		if list, ok := shell.Braces(lit); ok && len(list) > 0 {
			var out []Value
			for _, s := range list {
				out = append(out, Value{Text: s})
			}
			return out
		}
	}
	if len(x.Parts) == 0 {
		return nil
	}
	v := w.one(x)
	if p, ok := x.Parts[0].(*syntax.ParamExp); ok && len(x.Parts) == 1 && p != nil && strings.ContainsAny(v.Text, " \t\n") {
		var out []Value
		for _, f := range strings.Fields(v.Text) {
			out = append(out, Value{Text: f, Of: v.Of})
		}
		return out
	}
	return []Value{v}
}

func (w *walker) one(x *syntax.Word) Value {
	var b strings.Builder
	v := Value{}
	w.parts(x.Parts, false, &b, &v)
	v.Text = b.String()
	return v
}

func (w *walker) parts(parts []syntax.WordPart, quoted bool, b *strings.Builder, v *Value) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(shell.Literal(p.Value, quoted))
		case *syntax.SglQuoted:
			v.Quoted = true
			if p.Dollar {
				dollar(p.Value, b)
				continue
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			v.Quoted = true
			w.parts(p.Parts, true, b, v)
		case *syntax.ParamExp:
			w.param(p, b)
		case *syntax.CmdSubst:
			if c := w.stmts(p.Stmts, nil); v.Of == nil {
				v.Of = c
			}
			b.WriteString(unknownText)
		case *syntax.ProcSubst:
			if c := w.stmts(p.Stmts, nil); v.Of == nil {
				v.Of = c
			}
			b.WriteString(unknownText)
		default:
			w.inside(p)
			b.WriteString(unknownText)
		}
	}
}

func (w *walker) param(p *syntax.ParamExp, b *strings.Builder) {
	if p.Exp != nil && p.Exp.Word != nil {
		w.one(p.Exp.Word)
	}
	value, ok := "", false
	if p.Param != nil && !p.Length && !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil {
		value, ok = w.vars[p.Param.Value]
	}
	if w.budget -= len(value); !ok || w.budget < 0 {
		value = unknownText
	}
	b.WriteString(value)
}

// dollar writes what $'…' stands for.
func dollar(s string, b *strings.Builder) {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		base, from, most := 16, i+1, 2
		switch c := s[i]; {
		case c == 'n' || c == 't' || c == 'r':
			b.WriteByte(' ')
			continue
		case c == 'x':
		case c == 'u':
			most = 4
		case c >= '0' && c <= '7':
			base, from, most = 8, i, 3
		default:
			b.WriteByte(c)
			continue
		}
		end := from
		for end < len(s) && end-from < most {
			if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
				break
			}
			end++
		}
		if n, err := strconv.ParseUint(s[from:end], base, 32); err == nil {
			b.WriteRune(rune(n))
		}
		i = max(i, end-1)
	}
}

// bomb says whether a function pipes itself into itself, or runs itself in the background.
func bomb(f *syntax.FuncDecl) bool {
	if f.Name == nil || f.Body == nil {
		return false
	}
	calls, apart := 0, false
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == f.Name.Value {
				calls++
			}
		case *syntax.Stmt:
			apart = apart || n.Background
		case *syntax.BinaryCmd:
			apart = apart || shell.Pipe(n.Op)
		}
		return true
	})
	return calls >= 2 && apart
}
