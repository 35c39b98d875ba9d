package policy

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Confirm says which calls of tools a person confirms (K11). In its names * stands for any text.
type Confirm struct {
	Tools               []string // are confirmed in a clean container, too; one with a * counts for tools that change something
	ApprovalExemptTools []string // are never confirmed
}

// Vault says how the vault's requests go out.
type Vault struct {
	Proxy string // http or https URL of the proxy to use; empty: none
}

const maxConfirm = 256

func (p *parser) confirm(n *yaml.Node, out *Confirm) {
	names := func(key string, into *[]string) yamlField {
		return yamlField{Key: key, Read: func(n *yaml.Node) {
			*into = nil
			p.Texts(n, "confirm."+key, "names of tools, in which * stands for any text", maxConfirm, into, func(s string) (string, string) {
				if s == "" || len(s) > maxToolName || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
					return s, "not the name of a tool such as Write or mcp__browser__*"
				}
				return s, ""
			})
		}}
	}
	exempt := names("approval_exempt_tools", &out.ApprovalExemptTools)
	exempt.Was = "except"
	p.Mapping(n, "confirm", []yamlField{names("tools", &out.Tools), exempt})
}

func (p *parser) vault(n *yaml.Node, out *Vault) {
	p.Mapping(n, "vault", []yamlField{{Key: "proxy", Read: func(n *yaml.Node) {
		if s, ok := yamlText(n); ok && s == "" {
			out.Proxy = ""
			return
		}
		before := p.Mistakes()
		p.Word("vault.proxy", `the URL of a proxy, or "" for none`, &out.Proxy)(n)
		if wrong := baseURL(out.Proxy, false); p.Mistakes() == before && wrong != "" {
			p.Fail(at(n), "vault.proxy %s", wrong)
		}
	}}})
}
