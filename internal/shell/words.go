package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
)

// Builder puts a word together from its parts. Once it is open, the rest is unknown.
type Builder struct {
	text    []byte
	one     string // the text, while it has a single piece
	Pieces  int
	Open    bool
	Glob    bool
	Split   bool
	Quoted  bool // even an empty text is a word then
	NoSplit bool // in an assignment: no splitting, no file names
}

// Add adds known text.
func (b *Builder) Add(s string) {
	switch {
	case b.Open || s == "":
	case b.Pieces == 0:
		b.one, b.Pieces = s, 1
	case b.Pieces == 1:
		b.text = append(append(b.text[:0], b.one...), s...)
		b.Pieces = 2
	default:
		b.text = append(b.text, s...)
	}
}

func (b *Builder) literal() string {
	if b.Pieces <= 1 {
		return b.one
	}
	return string(b.text)
}

// Len is the length of the text so far, in bytes, when it has more pieces than one.
func (b *Builder) Len() int { return len(b.text) }

// Word is what was put together.
func (b *Builder) Word() commands.Word {
	return commands.Word{Text: b.literal(), Fixed: !b.Open, Glob: b.Glob && b.Open, Split: b.Split}
}

// Empty tells whether there is no word: nothing was added, not even quotes.
func (b *Builder) Empty() bool { return b.Pieces == 0 && !b.Open && !b.Quoted }

// PlainLit tells whether an unquoted literal stands for itself.
func PlainLit(s string) bool {
	if s == "" || s[0] == '~' {
		return false
	}
	return !strings.ContainsAny(s, `\*?[{=`) || s == "[" || s == "{}" || !strings.ContainsAny(s, `\*?[{`) && !strings.Contains(s, "=~")
}

// Lit adds an unquoted literal: backslashes quote, and wildcards make it a pattern.
func (b *Builder) Lit(s string) {
	if !strings.ContainsAny(s, `\*?[`) {
		b.Add(s)
		return
	}
	start, closing := 0, strings.LastIndexByte(s, ']')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			b.Add(s[start:i])
			i++
			start = i
			b.Quoted = true
		case !b.NoSplit && (c == '*' || c == '?' || c == '[' && i < closing):
			b.Add(s[start:i])
			b.Open, b.Glob = true, true
			return
		}
	}
	b.Add(s[start:])
}

// Literal is what the text of a literal stands for: in double quotes (quoted) a backslash goes before some characters only.
func Literal(s string, quoted bool) string {
	if quoted {
		return Unescape(s, "$`\"\\")
	}
	return unescape(s, func(byte) bool { return true })
}

// Unescape removes backslashes before the characters of set, and continued lines.
func Unescape(s, set string) string {
	return unescape(s, func(c byte) bool { return strings.IndexByte(set, c) >= 0 })
}

func unescape(s string, goes func(byte) bool) string {
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
			if goes(s[i+1]) {
				i++
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// Hole stands in a text for what is not known; the text of a shell never has it.
const Hole = "\x00"

// Text is what a word stands for without its quotes. expanded gives the text of each expansion.
func Text(w *syntax.Word, expanded func(p syntax.WordPart, quoted bool) string) string {
	var b strings.Builder
	if w != nil {
		addText(&b, w.Parts, false, expanded)
	}
	return b.String()
}

// Words are those of a command, as far as they are known.
func Words(args ...*syntax.Word) []string {
	args = ExpandBraces(args)
	all := make([]string, len(args))
	for i, a := range args {
		all[i] = Text(a, func(syntax.WordPart, bool) string { return Hole })
		if Braced(a) {
			all[i] += Hole
		}
	}
	return all
}

func addText(b *strings.Builder, parts []syntax.WordPart, quoted bool, expanded func(syntax.WordPart, bool) string) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(Literal(p.Value, quoted), Hole, ""))
		case *syntax.SglQuoted:
			text, err := p.Value, error(nil)
			if p.Dollar {
				text, _, err = expand.Format(nil, p.Value, nil)
			}
			if err != nil {
				text = expanded(p, quoted)
			}
			b.WriteString(text)
		case *syntax.DblQuoted:
			addText(b, p.Parts, true, expanded)
		default:
			b.WriteString(expanded(p, quoted))
		}
	}
}

// Braced tells whether a word may have braces that are expanded.
func Braced(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && (HasBraces(l.Value) || len(w.Parts) > 1 && strings.IndexByte(l.Value, '{') >= 0)
	})
}

// HasBraces tells whether a whole literal may have braces that are expanded.
func HasBraces(s string) bool {
	i := strings.IndexByte(s, '{')
	return i >= 0 && (strings.IndexByte(s[i:], ',') >= 0 || strings.Contains(s[i:], ".."))
}

// Brace makes a word unknown from its first brace on: what the braces become is not followed.
func (b *Builder) Brace(w *syntax.Word) {
	prefix := ""
	if l, ok := w.Parts[0].(*syntax.Lit); ok {
		prefix = l.Value
		if i := strings.IndexAny(prefix, `{\*?[~`); i >= 0 {
			prefix = prefix[:i]
		}
	}
	*b = Builder{one: prefix, Pieces: 1, Open: true, Glob: true, Split: b.Split || prefix == ""}
}

// Bounds of a brace expansion: bytes of the word, and words that it becomes.
const (
	maxBraced = 512
	maxBraces = 32

	maxExpanded = 512
)

// Braces expands a literal word with commas in braces ({a,b}, f{,.bak}). It is not ok
// for anything else, or for too many words.
func Braces(s string) ([]string, bool) {
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
			rest, ok := Braces(s[i+1:])
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

// ExpandBraces gives words with those that have braces expanded, also around quotes and expansions. Those that make too many words stay as they
// are.
func ExpandBraces(words []*syntax.Word) []*syntax.Word {
	if !slices.ContainsFunc(words, Braced) {
		return words
	}
	var out []*syntax.Word
	for _, w := range words {
		one := &syntax.Word{Parts: slices.Clone(w.Parts)}
		if !Braced(w) || !syntax.SplitBraces(one) {
			out = append(out, w)
			continue
		}
		from := len(out)
		for made := range expand.BracesSeq(nil, one) {
			if len(out)-from == maxExpanded {
				out = append(out[:from], w)
				break
			}
			if !empty(made) { // {a,} makes no empty word
				out = append(out, made)
			}
		}
	}
	return out
}

func empty(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return !ok || l.Value != ""
	})
}

// Multiple tells whether a part in double quotes may become any number of words ("$@").
func Multiple(part syntax.WordPart) bool {
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

// Input gives what a command has on its standard input, where that is written beside it.
func Input(s *syntax.Stmt) (texts []*syntax.Word) {
	for _, r := range s.Redirs {
		switch {
		case (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) && r.Hdoc != nil:
			texts = append(texts, r.Hdoc)
		case r.Op == syntax.WordHdoc && r.Word != nil:
			texts = append(texts, r.Word)
		}
	}
	return texts
}
