package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// param adds the value of a parameter to b, and walks what its expansion does.
func (j *judge) param(dst []commands.Word, b *shell.Builder, p *syntax.ParamExp, quoted bool) []commands.Word {
	if !j.Step() || p.Param == nil || p.Flags != nil || p.Width || p.IsSet || p.NestedParam != nil || len(p.Modifiers) > 0 ||
		p.Split != 0 || p.GlobSubst != 0 || p.RcExpand != 0 {
		j.grey(p, "expansion", "this kind of expansion is not known")
		b.Open, b.Split = true, true
		return dst
	}
	name := p.Param.Value
	simple := !p.Excl && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	if !simple {
		j.paramEffects(p, name)
		number := p.Length
		b.Split = b.Split || !quoted && !b.NoSplit && !number || shell.Multiple(p) && !b.NoSplit
		b.Open = true
		return dst
	}
	switch {
	case name == "@" || name == "*":
		return j.positional(dst, b, name == "@", quoted)
	case len(name) == 1 && strings.Contains("?#$", name):
		if b.Pieces == 0 && !b.Open {
			b.Add("0") // a number: no option
		}
		b.Open = true
		return dst
	}
	v := j.Shell.Get(name)
	if commands.Digits(name) {
		v = j.arg(name)
	}
	switch v.Kind {
	case Literal:
		return j.known(dst, b, v.Text, quoted)
	case Integer:
		b.Open = true
		return dst
	case Indexed, Assoc:
		v.Text = ""
	}
	b.Add(v.Text)
	b.Open = true
	b.Split = b.Split || !quoted && !b.NoSplit
	return dst
}

// arg is the positional parameter of a number.
func (j *judge) arg(n string) value {
	switch {
	case n == "0" && j.Shell.Known && j.Shell.Name.Fixed && len(j.Shell.Name.Text) < 64:
		return value{Kind: Literal, Text: j.Shell.Name.Text}
	case n != "0" && len(n) == 1:
		return j.Shell.Arg(int(n[0] - '0'))
	}
	return value{}
}

// positional adds "$@" or $*.
func (j *judge) positional(dst []commands.Word, b *shell.Builder, at, quoted bool) []commands.Word {
	if b.NoSplit || quoted && !at {
		b.Open = true
		return dst
	}
	if at && quoted && j.Shell.Known && len(j.Shell.Args) == 0 && b.Empty() {
		return dst
	}
	b.Open, b.Split = true, true
	return dst
}

// maxBuilt bounds the bytes of a word that is put together from values (B11).
const maxBuilt = 64 << 10

// known adds a literal value. Unquoted, it is split at blanks, and wildcards name files.
func (j *judge) known(dst []commands.Word, b *shell.Builder, text string, quoted bool) []commands.Word {
	if b.Len() > maxBuilt {
		b.Open = true
	}
	if quoted || b.NoSplit {
		b.Add(text)
		return dst
	}
	if strings.ContainsAny(text, "*?[\\") {
		b.Open, b.Split = true, true
		return dst
	}
	if !j.Spend(len(text)) {
		return dst
	}
	for i, field := range strings.FieldsFunc(text, blank) {
		if (i > 0 || blankAt(text, 0)) && !b.Empty() {
			dst = append(dst, b.Word())
			*b = shell.Builder{}
		}
		b.Add(field)
	}
	if text != "" && blankAt(text, len(text)-1) && !b.Empty() {
		dst = append(dst, b.Word())
		*b = shell.Builder{}
	}
	return dst
}

func blank(r rune) bool            { return r == ' ' || r == '\t' || r == '\n' }
func blankAt(s string, i int) bool { return i < len(s) && blank(rune(s[i])) }

