package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// K11: who is asked about always, and who never, are lists of names; without them nobody is asked about the browser that G23 points to.
func TestConfirmG23K11(t *testing.T) {
	for _, c := range []struct {
		text string
		want Confirm
	}{
		{"version: 1", Confirm{ApprovalExemptTools: []string{"mcp__browser__*"}}},
		{"confirm: {}", Confirm{ApprovalExemptTools: []string{"mcp__browser__*"}}},
		{"confirm: {approval_exempt_tools: []}", Confirm{}},
		{"confirm: {approval_exempt_tools: ['*']}", Confirm{ApprovalExemptTools: []string{"*"}}},
		{"confirm: {approval_exempt_tools: [Write, Edit, mcp__docs__*]}", Confirm{ApprovalExemptTools: []string{"Write", "Edit", "mcp__docs__*"}}},
		{"confirm: {tools: [Write, mcp__*], approval_exempt_tools: []}", Confirm{Tools: []string{"Write", "mcp__*"}}},
		{"confirm: {tools: ['*']}", Confirm{Tools: []string{"*"}, ApprovalExemptTools: []string{"mcp__browser__*"}}},
	} {
		p, err := Parse("p", []byte(c.text))
		if diff := cmp.Diff(c.want, p.Confirm); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.text, err, diff)
		}
	}
}

func TestVaultProxy(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"version: 1", ""}, {"vault: {}", ""}, {"vault: {proxy: ''}", ""}, {"vault: {proxy: 'http://proxy.example.com:3128'}", "http://proxy.example.com:3128"},
		{"vault: {proxy: 'https://[2001:db8::1]:8443/'}", "https://[2001:db8::1]:8443/"},
	} {
		p, err := Parse("p", []byte(c.text))
		if err != nil || p.Vault.Proxy != c.want {
			t.Errorf("%s: %q, %v", c.text, p.Vault.Proxy, err)
		}
	}
}

func TestCallsMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"confirm: none", `p:1:10: confirm is "none": accepted is a mapping of tools, approval_exempt_tools`},
		{"confirm: {ask: []}", `p:1:11: unknown key "ask" in confirm: accepted are tools, approval_exempt_tools`},
		{"confirm: {tools: Write}", `p:1:18: confirm.tools is "Write": accepted is a list of names of tools, in which * stands for any text, [] for none`},
		{"confirm: {approval_exempt_tools: Write}", `p:1:34: confirm.approval_exempt_tools is "Write": accepted is a list of names of tools, in which * stands for any text, [] for none`},
		{"confirm: {approval_exempt_tools: [a b]}", `p:1:35: confirm.approval_exempt_tools has "a b": not the name of a tool such as Write or mcp__browser__*`},
		{"confirm: {approval_exempt_tools: [Write, Write]}", `p:1:42: confirm.approval_exempt_tools has "Write" twice: it stands on line 1 already`},
		{"vault: {proxy: 1}", `p:1:16: vault.proxy: accepted is the URL of a proxy, or "" for none, without blanks`},
		{"vault: {proxy: 'socks5://a.example.com'}", `p:1:16: vault.proxy is not an http or https URL such as https://models.example.com/v1`},
		{"vault: {proxy: 'http://u:p@a.example.com'}", `p:1:16: vault.proxy holds a user: leave it out; a key belongs into a key_file`},
		{"vault: {prox: x}", `p:1:9: unknown key "prox" in vault: did you mean "proxy"?`},
	} {
		_, err := Parse("p", []byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}
