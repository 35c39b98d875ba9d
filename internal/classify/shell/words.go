package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify/rules"
	"weir/internal/classify/table"
)

// builder puts a word together from its parts. Once it is open, the rest is unknown.
type builder struct {
	text    []byte
	one     string // the text, while it has a single piece
	pieces  int
	open    bool
	glob    bool
	split   bool
	quoted  bool // even an empty text is a word then
	noSplit bool // in an assignment: no splitting, no file names
}

func (b *builder) add(s string) {
	switch {
	case b.open || s == "":
	case b.pieces == 0:
		b.one, b.pieces = s, 1
	case b.pieces == 1:
		b.text = append(append(b.text[:0], b.one...), s...)
		b.pieces = 2
	default:
		b.text = append(b.text, s...)
	}
}

func (b *builder) literal() string {
	if b.pieces <= 1 {
		return b.one
	}
	return string(b.text)
}

func (b *builder) word() table.Word {
	return table.Word{Text: b.literal(), Fixed: !b.open, Glob: b.glob && b.open, Split: b.split}
}

func (b *builder) empty() bool { return b.pieces == 0 && !b.open && !b.quoted }

// fields appends what a word of a command becomes: no word, one, or many.
func (j *walker) fields(dst []table.Word, w *syntax.Word) []table.Word {
	if len(w.Parts) == 1 {
		switch p := w.Parts[0].(type) {
		case *syntax.Lit:
			if plainLit(p.Value) {
				return append(dst, j.place(table.Lit(p.Value), w))
			}
			if hasBraces(p.Value) {
				if list, ok := braces(p.Value); ok {
					for _, s := range list {
						var b builder
						b.lit(s)
						dst = append(dst, j.place(b.word(), w))
					}
					return dst
				}
			}
		case *syntax.SglQuoted:
			j.sglQuoted(p)
			if !p.Dollar {
				return append(dst, j.place(table.Lit(p.Value), w))
			}
		}
	}
	var b builder
	from := len(dst)
	for i, p := range w.Parts {
		dst = j.part(dst, &b, p, i == 0)
	}
	if braced(w) {
		b.brace(w)
	}
	if !b.empty() || b.split {
		dst = append(dst, b.word())
		if l, ok := w.Parts[len(w.Parts)-1].(*syntax.Lit); ok && b.glob && !b.split && !braced(w) {
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
func (j *walker) single(w *syntax.Word) table.Word {
	if w == nil {
		return table.Lit("")
	}
	if len(w.Parts) == 1 {
		if p, ok := w.Parts[0].(*syntax.Lit); ok && plainLit(p.Value) {
			return j.place(table.Lit(p.Value), w)
		}
	}
	b := builder{noSplit: true}
	for i, p := range w.Parts {
		j.part(nil, &b, p, i == 0)
	}
	return j.place(b.word(), w)
}

// bare is the text of a word without quotes, expansions and patterns; empty for any other.
func bare(w *syntax.Word) string {
	if lit := w.Lit(); plainLit(lit) {
		return lit
	}
	return ""
}

// plainLit tells whether an unquoted literal stands for itself.
func plainLit(s string) bool {
	if s == "" || s[0] == '~' {
		return false
	}
	return strings.IndexAny(s, `\*?[{=`) < 0 || s == "[" || s == "{}" || strings.IndexAny(s, `\*?[{`) < 0 && !strings.Contains(s, "=~")
}

// part adds a part of a word to b; a variable that is split ends words, which go to dst.
func (j *walker) part(dst []table.Word, b *builder, part syntax.WordPart, first bool) []table.Word {
	switch p := part.(type) {
	case *syntax.Lit:
		if first && strings.HasPrefix(p.Value, "~") {
			// The home directory begins with a slash; "~" in front keeps it from being
			// taken for a path that is known. ~+ and ~- are where cd went, and may be /dev.
			if len(p.Value) == 1 || rules.Letter(p.Value[1]) || p.Value[1] == '/' {
				b.add("~")
			}
			b.open = true
			return dst
		}
		b.lit(p.Value)
	case *syntax.SglQuoted:
		j.sglQuoted(p)
		b.quoted = true
		if p.Dollar {
			// POSIX shells before 2024 take $'a' for a dollar and 'a'.
			b.open = true
			if strings.ContainsAny(p.Value, `\`) && strings.Contains(p.Value, `\'`) {
				j.grey(p, "expansion", "shells differ in where this text ends")
			}
			return dst
		}
		b.add(p.Value)
	case *syntax.DblQuoted:
		b.quoted = true
		if p.Dollar {
			j.grey(p, "expansion", "$\"…\" is translated, so the text is not known")
			b.open = true
			return dst
		}
		for _, inner := range p.Parts {
			j.dblPart(b, inner)
		}
		if len(p.Parts) == 1 && multiple(p.Parts[0]) {
			b.quoted = false
		}
	case *syntax.ParamExp:
		return j.param(dst, b, p, false)
	default:
		j.effectPart(b, part, false)
	}
	return dst
}

// dblPart adds a part in double quotes or in a here-document.
func (j *walker) dblPart(b *builder, part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit:
		if j.continued {
			j.quoted = append(j.quoted, span{int(p.Pos().Offset()), int(p.End().Offset())})
		}
		b.add(unescape(p.Value, "$`\"\\"))
	case *syntax.ParamExp:
		j.param(nil, b, p, true)
	default:
		j.effectPart(b, part, true)
	}
}

// effectPart walks a part whose value is not known, for what it does.
func (j *walker) effectPart(b *builder, part syntax.WordPart, quoted bool) {
	switch p := part.(type) {
	case *syntax.CmdSubst:
		j.substitution(p)
		b.split = b.split || !quoted && !b.noSplit
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
		b.add("/dev/fd/")
	default:
		j.grey(part, "expansion", "this kind of expansion is not known")
		b.split = true
	}
	b.open = true
}

func (j *walker) sglQuoted(p *syntax.SglQuoted) {
	if j.continued && !p.Dollar {
		j.raw = append(j.raw, span{int(p.Pos().Offset()), int(p.End().Offset())})
	}
}

// substitution walks $(…) and `…`.
func (j *walker) substitution(p *syntax.CmdSubst) {
	switch {
	case p.TempFile || p.ReplyVar:
		j.grey(p, "expansion", "${ …; } is read in different ways by different versions of bash")
	case p.Backquotes && strings.ContainsAny(j.slice(p), `\`):
		j.grey(p, "expansion", "a backslash inside backquotes is read in different ways by different shells")
	}
	j.subshell(p, p.Stmts)
}

// slice is the source of a node.
func (j *walker) slice(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(j.Text) || from > to {
		return `\`
	}
	return j.Text[from:to]
}

// lit adds an unquoted literal: backslashes quote, and wildcards make it a pattern.
func (b *builder) lit(s string) {
	if strings.IndexAny(s, `\*?[`) < 0 {
		b.add(s)
		return
	}
	start, closing := 0, strings.LastIndexByte(s, ']')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			b.add(s[start:i])
			i++
			start = i
			b.quoted = true
		case !b.noSplit && (c == '*' || c == '?' || c == '[' && i < closing):
			b.add(s[start:i])
			start = len(s)
			b.open, b.glob = true, true
			return
		}
	}
	b.add(s[start:])
}

// unescape removes backslashes before the characters of set, and continued lines.
func unescape(s, set string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(set, s[i+1]) >= 0 {
				i++
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// braced tells whether a word may have braces that are expanded.
func braced(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok && (hasBraces(l.Value) || len(w.Parts) > 1 && strings.IndexByte(l.Value, '{') >= 0) {
			return true
		}
	}
	return false
}

// hasBraces tells whether a whole literal may have braces that are expanded.
func hasBraces(s string) bool {
	i := strings.IndexByte(s, '{')
	return i >= 0 && (strings.IndexByte(s[i:], ',') >= 0 || strings.Contains(s[i:], ".."))
}

// brace makes a word unknown from its first brace on: what the braces become is not followed.
func (b *builder) brace(w *syntax.Word) {
	prefix := ""
	if l, ok := w.Parts[0].(*syntax.Lit); ok {
		prefix = l.Value
		if i := strings.IndexAny(prefix, `{\*?[~`); i >= 0 {
			prefix = prefix[:i]
		}
	}
	*b = builder{one: prefix, pieces: 1, open: true, glob: true, split: b.split || prefix == ""}
}

// Bounds of a brace expansion: bytes of the word, and words that it becomes.
const (
	maxBraced = 512
	maxBraces = 32
)

// braces expands a literal word with commas in braces ({a,b}, f{,.bak}). It is not ok
// for anything else, or for too many words.
func braces(s string) ([]string, bool) {
	if len(s) > maxBraced || strings.ContainsAny(s, `\*?[~`) || strings.Contains(s, "..") {
		return nil, false
	}
	from := strings.IndexByte(s, '{')
	if from < 0 {
		return []string{s}, !strings.ContainsAny(s, "}")
	}
	depth, start := 0, from+1
	var alternatives []string
	for i := from; i < len(s); i++ {
		switch s[i] {
		case '{':
			if depth++; depth > 1 {
				return nil, false
			}
		case ',':
			alternatives = append(alternatives, s[start:i])
			start = i + 1
		case '}':
			if len(alternatives) == 0 || len(alternatives) > maxBraces {
				return nil, false
			}
			alternatives = append(alternatives, s[start:i])
			rest, ok := braces(s[i+1:])
			if !ok || len(rest)*len(alternatives) > maxBraces {
				return nil, false
			}
			var out []string
			for _, a := range alternatives {
				for _, r := range rest {
					if w := s[:from] + a + r; w != "" {
						out = append(out, w)
					}
				}
			}
			return out, true
		}
	}
	return nil, false
}

// multiple tells whether a part in double quotes may become any number of words ("$@").
func multiple(part syntax.WordPart) bool {
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Length || p.Param == nil {
		return false
	}
	if p.Param.Value == "@" {
		return true
	}
	if p.Names == syntax.NamesPrefixWords {
		return true
	}
	w, ok := p.Index.(*syntax.Word)
	return ok && w.Lit() == "@"
}
