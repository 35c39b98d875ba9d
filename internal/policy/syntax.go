package policy

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxSearch bounds the bytes that are read to find where a mistake is: about a second's work.
const maxSearch = 64 << 20

// NotYAML is the mistake in a file of data that is no YAML; why is what the library says of it.
func NotYAML(file string, data []byte, why error) *Error {
	p := yamlReader{Name: file}
	p.syntax(why.Error(), data)
	return p.errs[0]
}

// syntax notes why data is no YAML: where the mistake is, in plain words, and what to write. The library names the line on which the part
// begins that it was reading, no column, and says what its parser expected; why is that text.
func (p *yamlReader) syntax(why string, data []byte) {
	whole := scanYAML(data)
	switch {
	case whole.wrong.open.Line > 0:
		p.Fail(whole.wrong.open, `the "%c" that opens here is closed by "%c": close it by "%c"`, whole.wrong.is, whole.wrong.by, closer(whole.wrong.is))
		return
	case len(whole.open) > 0 && whole.quote.is == 0:
		p.Fail(whole.open[0].open, `the "%c" that opens here is not closed: write "%c" after its last item`, whole.open[0].is, closer(whole.open[0].is))
		return
	}
	where, rest := broken(data)
	state := scanYAML(data[:len(data)-len(rest)])
	next, size := utf8.DecodeRune(rest)
	switch {
	case whole.tab.Line > 0 && whole.tab.Line <= where.Line:
		p.Fail(whole.tab, "a tab stands in the indentation: indent with spaces")
	case whole.long.Line > 0 && whole.long.Line <= where.Line:
		p.Fail(whole.long, "the quote that opens here is not closed on its line: write another at the end of the text")
	case strings.Contains(why, "escape") || strings.Contains(why, "hexdecimal"):
		p.Fail(where, `a backslash in double quotes begins a code that YAML does not know: write '…' instead of "…"`)
	case strings.HasPrefix(string(rest), "- ") && state.inline:
		p.Fail(where, "a list item cannot follow on the line of its key: begin a new line, or write [item, item]")
	case next == '*' || next == '&' || next == '!' || next == '@' || next == '`' || next == '%' || next == '|' || next == '>':
		p.Fail(where, `a text cannot begin with "%c": put it in quotes, such as %s`, next, yamlQuote(yamlWord(rest)))
	case next == ':' && !state.inline:
		p.Fail(where, "there is no key before the colon: write key: value")
	case next == ':' && (size == len(rest) || bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[size]))):
		p.Fail(where, `there is a second ": " on this line: begin a new line for another key, or put the value in quotes`)
	case len(state.open) > 0:
		p.Fail(where, "this is not understood inside %c … %c: put a text that has one of : , [ ] { } # in quotes, and a comma between items", state.open[len(state.open)-1].is, closer(state.open[len(state.open)-1].is))
	case !state.inline && ended(data[:len(data)-len(rest)]):
		p.Fail(where, "the document ends in the line before this: a policy is one document, without ...")
	case !state.inline && !strings.Contains(firstLine(rest), ":") && !strings.HasPrefix(string(rest), "-"):
		p.Fail(where, "%s has no colon: write key: value", yamlQuote(yamlWord(rest)))
	case !state.inline:
		p.Fail(where, "the indentation of this line fits none of the lines above: begin it below the key or the item that it belongs to")
	default:
		p.Fail(where, "this is not understood after what is before it: put the whole value in quotes, or begin a new line")
	}
}

// ended says whether a text ends with the line that ends a document.
func ended(before []byte) bool {
	lines := strings.Split(strings.TrimRight(string(before), " \r\n"), "\n")
	return strings.HasPrefix(lines[len(lines)-1], "...")
}

