package toolguard

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func language(tool string) Dialect {
	switch tool {
	case "powershell_exec":
		return PowerShell
	case "cmd_exec":
		return Cmd
	}
	return POSIX
}

// TestExamplesK3K5K6K7K8: each rule refuses its examples, itself, and no rule refuses what looks alike.
func TestExamplesK3K5K6K7K8(t *testing.T) {
	g := testGuard()
	var ids []string
	for _, r := range g.Rules() {
		ids = append(ids, r.ID)
		if len(r.Refused) == 0 || len(r.Near) == 0 || r.Refuses == "" || r.Why == "" || r.Instead == "" {
			t.Errorf("%s: a rule needs refused and near examples, and says what it refuses, why and what to do", r.ID)
		}
		for _, e := range r.Refused {
			hit, ok := g.Check(e.Tool, input(e))
			if !ok || hit.Rule.ID != r.ID {
				t.Errorf("%s: %s %q: refused by %q (%v)", r.ID, e.Tool, e.Text, hit.ID(), ok)
			}
		}
		for _, e := range r.Near {
			if hit, ok := g.Check(e.Tool, input(e)); ok {
				t.Errorf("%s: %s %q looks alike only, but %s refuses it: %s", r.ID, e.Tool, e.Text, hit.Rule.ID, hit.Excerpt)
			}
		}
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
		t.Errorf("%d rules have %d ids", len(ids), n)
	}
}

// testGuard is one whose prefilter is asked about every text, however short.
func testGuard() *Guard {
	g := New(Options{Names: InstalledNames()})
	g.least = 0
	return g
}

// input is an example as its tool takes it.
func input(e Example) json.RawMessage {
	name := "command"
	switch {
	case e.Tool == "powershell_exec":
		name = "script"
	case strings.HasPrefix(e.Tool, "fs_"):
		name = "path"
	case e.Tool == "agent_update":
		name = "url"
	}
	data, err := json.Marshal(map[string]string{name: e.Text})
	if err != nil {
		panic(err)
	}
	return data
}
