package classifytest

import (
	"context"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/classify"
	"weir/test/classifytest/cases"
)

// TestCasesG5G6G10 (B05, B08, B09, B10, B12) holds the classifier to the table.
func TestCasesG5G6G10(t *testing.T) {
	known := map[string]bool{}
	for _, c := range cases.All() {
		if known[c.Text] {
			t.Errorf("%q is there twice", c.Text)
		}
		known[c.Text] = true
		got := classify.Shell(c.Text, "/workspace")
		if c.Class == cases.NotLocal && got.Class != classify.Local || c.Class == got.Class.String() {
			continue
		}
		t.Errorf("%s: %q is %s, want %s: %v", c.ID, c.Text, got.Class, c.Class, got.Reasons)
	}
}

// TestCasesFire: what is said to be an attack is one, seen in real shells, so that the table proves something.
func TestCasesFire(t *testing.T) {
	for letter, shell := range map[string]string{"b": "bash", "d": "dash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			var hostile []cases.Case
			var commands []string
			for _, c := range cases.All() {
				if c.Class != classify.Local.String() && !strings.Contains(c.Text, "192.0.2.") {
					hostile, commands = append(hostile, c), append(commands, c.Text)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
			defer cancel()
			seen, err := Run(ctx, t.TempDir(), shell, commands)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range hostile {
				fired := len(seen[i].Sockets) > 0
				for _, e := range seen[i].Execs {
					fired = fired || stub(e)
				}
				if fired != strings.Contains(c.Fires, letter) {
					t.Errorf("%s: %q: fired %t, the table says %q; execs %q, sockets %q", shell, c.Text, fired, c.Fires, seen[i].Execs, seen[i].Sockets)
				}
			}
		})
	}
}

// stub tells whether a path is one of the programs that nothing local starts, or one that was looked for in the folder.
func stub(file string) bool {
	if name, ok := strings.CutPrefix(file, "/mnt/bin/"); ok {
		return slices.Contains(Stubs, name)
	}
	return !strings.HasPrefix(file, "/") || strings.HasPrefix(file, "/mnt/work/") || path.Base(file) == "true"
}

func TestTools(t *testing.T) {
	for _, tool := range []string{"strace", "setpriv", "bash", "dash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Errorf("%v: install it with scripts/packages shells", err)
		}
	}
}
