package policy

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Confirm says which calls of tools a person confirms (K11). In its names * stands for any text.
type Confirm struct {
	// Are confirmed in a clean container, too; one with a * counts for tools that change something.
	Tools []string `key:"tools" list:"names of tools, in which * stands for any text" most:"256" each:"tools"`
	// Are never confirmed.
	ApprovalExemptTools []string `key:"approval_exempt_tools" was:"except" list:"names of tools, in which * stands for any text" most:"256" each:"tools"`
}

// Vault says how the vault's requests go out.
type Vault struct {
	Proxy string `key:"proxy" word:"the URL of a proxy, or \"\" for none"` // http or https URL of the proxy to use; empty: none
}

func (v *Vault) check(p *parser, n *yaml.Node, _ map[string]place) {
	if wrong := baseURL(v.Proxy, false); v.Proxy != "" && wrong != "" {
		p.Fail(at(n.Content[1]), "vault.proxy %s", wrong)
	}
}

const (
	maxTools    = 256
	maxToolName = 256
)

func toolName(s string) bool {
	return s != "" && len(s) <= maxToolName && !strings.ContainsFunc(s, unprintable)
}

// Tool says what a call of some tools sets (G2).
type Tool struct {
	Name  string   `key:"name" text:"accepted is the name of a tool, in which * stands for any text" check:"tool"`
	Taint []string `key:"taint" list:"corruption, secret" most:"2" each:"bit"` // empty: nothing, whatever else would
}

// tools reads the table; the first line that matches a name decides.
func (p *parser) tools(n *yaml.Node, into *[]Tool) {
	*into = nil
	p.List(n, "taint.tools", "mappings with name and taint", maxTools, func(item *yaml.Node) {
		var t Tool
		before := p.Mistakes()
		found := p.group(item, "taint.tools", &t)
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

// Matches says whether a text is of a pattern, in which * stands for any characters. It takes time in the order of their lengths' product.
func Matches(pattern, text string) bool { return Between(strings.Split(pattern, "*"), text) }

// Between says whether a text is these parts, with any characters between them.
func Between(parts []string, text string) bool {
	if len(parts) == 1 {
		return parts[0] == text
	}
	head, tail := parts[0], parts[len(parts)-1]
	if len(text) < len(head)+len(tail) || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
		return false
	}
	text = text[len(head) : len(text)-len(tail)]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}
