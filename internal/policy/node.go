package policy

import (
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
		p.Fail(at(n), "%s is %s: accepted is a mapping of %s", orFile(where), yamlKind(n), strings.Join(keys(fields), ", "))
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

func orFile(where string) string {
	if where == "" {
		return "the file"
	}
	return where
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
func (p *yamlReader) One(where string, accepted []string, into func(string)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && slices.Contains(accepted, n.Value) {
			into(n.Value)
			return
		}
		word := ""
		if n.Kind == yaml.ScalarNode {
			word = n.Value
		}
		p.Fail(at(n), "%s is %s%s", where, yamlKind(n), suggest(word, accepted))
	}
}

// Truth reads true or false.
func (p *yamlReader) Truth(where string, into *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
			p.Fail(at(n), "%s is %s: accepted are true and false%s", where, yamlKind(n), unquoted(n))
			return
		}
		*into = strings.EqualFold(n.Value, "true")
	}
}

// Number reads a whole number of a unit, from low to high.
func (p *yamlReader) Number(where, unit string, low, high int, into *int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, ok := yamlInteger(n)
		if !ok || v < int64(low) || v > int64(high) {
			p.Fail(at(n), "%s is %s: accepted are %s from %d to %d%s", where, yamlKind(n), unit, low, high, unquoted(n))
			return
		}
		*into = int(v)
	}
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

// Size reads a number of bytes: 1048576, 1024KiB or 1MiB.
func (p *yamlReader) Size(where string, high int64, into *int64) func(*yaml.Node) {
	return func(n *yaml.Node) {
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
	return 0, false
}

// Word reads a text without blanks, up to 1,024 bytes.
func (p *yamlReader) Word(where, accepted string, into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		s, ok := yamlText(n)
		if !ok || s == "" || len(s) > 1024 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
			p.Fail(at(n), "%s: accepted is %s, without blanks", where, accepted)
			return
		}
		*into = s
	}
}
