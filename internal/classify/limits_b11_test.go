package classify_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"weir/internal/classify"
)

// worst are texts of no more than a MiB that cost as much as was found: B11.
func worst() map[string]string {
	fill := func(piece string) string { return strings.Repeat(piece, classify.MaxText/len(piece)) }
	half := strings.Repeat("a", classify.MaxText/2)
	nest := func(open, body, end string, n int) string {
		return strings.Repeat(open, n) + body + strings.Repeat(end, n)
	}
	loops := nest("for a in 1 2 3 4 5 6 7 8; do ", "h() { "+strings.Repeat("ls;", 12_000)+" }", "; done", 20)
	texts := map[string]string{
		"words":         "echo " + fill("a "),
		"list":          fill("ls;"),
		"lines":         fill("ls -l\n"),
		"ands":          fill("ls&&"),
		"pipes":         fill("ls|"),
		"brackets":      fill("("),
		"nested":        nest("(", "ls", ")", 5000),
		"substitutions": fill("$("),
		"nested-subst":  nest("echo $(", "ls", ")", 5000),
		"backquotes":    fill("`"),
		"expansions":    "echo " + fill("${x:-"),
		"parameters":    "echo " + fill("$x"),
		"quotes":        fill(`"'`),
		"doubles":       "echo " + fill(`"$x"'a'`),
		"backslashes":   "echo " + fill(`\a`),
		"continued":     "echo " + fill("\\\n"),
		"continued-q":   "echo \"" + fill("\\\n") + "\"",
		"braces":        "echo " + fill("{a,b}"),
		"braces-open":   "echo " + fill("{a,"),
		"globs":         "echo " + fill("*?["),
		"arithmetic":    "echo $((" + fill("1+") + "1))",
		"arith-nested":  "echo $((" + nest("(", "1", ")", 5000) + "))",
		"documents":     fill("cat <<E\nx\nE\n"),
		"document":      "cat <<'E'\n" + fill("Ex\n") + "\nE\n",
		"document-open": "cat <<E\n" + fill("$x "),
		"many-open":     fill("cat <<E\n"),
		"comments":      fill("#\n"),
		"redirections":  "ls " + fill(">a "),
		"assignments":   fill("a=b "),
		"variables":     strings.Repeat("a=b;", 64) + fill("ls && a=$a;"),
		"functions":     fill("f() { ls; }\n"),
		"ifs":           fill("if "),
		"nested-ifs":    nest("if ls; then ", "ls", "; fi", 5000),
		"elifs":         "if ls; then ls; " + strings.Repeat("elif ls; then ls; ", 5000) + "fi",
		"cases":         "case a in " + fill("a) ls;; ") + "esac",
		"loops":         "g() { " + loops + "; }",
		"nested-loops":  nest("for a in 1 2 3 4 5 6 7 8; do ", "ls", "; done", 50),
		"while-loops":   nest("while ls; do ", "ls", "; done", 50),
		"sed":           "sed '" + fill("s/a/b/;") + "' f",
		"sed-open":      "sed '" + fill("{") + "' f",
		"awk":           "awk '" + fill("{print}") + "' f",
		"awk-nested":    "awk '" + fill("(") + "' f",
		"awk-regexes":   "awk '" + fill("/a/ ") + "' f",
		"jq":            "jq '" + fill(".a|") + ".' f",
		"find":          "find . " + fill("-name a "),
		"find-exec":     "find . " + fill("-exec ls \\; "),
		"options":       "ls " + fill("-l "),
		"cluster":       "ls -" + fill("l"),
		"wrapped":       fill("env "),
		"wrapped-sh":    fill("sh -c "),
		"evals":         "x='" + half + "'; " + strings.Repeat(`eval "$x";`, 20_000),
		"eval-comments": "x='#" + half + "'; " + strings.Repeat(`eval "$x";`, 20_000),
		"eval-quotes":   "x=': \"" + strings.Repeat(`\\`, 100_000) + "\"'; " + strings.Repeat(`eval "$x";`, 20_000),
		"split":         "x='" + strings.Repeat("a ", 200_000) + "'; " + strings.Repeat("echo $x;", 20_000),
		"doubling":      "x=aaaaaaaa;" + strings.Repeat("x=$x$x$x$x;", 200),
		"doubling-args": "x='a a a a';" + strings.Repeat("x=\"$x $x $x\";", 60) + "echo $x",
		"sed-scripts":   "x='" + strings.Repeat("s/a/b/;", 60_000) + "'; " + strings.Repeat(`sed "$x" f;`, 20_000),
		"awk-scripts":   "x='" + strings.Repeat("{print}", 60_000) + "'; " + strings.Repeat(`awk "$x" f;`, 20_000),
		"long-words":    strings.Repeat("echo "+strings.Repeat("a", 1000)+";", 1000),
		"unicode":       "echo " + fill("é€😀"),
		"nul":           fill("\x00"),
		"invalid":       fill("\xff"),
		"spaces":        fill(" "),
		"blank-lines":   fill("\n"),
		"extglob":       "echo " + fill("@(a|"),
		"tests":         "[[ " + fill("( ") + " ]]",
		"test-ors":      "[[ a" + fill(" || b") + " ]]",
		"declares":      fill("declare a=b;"),
		"arrays":        "a=(" + fill("[1]=b ") + ")",
		"process":       fill("<("),
		"too-long":      strings.Repeat("a", classify.MaxText+1),
	}
	// As many parts as a long text may have, and padding up to a MiB.
	for _, piece := range []string{"ls;", "ls\n", "echo $x;", "`ls`;", "$(ls);", "echo {a,b};", "echo 'a'\"b\";", "a=b;", "cat <<<a;", "cat <<E\na\nE\n", "[[ a ]];", "((a++));", "f() { ls; };",
		"case a in a) ;; esac;", "echo ${x:-a};", "if ls; then ls; fi;", "ls|", "ls&&", "for a in b c d e f g h i; do ls; done;", "eval ls;", "sh -c ls;", "sed p f;", "awk 1 f;", "find . -name a;",
		"env ls;", "x=$x$x;", "echo $((1+1));", "cd a;", "ls>a;", "export LC_ALL=C;", "declare a=b;", "a+=b;", "echo a\\\n;"} {
		parts := 0
		for i := range len(piece) {
			if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzE1_", rune(piece[i])) {
				parts++
			}
		}
		for share, most := range map[string]int{"most": 39_000, "half": 19_000} {
			text := strings.Repeat(piece, most/max(1, parts))
			texts["dense-"+share+" "+piece] = text + "ls '" + strings.Repeat("a", max(0, classify.MaxText-len(text)-8)) + "'"
		}
	}
	return texts
}

