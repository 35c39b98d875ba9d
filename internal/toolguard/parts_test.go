package toolguard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParts: a text is cut where nothing is open, and nowhere else.
func TestParts(t *testing.T) {
	for _, want := range [][]string{
		{"a b\n", "c\n", "d"},
		{"if a; then\n b\nelse\n c\nfi > x\n", "d\n"},
		{"for x in 1 2\ndo\n a $x\ndone | b\n", "c\n"},
		{"while read l; do a; done < f\n", "until b\ndo c\ndone\n", "d\n"},
		{"a |\n b &&\n# so\n\n c\n", "d\n"},
		{"a \\\n b\n", "c\n"},
		{"echo 'a\nb' \"c\nd\" # it's\n", "e\n"},
		{"x=$(a\nb | c\n)\n", "y=\"$(\nd \"e\"\n) f\"\n", "g\n"},
		{"(a\nb)\n", "{ a\nb\n}\n", "f() {\n a\n}\n", "g ()\n{\n a\n}\n", "b\n"},
		{"case $1 in\n a|b) c\n d ;;\n (e) if f; then g; fi;;\n *) h ;;\nesac | i\n", "case x in esac\n", "j\n"},
		{"a=(b\n c # d\n 'e')\n", "f\n"},
		{"cat <<E > f\nif (\nE\n", "g <<-'H' | i\n\t$(j\n\tH\n", "k\n"},
		{"[[ $a == b ]] && c\n", "echo if done } in\n", "e 2>&1 &\n", "f &> g; h >| i\n", "diff <(a\nb) c\n", "! true\n", "d <<< x\n"},
		{"a\n", "((b = 1 << 2))\nc\n"}, {"a\n", "b `c\nd`\ne\n"}, {"a\n", "echo $'b'\nc\n"}, {"a\n", "fi\nb\n"}, {"a\n", "cat <<E\n$(b\nE\n)\nE\nc\n"}, {"a\n", "function f {\nb\n}\nc\n"},
	} {
		if diff := cmp.Diff(want, partsPOSIX(strings.Join(want, ""))); diff != "" {
			t.Errorf("%q: %s", strings.Join(want, ""), diff)
		}
	}
}
