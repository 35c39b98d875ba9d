package lex

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/classify/rules"
)

// Refused is why a text cannot be judged.
type Refused struct {
	Span
	Rule, Why string
}

// Parse reads a text as bash does, or tells why not.
func Parse(text string) (*syntax.File, *Refused) {
	all := Span{0, len(text)}
	if Crowded(text) {
		return nil, &Refused{all, "limit-nodes", "has too many parts to be judged"}
	}
	if i := strings.IndexFunc(text, control); i >= 0 {
		return nil, &Refused{Span{i, i + 1}, "syntax", "a control character may be read in different ways"}
	}
	p := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	f, err := p.Parse(Guard(text, maxFrames), "")
	var parse syntax.ParseError
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, ErrDeep):
		return nil, &Refused{all, "limit-depth", "is nested too deep to be judged"}
	case errors.As(err, &parse):
		at := int(parse.Pos.Offset())
		return nil, &Refused{Span{at, at}, "syntax", "cannot be parsed: " + parse.Text}
	}
	return nil, &Refused{all, "syntax", "cannot be parsed: " + err.Error()}
}

// Comments gives the places of all comments.
func Comments(f *syntax.File) []Span {
	var list []Span
	syntax.Walk(f, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok {
			list = append(list, At(c))
		}
		return true
	})
	return list
}

// maxFrames bounds the parser's recursion, in function calls. A level of nesting
// takes about ten.
const maxFrames = 1200

// control tells whether a character is one that shells read in different ways.
func control(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// PlainEnd tells whether a here-document's end has letters and digits only.
func PlainEnd(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(rules.Letter(c) || c == '_' || c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

// Early tells whether a line of the body, but the last, begins like its end.
func Early(body, end string, tabs bool) bool {
	body = body[:strings.LastIndexByte(body, '\n')+1]
	for line := range strings.SplitSeq(body, "\n") {
		if tabs {
			line = strings.TrimLeft(line, "\t")
		}
		if strings.HasPrefix(line, end) {
			return true
		}
	}
	return false
}
