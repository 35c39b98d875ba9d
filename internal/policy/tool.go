package policy

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	maxTools    = 256
	maxToolName = 256
)

// Tool says what a call of some tools sets (G2).
type Tool struct {
	Name  string   // of tools; * stands for any text
	Taint []string // corruption, secret; empty: nothing, whatever else would
}

// tools reads the table; the first line that matches a name decides.
func (p *parser) tools(n *yaml.Node, into *[]Tool) {
	*into = nil
	p.list(n, "taint.tools", "mappings with name and taint", maxTools, func(item *yaml.Node) {
		var t Tool
		before := len(p.errs)
		found := p.mapping(item, "taint.tools", []field{
			{"name", func(n *yaml.Node) { p.toolName(n, &t.Name) }},
			{"taint", func(n *yaml.Node) {
				p.texts(n, "taint.tools.taint", "corruption, secret", 2, &t.Taint, taintBit)
			}},
		})
		for _, key := range []string{"name", "taint"} {
			if _, ok := found[key]; !ok && len(p.errs) == before {
				p.fail(item.Line, `taint.tools has an item without %s: write for example {name: "mcp__browser__*", taint: [corruption]}`, key)
			}
		}
		for _, other := range *into {
			if other.Name == t.Name && len(p.errs) == before {
				p.fail(item.Line, "taint.tools has %s twice: only the first counts", quote(t.Name))
			}
		}
		*into = append(*into, t)
	})
}

func (p *parser) toolName(n *yaml.Node, into *string) {
	s, ok := text(n)
	if !ok || s == "" || len(s) > maxToolName || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		p.fail(n.Line, "taint.tools.name is %s: accepted is the name of a tool, in which * stands for any text", kind(n))
		return
	}
	*into = s
}
