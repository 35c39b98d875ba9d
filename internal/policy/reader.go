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
	File string
	Line int // from 1; 0 when it is about the whole file
	Text string
}

// Error tells the mistake in one line: file:line: what, and what is accepted.
func (e *yamlError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Text)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// yamlReader collects mistakes while its caller walks the YAML tree.
type yamlReader struct {
	Name string // the file's, for errors
	errs []*yamlError
}

// Fail notes a mistake on a line, from 1; 0: it is about the whole file.
func (p *yamlReader) Fail(line int, format string, args ...any) {
	p.errs = append(p.errs, &yamlError{p.Name, line, oneLine(fmt.Sprintf(format, args...))})
}

// Mistakes counts those noted so far.
func (p *yamlReader) Mistakes() int { return len(p.errs) }

// Err returns all mistakes joined, in the order of their lines, each an *Error of one line; nil if there are none.
func (p *yamlReader) Err() error {
	slices.SortStableFunc(p.errs, func(a, b *yamlError) int { return cmp.Compare(a.Line, b.Line) })
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

// Document returns the one document's root, or nil after a mistake.
func (p *yamlReader) Document(data []byte) *yaml.Node {
	if len(data) > MaxFile {
		p.Fail(0, "the file has more than %d bytes: a policy needs far less", MaxFile)
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
		p.Fail(1, `the file is empty: write at least "version: 1"`)
		return nil
	}
	if err != nil {
		p.syntax(err, data)
		return nil
	}
	var next yaml.Node
	if err := decoder.Decode(&next); err == nil {
		p.Fail(max(next.Line, 1), "a second document starts here: a policy is one document")
		return nil
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err, data)
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
	for i, line := 0, 1; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			p.Fail(line, "not UTF-8 text: save the file as UTF-8")
			return false
		case unicode.IsControl(r) && !strings.ContainsRune("\t\r\n\u0085", r):
			p.Fail(line, "the control character %U is not accepted", r)
			return false
		case r == '\n':
			line++
		}
		i += size
	}
	return true
}

// syntax tells an error of the YAML reader, which looks like
// "yaml: line 3: did not find expected key", or has no line when it is the first.
func (p *yamlReader) syntax(err error, data []byte) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, after, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, text = n, after
				// Its parser counts from 0, its scanner from 1.
				if strings.HasPrefix(text, "did not find expected ") {
					line++
				}
			}
		}
	} else if name, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		before, _, _ := bytes.Cut(data, []byte("*"+name))
		line += bytes.Count(before, []byte("\n"))
	}
	lines := 1 + bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n"))
	p.Fail(min(line, lines), "not YAML: %s", text)
}

// plain refuses what a policy never needs: aliases, which can grow without
// bound and let one line change another, and deep nesting.
func (p *yamlReader) plain(n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		p.Fail(n.Line, "anchors and aliases are not accepted: write the value out")
		return false
	}
	if depth > maxDepth {
		p.Fail(n.Line, "values are nested deeper than %d levels", maxDepth)
		return false
	}
	for _, c := range n.Content {
		if !p.plain(c, depth+1) {
			return false
		}
	}
	return true
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
