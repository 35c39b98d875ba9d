package shell

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify/rules"
	"weir/internal/classify/table"
)

// errDeep stops the parser, which recurses, before it uses up the stack.
var errDeep = errors.New("nested too deep")

// maxFrames bounds the parser's recursion, in function calls. A level of nesting
// takes about ten.
const maxFrames = 1200

// guard hands out a text in pieces, and looks at each how deep the parser is.
type guard struct {
	text string
	pcs  [1]uintptr
}

func (g *guard) Read(p []byte) (int, error) {
	if g.text == "" {
		return 0, io.EOF
	}
	if runtime.Callers(maxFrames, g.pcs[:]) > 0 {
		return 0, errDeep
	}
	n := copy(p, g.text)
	g.text = g.text[n:]
	return n, nil
}

// parse reads a text as bash does. What other shells, or other versions of bash,
// may read in another way is refused here or in the walk.
func (j *walker) parse(text string) *syntax.File {
	if i := strings.IndexFunc(text, control); i >= 0 {
		j.Find(i, 1, table.Grey, "syntax", "a control character may be read in different ways")
		return nil
	}
	p := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	f, err := p.Parse(&guard{text: text}, "")
	var parse syntax.ParseError
	switch {
	case err == nil:
		return f
	case errors.Is(err, errDeep):
		j.Find(0, len(text), table.Grey, "limit-depth", "is nested too deep to be judged")
	case errors.As(err, &parse):
		j.Find(int(parse.Pos.Offset()), 0, table.Grey, "syntax", "cannot be parsed: "+parse.Text)
	default:
		j.Find(0, len(text), table.Grey, "syntax", "cannot be parsed: "+err.Error())
	}
	return nil
}

func control(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// span is a range of bytes of the text that is parsed.
type span struct{ from, to int }

// continuations refuses line continuations that are not plainly between words: inside
// tokens, comments and here-documents shells differ in what they make of them.
func (j *walker) continuations() {
	for _, list := range [][]span{j.raw, j.quoted, j.touchy} {
		slices.SortFunc(list, func(a, b span) int { return a.from - b.from })
	}
	for k := 1; k < len(j.touchy); k++ { // here-documents in here-documents
		if a, b := j.touchy[k-1], &j.touchy[k]; b.from <= a.to {
			b.to = max(a.to, b.to)
		}
	}
	for i := 0; ; i += 2 {
		k := strings.Index(j.Text[i:], "\\\n")
		if k < 0 {
			return
		}
		i += k
		if !j.harmlessContinuation(i) {
			j.Find(i, 2, table.Grey, "syntax", "a line continuation stands where shells read it in different ways")
			return
		}
	}
}

func (j *walker) harmlessContinuation(i int) bool {
	before := byte('\n')
	if i > 0 {
		before = j.Text[i-1]
	}
	switch {
	case inside(j.touchy, i):
		return false
	case inside(j.raw, i):
		return true
	case inside(j.quoted, i):
		return strings.IndexByte("$`\\\n", before) < 0
	}
	return before == ' ' || before == '\t'
}

// inside tells whether byte i is in one of the spans, its end included. They are
// sorted, and none has its end inside another.
func inside(list []span, i int) bool {
	k, found := slices.BinarySearchFunc(list, i, func(s span, i int) int { return s.from - i })
	return found || k > 0 && i <= list[k-1].to
}

// Bounds for texts that are long: how many bytes are never too many parts, and how many
// parts are.
const (
	maxSimple = 48 << 10
	maxParts  = 40_000

	maxDocuments = 32 // here-documents whose end is looked for
)

// crowded tells whether a long text has too many parts for the parser, which takes
// much more time for parts than for bytes. It may count too many, so it leaves out only what is
// plainly data: single quotes and quoted here-documents.
func crowded(text string) bool {
	parts, documents := 0, 0
	for i := 0; i < len(text) && parts <= maxParts; i++ {
		switch c := text[i]; {
		case rules.Letter(c) || c >= '0' && c <= '9' || c == '_' || c >= 0x80:
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
	if !ok || !plainEnd(end) {
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
