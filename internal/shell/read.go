package shell

import (
	"errors"
	"iter"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"weir/internal/commands"
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
	if i := strings.IndexFunc(text, Control); i >= 0 {
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

// pieceLen is how long the pieces are that Stmts reads a crowded text in, in bytes.
const pieceLen = 32 << 10

// Stmts gives the statements of a text, as a shell runs them, up to what cannot be parsed, which comes as an error: ErrDeep where it is nested too
// deep. A crowded text is read in pieces of whole lines, in which the lines of a here-document may come as statements.
func Stmts(text string) iter.Seq2[*syntax.Stmt, error] {
	return func(yield func(*syntax.Stmt, error) bool) {
		crowded, more := Crowded(text), true
		for more && text != "" {
			n := len(text)
			if crowded && n > pieceLen {
				n = pieceLen
				if end := strings.LastIndexByte(text[:n], '\n'); end >= 0 {
					n = end + 1
				}
			}
			for s, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(Guard(text[:n], maxFrames)) {
				more = more && yield(s, err) // the parser may go on after a break
			}
			text = text[n:]
		}
	}
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

// Control tells whether a character is one that shells read in different ways.
func Control(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// Readings are the ways in which shells may read a text: a control character is part of a word, or a blank.
func Readings(text string) []string {
	if !strings.ContainsFunc(text, Control) {
		return []string{text}
	}
	var all []string
	for _, as := range []rune{'_', ' '} {
		all = append(all, strings.Map(func(r rune) rune {
			if Control(r) {
				return as
			}
			return r
		}, text))
	}
	return all
}

// PlainEnd tells whether a here-document's end has letters and digits only.
func PlainEnd(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(commands.Letter(c) || c == '_' || c >= '0' && c <= '9') {
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
