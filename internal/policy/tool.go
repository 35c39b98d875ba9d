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
	p.List(n, "taint.tools", "mappings with name and taint", maxTools, func(item *yaml.Node) {
		var t Tool
		before := p.Mistakes()
		found := p.Mapping(item, "taint.tools", []yamlField{
			{Key: "name", Read: func(n *yaml.Node) { p.toolName(n, &t.Name) }},
			{Key: "taint", Read: func(n *yaml.Node) {
				p.Texts(n, "taint.tools.taint", "corruption, secret", 2, &t.Taint, taintBit)
			}},
		})
		for _, key := range []string{"name", "taint"} {
			if _, ok := found[key]; !ok && p.Mistakes() == before {
				p.Fail(at(item), `taint.tools has an item without %s: write for example {name: "mcp__browser__*", taint: [corruption]}`, key)
			}
		}
		for _, other := range *into {
			if other.Name == t.Name && p.Mistakes() == before {
				p.Fail(at(item), "taint.tools has %s twice: only the first counts", yamlQuote(t.Name))
			}
		}
		*into = append(*into, t)
	})
}

func (p *parser) toolName(n *yaml.Node, into *string) {
	s, ok := yamlText(n)
	if !ok || s == "" || len(s) > maxToolName || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		p.Fail(at(n), "taint.tools.name is %s: accepted is the name of a tool, in which * stands for any text", yamlKind(n))
		return
	}
	*into = s
}
