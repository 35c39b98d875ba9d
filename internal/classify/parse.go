package classify

import (
	"errors"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
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
func (j *judge) parse(text string) *syntax.File {
	if i := strings.IndexFunc(text, control); i >= 0 {
		j.find(i, 1, Grey, "syntax", "a control character may be read in different ways")
		return nil
	}
	p := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	f, err := p.Parse(&guard{text: text}, "")
	var parse syntax.ParseError
	switch {
	case err == nil:
		return f
	case errors.Is(err, errDeep):
		j.find(0, len(text), Grey, "limit-depth", "is nested too deep to be judged")
	case errors.As(err, &parse):
		j.find(int(parse.Pos.Offset()), 0, Grey, "syntax", "cannot be parsed: "+parse.Text)
	default:
		j.find(0, len(text), Grey, "syntax", "cannot be parsed: "+err.Error())
	}
	return nil
}

func control(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// span is a range of bytes of the text that is parsed.
type span struct{ from, to int }

// continuations refuses line continuations that are not plainly between words: inside
// tokens, comments and here-documents shells differ in what they make of them.
func (j *judge) continuations() {
	for i := 0; ; {
		k := strings.Index(j.text[i:], "\\\n")
		if k < 0 {
			return
		}
		i += k
		if !j.harmlessContinuation(i) {
			j.find(i, 2, Grey, "syntax", "a line continuation stands where shells read it in different ways")
			return
		}
		i += 2
	}
}

func (j *judge) harmlessContinuation(i int) bool {
	for _, s := range j.raw {
		if s.from <= i && i < s.to {
			return true
		}
	}
	for _, s := range j.quoted {
		if s.from <= i && i < s.to {
			return i > s.from && !strings.ContainsRune("$`\\", rune(j.text[i-1]))
		}
	}
	for _, s := range j.touchy {
		if s.from <= i && i <= s.to {
			return false
		}
	}
	return i > 0 && (j.text[i-1] == ' ' || j.text[i-1] == '\t')
}
