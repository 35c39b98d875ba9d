package classify

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
	"weir/internal/shell"
)

// fields appends what a word of a command becomes: no word, one, or many.
func (j *judge) fields(dst []commands.Word, w *syntax.Word) []commands.Word {
	if len(w.Parts) == 1 {
		switch p := w.Parts[0].(type) {
		case *syntax.Lit:
			if shell.PlainLit(p.Value) {
				return append(dst, j.place(commands.Lit(p.Value), w))
			}
			if shell.HasBraces(p.Value) {
				if list, ok := shell.Braces(p.Value); ok {
					for _, s := range list {
						var b shell.Builder
						b.Lit(s)
						dst = append(dst, j.place(b.Word(), w))
					}
					return dst
				}
			}
		case *syntax.SglQuoted:
			j.sglQuoted(p)
			if !p.Dollar {
				return append(dst, j.place(commands.Lit(p.Value), w))
			}
		}
	}
	var b shell.Builder
	from := len(dst)
	for i, p := range w.Parts {
		dst = j.part(dst, &b, p, i == 0)
	}
	if shell.Braced(w) {
		b.Brace(w)
	}
	if !b.Empty() || b.Split {
		dst = append(dst, b.Word())
		if l, ok := w.Parts[len(w.Parts)-1].(*syntax.Lit); ok && b.Glob && !b.Split && !shell.Braced(w) {
			if i := strings.LastIndexAny(l.Value, "*?]"); strings.IndexByte(l.Value[i+1:], '\\') < 0 {
				dst[len(dst)-1].Tail = l.Value[i+1:]
			}
		}
	}
	for i := from; i < len(dst); i++ {
		dst[i] = j.place(dst[i], w)
	}
	return dst
}

// single gives a word that is not split and names no files (an assignment, a here-string).
func (j *judge) single(w *syntax.Word) commands.Word {
	if w == nil {
		return commands.Lit("")
	}
	if len(w.Parts) == 1 {
		if p, ok := w.Parts[0].(*syntax.Lit); ok && shell.PlainLit(p.Value) {
			return j.place(commands.Lit(p.Value), w)
		}
	}
	b := shell.Builder{NoSplit: true}
	for i, p := range w.Parts {
		j.part(nil, &b, p, i == 0)
	}
	return j.place(b.Word(), w)
}

// part adds a part of a word to b; a variable that is split ends words, which go to dst.
func (j *judge) part(dst []commands.Word, b *shell.Builder, part syntax.WordPart, first bool) []commands.Word {
	switch p := part.(type) {
	case *syntax.Lit:
		if first && strings.HasPrefix(p.Value, "~") {
			// The home directory begins with a slash; "~" in front keeps it from being
			// taken for a path that is known. ~+ and ~- are where cd went, and may be /dev.
			if len(p.Value) == 1 || commands.Letter(p.Value[1]) || p.Value[1] == '/' {
				b.Add("~")
			}
			b.Open = true
			return dst
		}
		b.Lit(p.Value)
	case *syntax.SglQuoted:
		j.sglQuoted(p)
		b.Quoted = true
		if p.Dollar {
			// POSIX shells before 2024 take $'a' for a dollar and 'a'.
			b.Open = true
			if strings.ContainsAny(p.Value, `\`) && strings.Contains(p.Value, `\'`) {
				j.grey(p, "expansion", "shells differ in where this text ends")
			}
			return dst
		}
		b.Add(p.Value)
	case *syntax.DblQuoted:
		b.Quoted = true
		if p.Dollar {
			j.grey(p, "expansion", "$\"…\" is translated, so the text is not known")
			b.Open = true
			return dst
		}
		for _, inner := range p.Parts {
			j.dblPart(b, inner)
		}
		if len(p.Parts) == 1 && shell.Multiple(p.Parts[0]) {
			b.Quoted = false
		}
	case *syntax.ParamExp:
		return j.param(dst, b, p, false)
	default:
		j.effectPart(b, part, false)
	}
	return dst
}

// dblPart adds a part in double quotes or in a here-document.
func (j *judge) dblPart(b *shell.Builder, part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit:
		if j.continued {
			j.spans.Quoted = append(j.spans.Quoted, shell.At(p))
		}
		b.Add(shell.Literal(p.Value, true))
	case *syntax.ParamExp:
		j.param(nil, b, p, true)
	default:
		j.effectPart(b, part, true)
	}
}

// effectPart walks a part whose value is not known, for what it does.
func (j *judge) effectPart(b *shell.Builder, part syntax.WordPart, quoted bool) {
	switch p := part.(type) {
	case *syntax.CmdSubst:
		j.substitution(p)
		b.Split = b.Split || !quoted && !b.NoSplit
	case *syntax.ArithmExp:
		if p.Bracket {
			j.grey(p, "arithmetic", "$[…] is read in different ways by different shells")
		}
		j.arithm(p.X)
	case *syntax.ProcSubst:
		if p.Op == syntax.CmdInTemp {
			j.grey(p, "expansion", "this kind of substitution is not known")
		}
		j.subshell(p, p.Stmts)
		b.Add("/dev/fd/")
	default:
		j.grey(part, "expansion", "this kind of expansion is not known")
		b.Split = true
	}
	b.Open = true
}

func (j *judge) sglQuoted(p *syntax.SglQuoted) {
	if j.continued && !p.Dollar {
		j.spans.Raw = append(j.spans.Raw, shell.At(p))
	}
}

// substitution walks $(…) and `…`.
func (j *judge) substitution(p *syntax.CmdSubst) {
	switch {
	case p.TempFile || p.ReplyVar:
		j.grey(p, "expansion", "${ …; } is read in different ways by different versions of bash")
	case p.Backquotes && strings.ContainsAny(j.slice(p), `\`):
		j.grey(p, "expansion", "a backslash inside backquotes is read in different ways by different shells")
	}
	piped := j.Piped
	j.Piped = true
	j.subshell(p, p.Stmts)
	j.Piped = piped
}

// slice is the source of a node.
func (j *judge) slice(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(j.Text) || from > to {
		return `\`
	}
	return j.Text[from:to]
}
