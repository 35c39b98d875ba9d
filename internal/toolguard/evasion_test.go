package toolguard_test

import (
	"testing"

	"weir/internal/toolguard"
	"weir/test/evasion"
)

// K4: every way of writing a refused example is refused, and none makes a near miss refused. Each way that K4 names is tried.
func TestEvasionK4(t *testing.T) {
	g := toolguard.TestGuard()
	tried, missed := 0, 0
	ways := map[string]bool{}
	for _, r := range g.Rules() {
		if r.Group != toolguard.OnCommands && r.Group != toolguard.OnSelf {
			continue
		}
		for _, e := range r.Refused {
			if e.Tool == "fs_write" || e.Tool == "fs_delete" {
				continue
			}
			for _, w := range evasion.For(toolguard.Language(e.Tool)) {
				text := w.Do(toolguard.Language(e.Tool), e.Text)
				if text == "" {
					continue
				}
				tried++
				ways[w.Name] = true
				if _, ok := g.Script(toolguard.Language(e.Tool), text); !ok {
					missed++
					t.Errorf("%s: by %s: %q passes", r.ID, w.Name, text)
				}
			}
		}
		for _, e := range r.Near {
			if e.Tool == "fs_read" {
				continue
			}
			for _, w := range evasion.For(toolguard.Language(e.Tool)) {
				if text := w.Do(toolguard.Language(e.Tool), e.Text); text != "" {
					if hit, ok := g.Script(toolguard.Language(e.Tool), text); ok {
						t.Errorf("%s: near miss, by %s: %q is refused by %s", r.ID, w.Name, text, hit.ID())
					}
				}
			}
		}
	}
	for _, w := range []string{"case", "back-ticks", "carets", "aliases", "abbreviated parameters", "concatenated name", "concatenated texts", "formatted name", "white space", "Unicode dashes", "smart quotes", "cmd /c",
		"powershell -Command", "comments"} {
		if !ways[w] {
			t.Errorf("no example was written by %s", w)
		}
	}
	if tried < 300 {
		t.Errorf("only %d texts were tried", tried)
	}
	t.Logf("%d texts tried, %d pass", tried, missed)
}
