package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlField reads the value of one key.
type yamlField struct {
	Key  string
	Was  string // what older policies call it
	Read func(value *yaml.Node)
}

// Mapping reads a mapping; where names it in messages, empty for the whole file.
// It returns the lines on which keys stand.
func (p *yamlReader) Mapping(n *yaml.Node, where string, fields []yamlField) map[string]place {
	lines := make(map[string]place)
	if n.Kind != yaml.MappingNode {
		p.Fail(at(n), "%s is %s: accepted is a mapping of %s", cmp.Or(where, "the file"), yamlKind(n), strings.Join(keys(fields), ", "))
		return lines
	}
	in := ""
	if where != "" {
		in = " in " + where
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field := slices.IndexFunc(fields, func(f yamlField) bool {
			return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!str" && f.Key == key.Value
		})
		if field < 0 {
			if key.Kind != yaml.ScalarNode {
				p.Fail(at(key), "a key%s is %s: write one word", in, yamlKind(key))
				continue
			}
			hint := suggest(key.Value, keys(fields))
			if is := slices.IndexFunc(fields, func(f yamlField) bool { return f.Was != "" && f.Was == key.Value }); is >= 0 {
				hint = fmt.Sprintf(": did you mean %q?", fields[is].Key)
			}
			p.Fail(at(key), "unknown key %s%s%s", yamlQuote(key.Value), in, hint)
			continue
		}
		if first, twice := lines[key.Value]; twice {
			p.Fail(at(key), "key %q%s is set twice: it stands on line %d already", key.Value, in, first.Line)
			continue
		}
		lines[key.Value] = at(key)
		fields[field].Read(value)
	}
	return lines
}

func keys(fields []yamlField) []string {
	var ks []string
	for _, f := range fields {
		ks = append(ks, f.Key)
	}
	return ks
}

// yamlKind says what a node is, for people.
func yamlKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.ShortTag() == "!!null" && n.Value == "" {
		return "empty"
	}
	return yamlQuote(n.Value)
}

// unquoted asks for a value without the quotes that make a text of it.
func unquoted(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return ", without quotes"
	}
	return ""
}

// List calls read for each item of a list with at most most items.
func (p *yamlReader) List(n *yaml.Node, where, of string, most int, read func(item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		p.Fail(at(n), "%s is %s: accepted is a list of %s, [] for none", where, yamlKind(n), of)
		return
	}
	if len(n.Content) > most {
		p.Fail(at(n), "%s has %d items: at most %d are accepted", where, len(n.Content), most)
		return
	}
	for _, item := range n.Content {
		read(item)
	}
}

// Texts reads a list of strings without duplicates; check returns what is wrong
// with one, or the empty string, and may rewrite it. It returns where each stands.
func (p *yamlReader) Texts(n *yaml.Node, where, of string, most int, into *[]string, check func(s string) (clean, wrong string)) map[string]place {
	seen := make(map[string]place)
	p.List(n, where, of, most, func(item *yaml.Node) {
		s, ok := yamlText(item)
		if !ok {
			p.Fail(at(item), "%s has %s: accepted are %s", where, yamlKind(item), of)
			return
		}
		s, wrong := check(s)
		if wrong != "" {
			p.Fail(at(item), "%s has %s: %s", where, yamlQuote(s), wrong)
			return
		}
		if line, twice := seen[s]; twice {
			p.Fail(at(item), "%s has %s twice: it stands on line %d already", where, yamlQuote(s), line.Line)
			return
		}
		seen[s] = at(item)
		*into = append(*into, s)
	})
	return seen
}

// yamlText returns a string scalar.
func yamlText(n *yaml.Node) (string, bool) {
	return n.Value, n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
}

// One reads one of a few words.
func (p *yamlReader) One(n *yaml.Node, where string, accepted []string, into *string) {
	word := ""
	if n.Kind == yaml.ScalarNode {
		word = n.Value
	}
	if !slices.Contains(accepted, word) {
		p.Fail(at(n), "%s is %s%s", where, yamlKind(n), suggest(word, accepted))
		return
	}
	*into = word
}

// Truth reads true or false.
func (p *yamlReader) Truth(n *yaml.Node, where string, into *bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		p.Fail(at(n), "%s is %s: accepted are true and false%s", where, yamlKind(n), unquoted(n))
		return
	}
	*into = strings.EqualFold(n.Value, "true")
}

// Number reads a whole number; of says of what, from which to which: "seconds 1 3600".
func (p *yamlReader) Number(n *yaml.Node, where, of string, into *int) {
	unit, low, high := "", int64(0), int64(0)
	fmt.Sscan(of, &unit, &low, &high)
	v, ok := yamlInteger(n)
	if !ok || v < low || v > high {
		p.Fail(at(n), "%s is %s: accepted are %s from %d to %d%s", where, yamlKind(n), unit, low, high, unquoted(n))
		return
	}
	*into = int(v)
}

// yamlInteger reads plain decimal digits. Other forms of YAML (0x10, 010, 1_000) are
// refused: YAML's versions do not agree on them.
func yamlInteger(n *yaml.Node) (int64, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		return 0, false
	}
	return yamlDigits(n.Value)
}

// yamlDigits reads plain decimal digits, as Integer does.
func yamlDigits(s string) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && fmt.Sprint(v) == s
}

// Size reads a number of bytes, from 1 to the most: 1048576, 1024KiB or 1MiB.
func (p *yamlReader) Size(n *yaml.Node, where, most string, into *int64) {
	high, _ := ParseBytes(most)
	v, ok := yamlInteger(n)
	if s, is := yamlText(n); is {
		v, ok = ParseBytes(s)
	}
	if !ok || v < 1 || v > high {
		p.Fail(at(n), "%s is %s: accepted are bytes from 1 to %d, also as 64KiB, 64MiB or 1GiB", where, yamlKind(n), high)
		return
	}
	*into = v
}

// ParseBytes reads a number of bytes, also as 64KiB, 64MiB or 1GiB.
func ParseBytes(s string) (int64, bool) {
	for _, unit := range []struct {
		suffix string
		shift  uint
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}} {
		if number, ok := strings.CutSuffix(s, unit.suffix); ok {
			v, ok := yamlDigits(strings.TrimSuffix(number, " "))
			return v << unit.shift, ok && v >= 0 && v < 1<<32
		}
	}
	return yamlDigits(s)
}

// Word reads a text without blanks, up to 1,024 bytes.
func (p *yamlReader) Word(n *yaml.Node, where, accepted string, into *string) {
	s, ok := yamlText(n)
	if !ok || s == "" || len(s) > 1024 || strings.ContainsFunc(s, unprintable) {
		p.Fail(at(n), "%s: accepted is %s, without blanks", where, accepted)
		return
	}
	*into = s
}

// unprintable says that a character is a blank, or none of ASCII's that print.
func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// unaccepted is what check of Text says of a text that is wrong in any way: then the message is accepted.
const unaccepted = "-"

// Text reads a text; check returns what is wrong with it, or the empty string, and may rewrite it.
func (p *yamlReader) Text(n *yaml.Node, where, accepted string, check func(s string) (clean, wrong string), into *string) {
	s, ok := yamlText(n)
	clean, wrong := check(s)
	switch {
	case !ok, wrong == unaccepted:
		p.Fail(at(n), "%s is %s: %s", where, yamlKind(n), accepted)
	case wrong != "":
		p.Fail(at(n), "%s is %s: %s", where, yamlQuote(s), wrong)
	default:
		*into = clean
	}
}
