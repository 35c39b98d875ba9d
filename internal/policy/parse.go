package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	maxFile   = 1 << 20 // bytes of a policy file
	maxErrors = 20      // mistakes that are told at once
	maxDepth  = 16      // nested values: the deepest key needs 5
)

// Error is one mistake in a policy file.
type Error struct {
	File string
	Line int // from 1; 0 when it is about the whole file
	Text string
}

// Error tells the mistake in one line: file:line: what, and what is accepted.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Text)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// Load reads and parses the policy file at path. Errors of the file's contents
// are those of Parse.
func Load(path string) (Policy, error) {
	f, err := os.Open(path)
	if err != nil {
		return Policy{}, fmt.Errorf("open policy: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Policy{}, fmt.Errorf("read policy: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a policy; what the data leaves out is as in Default. name is the
// file's name for errors. On any mistake it returns the zero Policy and all
// mistakes joined, in the order of their lines, each an *Error of one line.
func Parse(name string, data []byte) (Policy, error) {
	p := parser{name: name}
	policy := Default()
	if root := p.document(data); root != nil {
		p.policy(root, &policy)
	}
	if len(p.errs) == 0 {
		return policy, nil
	}
	slices.SortStableFunc(p.errs, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	var errs []error
	for i, e := range p.errs {
		if i == maxErrors {
			errs = append(errs, &Error{File: name, Text: fmt.Sprintf("%d more mistakes are not shown", len(p.errs)-i)})
			break
		}
		errs = append(errs, e)
	}
	return Policy{}, errors.Join(errs...)
}

// parser collects mistakes while it walks the YAML tree.
type parser struct {
	name string
	errs []*Error
}

func (p *parser) fail(line int, format string, args ...any) {
	p.errs = append(p.errs, &Error{p.name, line, oneLine(fmt.Sprintf(format, args...))})
}

// document returns the one document's root, or nil after a mistake.
func (p *parser) document(data []byte) *yaml.Node {
	if len(data) > maxFile {
		p.fail(0, "the file has more than %d bytes: a policy needs far less", maxFile)
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
		p.fail(1, `the file is empty: write at least "version: 1"`)
		return nil
	}
	if err != nil {
		p.syntax(err, data)
		return nil
	}
	var next yaml.Node
	if err := decoder.Decode(&next); err == nil {
		p.fail(max(next.Line, 1), "a second document starts here: a policy is one document")
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
func (p *parser) readable(data []byte) bool {
	for i, line := 0, 1; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			p.fail(line, "not UTF-8 text: save the file as UTF-8")
			return false
		case unicode.IsControl(r) && !strings.ContainsRune("\t\r\n\u0085", r):
			p.fail(line, "the control character %U is not accepted", r)
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
func (p *parser) syntax(err error, data []byte) {
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
	p.fail(min(line, lines), "not YAML: %s", text)
}

// plain refuses what a policy never needs: aliases, which can grow without
// bound and let one line change another, and deep nesting.
func (p *parser) plain(n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		p.fail(n.Line, "anchors and aliases are not accepted: write the value out")
		return false
	}
	if depth > maxDepth {
		p.fail(n.Line, "values are nested deeper than %d levels", maxDepth)
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

// suggest ends a message about an unknown word: the nearest accepted one, or all.
func suggest(word string, accepted []string) string {
	best, least := "", 0
	for _, a := range accepted {
		if d := distance(strings.ToLower(word), a); best == "" || d < least {
			best, least = a, d
		}
	}
	if best != "" && least <= max(1, len(best)/3) {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ": accepted are " + strings.Join(accepted, ", ")
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that lead from one word to the other. Long words are simply far.
func distance(from, to string) int {
	a, b := []rune(from), []rune(to)
	if len(a) > 64 {
		return len(a)
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				rows[i][j] = j
				continue
			}
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
