package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	// MaxFile is the most bytes that a file may have.
	MaxFile   = 1 << 20
	maxErrors = 20 // mistakes that are told at once
	maxDepth  = 16 // nested values: the deepest key of a policy needs 5
)

// yamlError is one mistake in a file.
type yamlError struct {
	File string `json:"file"`
	place
	Text string `json:"text"`
}

// place is where something stands in a file.
type place struct {
	Line   int `json:"line,omitempty"`   // from 1; 0 when it is about the whole file
	Column int `json:"column,omitempty"` // from 1, in characters; 0 when it is about the whole line
}

func at(n *yaml.Node) place { return place{n.Line, n.Column} }

// Error tells the mistake in one line: file:line:column: what, and what is accepted.
func (e *yamlError) Error() string {
	file := oneLine(e.File)
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", file, e.Text)
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", file, e.Line, e.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", file, e.Line, e.Column, e.Text)
}

// yamlReader collects mistakes while its caller walks the YAML tree.
type yamlReader struct {
	Name  string // the file's, for errors
	errs  []*yamlError
	notes []*yamlError
}

// Fail notes a mistake; the zero place: it is about the whole file.
func (p *yamlReader) Fail(where place, format string, args ...any) {
	p.errs = append(p.errs, &yamlError{p.Name, where, oneLine(fmt.Sprintf(format, args...))})
}

// Note notes what is accepted and probably not meant.
func (p *yamlReader) Note(where place, format string, args ...any) {
	p.notes = append(p.notes, &yamlError{p.Name, where, oneLine(fmt.Sprintf(format, args...))})
}

// Mistakes counts those noted so far.
func (p *yamlReader) Mistakes() int { return len(p.errs) }

// Err returns all mistakes joined, in the order of their lines, each an *Error of one line; nil if there are none.
func (p *yamlReader) Err() error {
	sortByPlace(p.errs)
	var errs []error
	for i, e := range p.errs {
		if i == maxErrors {
			errs = append(errs, &yamlError{File: p.Name, Text: fmt.Sprintf("%d more mistakes are not shown", len(p.errs)-i)})
			break
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// Mistakes are those that err has, in their order; none if it is of another kind.
func Mistakes(err error) []*Error {
	switch e := err.(type) {
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() error }:
		return Mistakes(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, inner := range e.Unwrap() {
			all = append(all, Mistakes(inner)...)
		}
		return all
	}
	return nil
}

func sortByPlace(errs []*yamlError) {
	slices.SortStableFunc(errs, func(a, b *yamlError) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
}

// Document returns the one document's root, or nil after a mistake.
func (p *yamlReader) Document(data []byte) *yaml.Node {
	if len(data) > MaxFile {
		p.Fail(place{}, "the file has more than %d bytes: a policy needs far less", MaxFile)
		return nil
	}
	if !p.readable(data) {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && isNull(&doc) {
		// A file that is being rewritten looks like this: it must not drop what is guarded.
		p.Fail(place{1, 1}, `the file is empty: write at least "version: 1"`)
		return nil
	}
	if err != nil {
		p.syntax(err.Error(), data)
		return nil
	}
	var next yaml.Node
	if err := decoder.Decode(&next); err == nil {
		p.Fail(place{max(next.Line, 1), max(next.Column, 1)}, "a second document starts here: a policy is one document")
		return nil
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err.Error(), data)
		return nil
	}
	root := doc.Content[0]
	if !p.plain(root, 0) {
		return nil
	}
	return root
}

func isNull(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].ShortTag() == "!!null"
}

// readable refuses what is not text: the YAML reader would not say where it is.
func (p *yamlReader) readable(data []byte) bool {
	where := place{1, 0}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		where.Column++
		switch {
		case r == utf8.RuneError && size == 1:
			p.Fail(where, "not UTF-8 text: save the file as UTF-8")
			return false
		case unicode.IsControl(r) && !strings.ContainsRune("\t\r\n\u0085", r):
			p.Fail(where, "the control character %U is not accepted: remove it, or name a file of text", r)
			return false
		case r == '\n':
			where = place{where.Line + 1, 0}
		}
		i += size
	}
	return true
}

// plain refuses what a policy never needs: aliases, which can grow without
// bound and let one line change another, and deep nesting.
func (p *yamlReader) plain(n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		p.Fail(at(n), "anchors and aliases are not accepted: write the value out")
		return false
	}
	if depth > maxDepth {
		p.Fail(at(n), "values are nested deeper than %d levels: no key needs that", maxDepth)
		return false
	}
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !p.plain(c, depth+1) })
}

// oneLine keeps a mistake on one line, also when the YAML reader's text is not.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
