package shell

import (
	"strings"
	"testing"
)

// FuzzParse (B09, B11): no text takes the stack; what is taken whole is taken in statements too, and all of it lies within the text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"ls | wc # x", "cat <<E\na\nE\n", strings.Repeat("(", 300), "a=$(b) c; d && e", "echo \"${x:-`y`}\"", "case a in b) c;; esac", "f() { g; }", "ls '", "\x00", "((a))", "[[ a =~ b ]]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		var failed error
		for _, err := range Stmts(text) {
			if n++; err != nil {
				failed = err
			}
		}
		file, refused := Parse(text)
		if refused != nil {
			if refused.Rule == "" || refused.Why == "" || refused.From < 0 || refused.To > len(text)+1 {
				t.Fatalf("refused with %+v", refused)
			}
			return
		}
		if failed != nil || n != len(file.Stmts) {
			t.Fatalf("%d statements, and one by one %d, %v", len(file.Stmts), n, failed)
		}
		for _, c := range Comments(file) {
			if c.From < 0 || c.To > len(text) || c.From >= c.To || text[c.From] != '#' {
				t.Fatalf("the comment %+v of %q", c, text)
			}
		}
	})
}