// TestB11WorstIsBoundedG9: no text of a MiB needs much memory, and none that is over a limit is local.
func TestB11WorstIsBoundedG9(t *testing.T) {
	for name, text := range worst() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := classify.Shell(text, "/workspace")
			runtime.ReadMemStats(&after)
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 64 {
				t.Errorf("allocated %d MiB, want no more than 64", mib)
			}
			wellFormed(t, text, r)
		})
	}
}

// TestB11LimitsG9: what is over a limit is not local, with a reason of its own, as a text and as a command line.
func TestB11LimitsG9(t *testing.T) {
	tests := []struct{ name, text, rule string }{
		{"list of 10,000 parts", strings.Repeat("ls -l;", 10_000), "limit-nodes"},
		{"more than 1 MiB", "echo " + strings.Repeat("a", classify.MaxText), "limit-text"},
		{"brackets 5,000 deep", strings.Repeat("(", 5000) + "ls" + strings.Repeat(")", 5000), "limit-depth"},
		{"substitutions 5,000 deep", strings.Repeat("echo $(", 5000) + "ls" + strings.Repeat(")", 5000), "limit-depth"},
		{"commands in commands", strings.Repeat("env ", classify.MaxWraps+1) + "ls", "limit-wraps"},
		{"shells in shells", strings.Repeat("eval ", classify.MaxWraps+1) + "ls", "limit-wraps"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := classify.Shell(tt.text, "/workspace")
			if r.Class == classify.Local || !hasRule(r, tt.rule) {
				t.Errorf("%s for %.3v, want %s", r.Class, r.Reasons, tt.rule)
			}
		})
	}
	long := classify.Observed{Argv: []string{"echo", strings.Repeat("a", classify.MaxText)}}
	if r := classify.Argv(long); r.Class == classify.Local || !hasRule(r, "limit-text") {
		t.Errorf("a long command line is %s for %v", r.Class, r.Reasons)
	}
	deep := classify.Observed{Argv: []string{"sh", "-c", strings.Repeat("(", 5000) + "ls" + strings.Repeat(")", 5000)}}
	if r := classify.Argv(deep); r.Class == classify.Local || !hasRule(r, "limit-depth") {
		t.Errorf("a deep command line is %s for %v", r.Class, r.Reasons)
	}
	many := classify.Observed{Argv: strings.Fields(strings.Repeat("echo ", classify.MaxNodes+1))}
	if r := classify.Argv(many); r.Class == classify.Local || !hasRule(r, "limit-nodes") {
		t.Errorf("a command line of many words is %s for %v", r.Class, r.Reasons)
	}
}

func hasRule(r classify.Result, rule string) bool {
	for _, reason := range r.Reasons {
		if reason.Rule == rule {
			return true
		}
	}
	return false
}

// TestCutG9: facts tell that they are not all, also where no reason is left to tell it.
func TestCutG9(t *testing.T) {
	many := func(f func(i int) string) string {
		var b strings.Builder
		for i := range 300 {
			b.WriteString(f(i))
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"hosts":   many(func(i int) string { return fmt.Sprintf("curl a%d.example;", i) }),
		"URLs":    "curl" + many(func(i int) string { return fmt.Sprintf(" http://a.example/%d", i) }),
		"files":   "cat" + many(func(i int) string { return fmt.Sprintf(" f%d", i) }),
		"reasons": many(func(i int) string { return fmt.Sprintf("nc h%d 1;", i%10) }) + strings.Repeat("ls;", classify.MaxNodes),
	} {
		if !classify.Shell(text, "/workspace").Facts.Cut {
			t.Errorf("%s are said to be all", name)
		}
	}
	if text := "curl" + strings.Repeat(" http://a.example/", 100); classify.Shell(text, "/workspace").Facts.Cut {
		t.Error("one URL is said to be too many")
	}
}
