package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
)

// Span is a range of bytes of a text.
type Span struct{ From, To int }

// At is the place of a node.
func At(n syntax.Node) Span { return Span{From: int(n.Pos().Offset()), To: int(n.End().Offset())} }

// Spans are the places of a text where a line continuation is not what it is between
// words.
type Spans struct {
	Raw    []Span // quoted, and taken as it is
	Quoted []Span // in double quotes
	Touchy []Span // comments and here-documents
}

// Continuation finds a line continuation that is not plainly between words, and gives
// its place, or -1: inside tokens, comments and here-documents shells differ in what
// they make of it.
func (s *Spans) Continuation(text string) int {
	for _, list := range [][]Span{s.Raw, s.Quoted, s.Touchy} {
		slices.SortFunc(list, func(a, b Span) int { return a.From - b.From })
	}
	for k := 1; k < len(s.Touchy); k++ { // here-documents in here-documents
		if a, b := s.Touchy[k-1], &s.Touchy[k]; b.From <= a.To {
			b.To = max(a.To, b.To)
		}
	}
	for i := 0; ; i += 2 {
		k := strings.Index(text[i:], "\\\n")
		if k < 0 {
			return -1
		}
		i += k
		if !s.harmless(text, i) {
			return i
		}
	}
}

func (s *Spans) harmless(text string, i int) bool {
	before := byte('\n')
	if i > 0 {
		before = text[i-1]
	}
	switch {
	case inside(s.Touchy, i):
		return false
	case inside(s.Raw, i):
		return true
	case inside(s.Quoted, i):
		return strings.IndexByte("$`\\\n", before) < 0
	}
	return before == ' ' || before == '\t'
}

// inside tells whether byte i is in one of the spans, its end included. They are
// sorted, and none has its end inside another.
func inside(list []Span, i int) bool {
	k, found := slices.BinarySearchFunc(list, i, func(s Span, i int) int { return s.From - i })
	return found || k > 0 && i <= list[k-1].To
}

// Bounds for texts that are long: how many bytes are never too many parts, and how many
// parts are.
const (
	maxSimple = 48 << 10
	maxParts  = 40_000

	maxDocuments = 32 // here-documents whose end is looked for
)

// Crowded tells whether a long text has too many parts for the parser, which takes
// much more time for parts than for bytes. It may count too many, so it leaves out only what is
// plainly data: single quotes and quoted here-documents.
func Crowded(text string) bool {
	if len(text) <= maxSimple {
		return false
	}
	parts, documents := 0, 0
	for i := 0; i < len(text) && parts <= maxParts; i++ {
		switch c := text[i]; {
		case commands.Letter(c) || c >= '0' && c <= '9' || c == '_' || c >= 0x80:
		case c == '\\':
			i++
			parts++
		case c == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return false // cannot be parsed
			}
			i += end + 1
			parts++
		case c == '<' && strings.HasPrefix(text[i:], "<<"):
			if documents++; documents <= maxDocuments {
				i += heredocEnd(text[i:])
			}
			parts++
		default:
			parts++
		}
	}
	return parts > maxParts
}

// heredocEnd is the length of a quoted here-document that begins text, up to its end,
// when it is a plain one; else 0.
func heredocEnd(text string) int {
	line, body, ok := strings.Cut(text, "\n")
	rest := strings.TrimLeft(strings.TrimPrefix(line, "<<"), "- ")
	if !ok || len(rest) < 3 || rest[0] != '\'' {
		return 0
	}
	end, _, ok := strings.Cut(rest[1:], "'")
	if !ok || !PlainEnd(end) {
		return 0
	}
	k := strings.Index(body, "\n"+end+"\n")
	if k < 0 {
		if !strings.HasSuffix(body, "\n"+end) {
			return 0
		}
		k = len(body) - len(end) - 1
	}
	return len(line) + 1 + k
}
