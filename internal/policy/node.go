package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// field reads the value of one key.
type field struct {
	key  string
	read func(value *yaml.Node)
}

// mapping reads a mapping; where names it in messages, empty for the whole file.
// It returns the lines on which keys stand.
func (p *parser) mapping(n *yaml.Node, where string, fields []field) map[string]int {
	lines := make(map[string]int)
	if n.Kind != yaml.MappingNode {
		p.fail(n.Line, "%s is %s: accepted is a mapping of %s", orFile(where), kind(n), strings.Join(keys(fields), ", "))
		return lines
	}
	in := ""
	if where != "" {
		in = " in " + where
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(fields, func(f field) bool {
			return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!str" && f.key == key.Value
		})
		if at < 0 {
			p.fail(key.Line, "unknown key %s%s%s", quote(key.Value), in, suggest(key.Value, keys(fields)))
			continue
		}
		if line, twice := lines[key.Value]; twice {
			p.fail(key.Line, "key %q%s is set twice: it stands on line %d already", key.Value, in, line)
			continue
		}
		lines[key.Value] = key.Line
		fields[at].read(value)
	}
	return lines
}

func keys(fields []field) []string {
	var ks []string
	for _, f := range fields {
		ks = append(ks, f.key)
	}
	return ks
}

func orFile(where string) string {
	if where == "" {
		return "the file"
	}
	return where
}

// kind says what a node is, for people.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.ShortTag() == "!!null" && n.Value == "" {
		return "empty"
	}
	return quote(n.Value)
}

// list calls read for each item of a list with at most most items.
func (p *parser) list(n *yaml.Node, where, of string, most int, read func(item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		p.fail(n.Line, "%s is %s: accepted is a list of %s, [] for none", where, kind(n), of)
		return
	}
	if len(n.Content) > most {
		p.fail(n.Line, "%s has %d items: at most %d are accepted", where, len(n.Content), most)
		return
	}
	for _, item := range n.Content {
		read(item)
	}
}

// texts reads a list of strings without duplicates; check returns what is wrong
// with one, or the empty string, and may rewrite it.
func (p *parser) texts(n *yaml.Node, where, of string, most int, into *[]string, check func(s string) (clean, wrong string)) {
	seen := make(map[string]int)
	p.list(n, where, of, most, func(item *yaml.Node) {
		s, ok := text(item)
		if !ok {
			p.fail(item.Line, "%s has %s: accepted are %s", where, kind(item), of)
			return
		}
		s, wrong := check(s)
		if wrong != "" {
			p.fail(item.Line, "%s has %s: %s", where, quote(s), wrong)
			return
		}
		if line, twice := seen[s]; twice {
			p.fail(item.Line, "%s has %s twice: it stands on line %d already", where, quote(s), line)
			return
		}
		seen[s] = item.Line
		*into = append(*into, s)
	})
}

// text returns a string scalar.
func text(n *yaml.Node) (string, bool) {
	return n.Value, n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
}

// one reads one of a few words.
func (p *parser) one(where string, accepted []string, into func(string)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && slices.Contains(accepted, n.Value) {
			into(n.Value)
			return
		}
		word := ""
		if n.Kind == yaml.ScalarNode {
			word = n.Value
		}
		p.fail(n.Line, "%s is %s%s", where, kind(n), suggest(word, accepted))
	}
}

func (p *parser) truth(where string, into *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
			p.fail(n.Line, "%s is %s: accepted are true and false", where, kind(n))
			return
		}
		*into = strings.EqualFold(n.Value, "true")
	}
}

func (p *parser) number(where, unit string, low, high int, into *int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, ok := integer(n)
		if !ok || v < int64(low) || v > int64(high) {
			p.fail(n.Line, "%s is %s: accepted are %s from %d to %d", where, kind(n), unit, low, high)
			return
		}
		*into = int(v)
	}
}

// integer reads plain decimal digits. Other forms of YAML (0x10, 010, 1_000) are
// refused: YAML's versions do not agree on them.
func integer(n *yaml.Node) (int64, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		return 0, false
	}
	return digits(n.Value)
}

func digits(s string) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && fmt.Sprint(v) == s
}

// size reads a number of bytes: 1048576, 1024KiB or 1MiB.
func (p *parser) size(where string, high int64, into *int64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, ok := integer(n)
		if s, is := text(n); is {
			v, ok = bytesOf(s)
		}
		if !ok || v < 1 || v > high {
			p.fail(n.Line, "%s is %s: accepted are bytes from 1 to %d, also as 64KiB, 64MiB or 1GiB", where, kind(n), high)
			return
		}
		*into = v
	}
}

func bytesOf(s string) (int64, bool) {
	for _, unit := range []struct {
		suffix string
		shift  uint
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}} {
		if number, ok := strings.CutSuffix(s, unit.suffix); ok {
			v, ok := digits(strings.TrimSuffix(number, " "))
			return v << unit.shift, ok && v >= 0 && v < 1<<32
		}
	}
	return 0, false
}