// paramEffects walks what an expansion does beside giving a value.
func (j *judge) paramEffects(p *syntax.ParamExp, name string) {
	if p.Excl {
		w, isWord := p.Index.(*syntax.Word)
		keys := isWord && (w.Lit() == "@" || w.Lit() == "*")
		if p.Names == 0 && !(keys && p.Exp == nil && p.Slice == nil && p.Repl == nil) {
			j.grey(p, "expansion", "${!name} reads a name from a variable, which can carry code")
			return
		}
	}
	if p.Index != nil {
		j.index(p, name, p.Index)
	}
	if p.Slice != nil {
		j.arithm(p.Slice.Offset)
		if p.Slice.Length != nil {
			j.arithm(p.Slice.Length)
		}
	}
	if p.Repl != nil {
		j.operand(p, p.Repl.Orig)
		j.operand(p, p.Repl.With)
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.OtherParamOps:
		if op := p.Exp.Word.Lit(); op == "P" || !strings.Contains("QEAaUuLKk", op) || op == "" {
			j.findIn(p, commands.Network, "expansion", "${name@P} runs the commands in a variable's value")
		}
		return
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		j.assigned(p, name, value{})
	case syntax.MatchEmpty, syntax.ArrayExclude, syntax.ArrayIntersect:
		j.grey(p, "expansion", "this kind of expansion is not known")
	}
	j.operand(p, p.Exp.Word)
}

// operand walks the word inside an expansion. Shells differ in how they read quotes there.
func (j *judge) operand(p *syntax.ParamExp, w *syntax.Word) {
	if w == nil {
		return
	}
	switch text := j.slice(p); {
	case strings.ContainsAny(text, "'\"\\`"):
		j.grey(p, "expansion", "quotes inside ${…} are read in different ways by different shells")
		return
	case strings.Contains(text, "<(") || strings.Contains(text, ">("):
		j.grey(p, "expansion", "a process substitution inside ${…} runs commands") // the parser takes it for text
		return
	}
	j.single(w)
}

// index walks a subscript: arithmetic, unless the array is associative.
func (j *judge) index(n syntax.Node, name string, x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok {
		if lit := w.Lit(); lit == "@" || lit == "*" || commands.Digits(lit) {
			return
		}
		if j.assoc(name) {
			if strings.ContainsAny(j.slice(w), "\"'\\`") && w.Lit() == "" && !shell.QuotedKey(w) {
				j.grey(n, "arithmetic", "quotes in a subscript are read in different ways")
				return
			}
			j.single(w)
			return
		}
	}
	j.arithm(x)
}

// arithm accepts arithmetic on numbers: a name's value is evaluated as an expression
// in its turn, and its subscripts run commands.
func (j *judge) arithm(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	if !j.down(x) {
		j.up()
		return
	}
	defer j.up()
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		if x.Op >= syntax.Assgn {
			w, ok := x.X.(*syntax.Word)
			if !ok {
				j.grey(x, "arithmetic", "assigns to something that is not a plain variable")
				return
			}
			name := w.Lit()
			if x.Op != syntax.Assgn {
				j.arithmWord(w)
			}
			j.assigned(x, name, value{Kind: Integer})
			j.arithm(x.Y)
			return
		}
		j.arithm(x.X)
		j.arithm(x.Y)
	case *syntax.UnaryArithm:
		j.arithm(x.X)
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			if w, ok := x.X.(*syntax.Word); ok {
				j.assigned(x, w.Lit(), value{Kind: Integer})
			}
		}
	case *syntax.ParenArithm:
		j.arithm(x.X)
	case *syntax.Word:
		j.arithmWord(x)
	default:
		j.grey(x, "arithmetic", "this kind of arithmetic is not known")
	}
}

// arithmWord accepts a number, and what holds or prints one.
func (j *judge) arithmWord(w *syntax.Word) {
	if len(w.Parts) != 1 {
		j.grey(w, "arithmetic", "a computed expression can run commands in its subscripts")
		return
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		if commands.Digits(p.Value) || j.Shell.Get(p.Value).counts() {
			return
		}
	case *syntax.ParamExp:
		var b shell.Builder
		if p.Short && p.Param != nil {
			if name := p.Param.Value; len(name) == 1 && strings.Contains("?#$", name) || j.Shell.Get(name).counts() {
				return
			}
		}
		if p.Length {
			j.param(nil, &b, p, true)
			return
		}
	case *syntax.CmdSubst:
		if j.substitution(p); counted(w) {
			return
		}
	}
	j.grey(w, "arithmetic", "a variable's value is evaluated as an expression, which can run commands in its subscripts")
}
