package classifytest

import (
	"context"
	"flag"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"weir/internal/classify"
	"weir/test/classifytest/cases"
)

var (
	variants = flag.Int("variants", 1000, "how many generated commands that are called local are run in real shells")
	seed     = flag.Uint64("seed", 1, "seed of the generated commands")
)

// batch is how many commands one shell runs.
const batch = 250

// helpers are programs that others start by themselves. None takes part in what is said of the command.
var helpers = map[string][]string{
	"egrep": {"grep"}, "fgrep": {"grep"}, // shell scripts on Debian
	"diff":  {"pr"},   // diff -l
	"xargs": {"echo"}, // without a command
}

// outside tells what a command did that its judgement does not account for: G5, B08, B09.
func outside(facts classify.Facts, seen Seen) []string {
	var out []string
	for _, e := range seen.Execs {
		if !accounted(e, facts.Programs) {
			out = append(out, fmt.Sprintf("ran %s, which is not among its programs %q", e, facts.Programs))
		}
	}
	for _, s := range seen.Sockets {
		out = append(out, "asked for "+s)
	}
	return out
}

// accounted tells whether an executed path is one of the programs. Those without a slash come from the folders of PATH alone.
func accounted(exec string, programs []string) bool {
	dir, base := path.Split(exec)
	inPath := slices.Contains([]string{"/usr/bin/", "/bin/", "/mnt/bin/"}, dir)
	for _, p := range programs {
		name := path.Base(p)
		if p == exec || inPath && (p == base || slices.Contains(helpers[name], base)) {
			return true
		}
	}
	return false
}

// TestDifferentialGeneratedG5G10: what is called local does in real shells nothing but what was said.
func TestDifferentialGeneratedG5G10(t *testing.T) {
	g := NewGrammar(*seed, 4)
	differential(t, generate(t, *variants, g.Command))
}

// TestDifferentialSoup (B09) is the same for texts that no grammar makes.
func TestDifferentialSoup(t *testing.T) {
	g := NewGrammar(*seed, 0)
	differential(t, generate(t, *variants/2, g.Soup))
}

// generate makes n different commands that are called local.
func generate(t *testing.T, n int, next func() string) []string {
	known := map[string]bool{}
	var local []string
	made := 0
	for ; len(local) < n; made++ {
		if made > 200*n {
			t.Fatalf("%d of %d generated commands are local: that is too few to test", len(local), made)
		}
		text := next()
		if !known[text] && classify.Shell(text, "/workspace").Class == classify.Local {
			known[text] = true
			local = append(local, text)
		}
	}
	t.Logf("%d commands made with seed %d, %d of them local", made, *seed, len(local))
	return local
}

// TestDifferentialCases is the same for the cases of our own.
func TestDifferentialCases(t *testing.T) {
	var local []string
	for _, c := range cases.All() {
		if c.Class == classify.Local.String() {
			local = append(local, c.Text)
		}
	}
	differential(t, local)
}

// differential runs commands under both shells, in batches.
func differential(t *testing.T, commands []string) {
	for i, part := range slices.Collect(slices.Chunk(commands, batch)) {
		for _, shell := range []string{"bash", "dash"} {
			t.Run(fmt.Sprintf("%s/%d", shell, i), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
				defer cancel()
				seen, err := Run(ctx, t.TempDir(), shell, part)
				if err != nil {
					t.Fatal(err)
				}
				execs := 0
				for k, s := range seen {
					execs += len(s.Execs)
					for _, what := range outside(classify.Shell(part[k], "/workspace").Facts, s) {
						t.Errorf("%s: %q is called local, but %s", shell, part[k], what)
					}
				}
				if execs == 0 {
					t.Errorf("%s: %d commands started no program at all", shell, len(part))
				}
			})
		}
	}
}