// broken finds the mistake in data that is no YAML: the first character after the longest beginning that is YAML, when what it has open is
// closed; and the text from there.
func broken(data []byte) (place, []byte) {
	if len(data)*(1+bytes.Count(data, []byte("\n"))) > maxSearch {
		return place{Line: 1, Column: 1}, data
	}
	good := func(n int) bool {
		text := bytes.TrimRight(data[:n], " ")
		documents := yaml.NewDecoder(bytes.NewReader(append(bytes.Clone(text), scanYAML(text).end()...)))
		for {
			var doc yaml.Node
			if err := documents.Decode(&doc); err != nil {
				return err == io.EOF
			}
		}
	}
	end := len(data)
	for end > 0 && !good(end) {
		end = bytes.LastIndexByte(data[:end-1], '\n') + 1
	}
	start, stop := end, len(data)
	if i := bytes.IndexByte(data[start:], '\n'); i >= 0 {
		stop = start + i
	}
	for end = stop; end > start && !good(end); {
		_, size := utf8.DecodeLastRune(data[:end])
		end -= size
	}
	for end < stop && data[end] == ' ' {
		end++
	}
	before := data[start:end]
	return place{1 + bytes.Count(data[:start], []byte("\n")), 1 + utf8.RuneCount(before)}, data[end:]
}

// yamlState is what the beginning of a YAML text has open.
type yamlState struct {
	open  []bracket // [ and {, the outermost first
	quote bracket   // the quote that the text ends in
	wrong struct {  // the first bracket that another kind closed
		bracket
		by rune
	}
	long    place // where the first quoted text begins that its line does not end
	tab     place // the first tab of an indentation
	comment bool  // the text ends in one
	inline  bool  // something stands on the last line
}

type bracket struct {
	is   rune
	open place
}

// end closes what is open.
func (s yamlState) end() string {
	end := ""
	if s.comment {
		end = "\n"
	}
	if s.quote.is != 0 {
		end += string(s.quote.is)
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		end += string(closer(s.open[i].is))
	}
	return end
}

func closer(open rune) rune {
	if open == '{' {
		return '}'
	}
	return ']'
}

// scanYAML finds quotes and brackets. It knows no block texts (| and >), which a policy does not need.
func scanYAML(data []byte) yamlState {
	var s yamlState
	at := place{1, 0}
	fresh := true // a value or a key may begin here
	last, escaped := ' ', false
	for _, r := range string(data) {
		at.Column++
		if r == '\n' {
			if s.quote.is != 0 && s.long.Line == 0 {
				s.long = s.quote.open
			}
			at = place{at.Line + 1, 0}
			s.comment, s.inline, fresh, last = false, false, true, ' '
			continue
		}
		blank := r == ' ' || r == '\t' || r == '\r'
		switch {
		case s.comment:
		case s.quote.is != 0:
			switch {
			case escaped:
				escaped = false
			case r == '\\' && s.quote.is == '"':
				escaped = true
			case r == s.quote.is:
				s.quote = bracket{}
			}
		case r == '\t' && (!s.inline || fresh && last == '-') && s.tab.Line == 0 && len(s.open) == 0:
			s.tab = at
		case blank:
			fresh = fresh || last == ':' || last == '-' || last == '?'
		case r == '#' && (last == ' ' || last == '\t'):
			s.comment = true
		case (r == '"' || r == '\'') && fresh:
			s.quote, fresh = bracket{r, at}, false
		case (r == '[' || r == '{') && (fresh || len(s.open) > 0):
			s.open, fresh = append(s.open, bracket{r, at}), true
		case (r == ']' || r == '}') && len(s.open) > 0:
			if top := s.open[len(s.open)-1]; closer(top.is) != r && s.wrong.by == 0 {
				s.wrong.bracket, s.wrong.by = top, r
			}
			s.open, fresh = s.open[:len(s.open)-1], false
		case r == ',' && len(s.open) > 0:
			fresh = true
		case r != '-' || !fresh:
			fresh = false
		}
		last = r
		s.inline = s.inline || !blank && !s.comment
	}
	if s.quote.is != 0 && s.long.Line == 0 {
		s.long = s.quote.open
	}
	return s
}

// yamlWord is the text up to where it would end as a value.
func yamlWord(b []byte) string {
	word := firstLine(b)
	if i := strings.IndexAny(word, ",]}#\""); i > 0 {
		word = word[:i]
	}
	return strings.TrimSpace(word)
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSuffix(line, "\r")
}
