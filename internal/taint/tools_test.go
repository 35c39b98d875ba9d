package taint

import (
	"testing"

	"weir/internal/policy"
)

func TestTools(t *testing.T) { // G2
	custom := policy.Taint{UntrustedTools: true, Tools: []policy.Tool{
		{Name: "mcp__docs__search", Taint: nil},
		{Name: "mcp__docs__*", Taint: []string{"secret"}},
		{Name: "*__read_*_page", Taint: []string{"corruption", "secret"}},
	}}
	off := policy.Taint{}
	for _, c := range []struct {
		what   string
		policy policy.Taint
		name   string
		public bool
		want   Bits
	}{
		{"browser", policy.Default().Taint, "mcp__browser__navigate", false, Corruption},
		{"marked", policy.Default().Taint, "mcp__forum__read", true, Corruption},
		{"not marked", policy.Default().Taint, "mcp__forum__read", false, 0},
		{"search results", policy.Default().Taint, "WebSearch", false, 0},
		{"other prefix", policy.Default().Taint, "xmcp__browser__navigate", false, 0},
		{"shorter", policy.Default().Taint, "mcp__browser_", false, 0},
		{"exactly the prefix", policy.Default().Taint, "mcp__browser__", false, Corruption},
		{"first line decides", custom, "mcp__docs__search", true, 0},
		{"second line", custom, "mcp__docs__fetch", true, Secret},
		{"several stars", custom, "mcp__x__read_web_page", false, Corruption | Secret},
		{"part used once", custom, "__read_page", false, 0},
		{"replaced table", custom, "mcp__browser__navigate", false, 0},
		{"all off", off, "mcp__browser__navigate", true, 0},
	} {
		if got, err := ToolBits(c.policy, c.name, c.public); err != nil || got != c.want {
			t.Errorf("%s: %s sets %v, want %v: %v", c.what, c.name, got.Names(), c.want.Names(), err)
		}
	}
	if _, err := ToolBits(policy.Taint{Tools: []policy.Tool{{Name: "x", Taint: []string{"sticky"}}}}, "x", false); err == nil {
		t.Error("an unknown bit was taken")
	}
	if bits, err := ToolBits(policy.Taint{}, "mcp__browser__navigate", true); bits != 0 || err != nil {
		t.Error("the zero table taints")
	}
}
