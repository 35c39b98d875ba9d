package classifytest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"weir/internal/classify"
)

// TestSedSandbox (B08): sed's own sandbox refuses e, r and w when it reads a script. No script that is called local and that is said to
// read and write nothing but its input is refused.
func TestSedSandbox(t *testing.T) {
	g := NewGrammar(*seed, 0)
	tried := 0
	for made := 0; tried < *variants/2 && made < 100*(*variants); made++ {
		script := g.SedSoup()
		if strings.ContainsAny(script, "\x00'") {
			continue
		}
		r := classify.Shell("sed '"+script+"' /dev/null", "/workspace")
		if r.Class != classify.Local || len(r.Facts.Writes) > 0 || !slices.Equal(r.Facts.Reads, []string{"/dev/null"}) {
			continue
		}
		tried++
		out, _ := exec.CommandContext(t.Context(), "sed", "--sandbox", "--", script, "/dev/null").CombinedOutput()
		if strings.Contains(string(out), "sandbox") {
			t.Errorf("%q is called local: %s", script, out)
		}
	}
	if tried < *variants/2 {
		t.Errorf("only %d scripts are local", tried)
	}
}
