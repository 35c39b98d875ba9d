package policy

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Confirm says which calls of tools a person need not confirm (K11).
type Confirm struct {
	Except []string // names of tools that change something and are called unasked; * stands for any text
}

// Vault says how the vault's requests go out.
type Vault struct {
	Proxy string // http or https URL of the proxy to use; empty: none
}

const maxConfirm = 256

func (p *parser) confirm(n *yaml.Node, out *Confirm) {
	p.Mapping(n, "confirm", []yamlField{{Key: "except", Read: func(n *yaml.Node) {
		out.Except = nil
		p.Texts(n, "confirm.except", "names of tools, in which * stands for any text", maxConfirm, &out.Except, func(s string) (string, string) {
			if s == "" || len(s) > maxToolName || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
				return s, "not the name of a tool such as Write or mcp__browser__*"
			}
			return s, ""
		})
	}}})
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
			p.Fail(n.Line, "vault.proxy %s", wrong)
		}
	}}})
}
