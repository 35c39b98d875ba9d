package toolguard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func linesPOSIX(text string) (out []string) {
	Reader{}.eachPOSIX(text, func(all []*Command) bool {
		for _, c := range all {
			line := strings.Join(append([]string{c.Name}, c.Words()...), "|")
			for _, w := range c.Writes {
				line += ">" + w.Text
			}
			for _, r := range c.Reads {
				line += "<" + r.Text
			}
			if c.From != nil {
				line = c.From.Name + "=>" + line
			}
			out = append(out, strings.ReplaceAll(line, unknownText, "…"))
		}
		return true
	})
	return out
}

// TestEachK5: words in their place, whatever quotes them.
func TestEachK5(t *testing.T) {
	for text, want := range map[string][]string{
		"/bin/rm -rf '/a b' \"c\"":   {"rm|-rf|/a b|c"},
		`r\m "-r"f $'\x2f'`:          {"rm|-rf|/"},
		"a | b && c; d & e":          {"a", "a=>b", "c", "d", "e"},
		"x=rm; $x -r $HOME/y $unset": {"rm|-r|~/y|…"},
		"x='rm -r'; $x y; \"$x\" y":  {"rm|-r|y", "rm -r|y"},
		"rm /{bin,etc}":              {"rm|/bin|/etc"},
		"if a; then b; else c; fi; for i in x; do d; done; (e; { f; })": {"a", "b", "c", "d", "e", "f"},
		"echo $(a b) <(c)":                              {"echo|…|…", "a|b", "c"},
		"cat > out <<E\nrm -rf /\nE":                    {"cat>out<rm -rf /\n"},
		"sh <<< 'a b'":                                  {"sh<a b"},
		"case x in a) b;; esac; f() { g; }; [[ $(h) ]]": {"b", "g", "h"},
		"a\nb 'c\nd":                                    {"a"},
		"# rm -rf /\na":                                 {"a"},
		"{ a; } > /x":                                   {"a>/x"},
		"> /x":                                          {">/x"},
	} {
		got := linesPOSIX(text)
		if strings.HasPrefix(text, "echo $(") { // what is inside comes first
			got = append(got[len(got)-1:], got[:len(got)-1]...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// TestCrowded: a text with more parts than the parser takes is read in pieces.
func TestCrowded(t *testing.T) {
	got := linesPOSIX(strings.Repeat("a;b;c;d;e\n", 30_000) + "rm -rf /")
	if n := len(got); n == 0 || got[n-1] != "rm|-rf|/" {
		t.Errorf("%d commands", n)
	}
}

func FuzzEach(f *testing.F) {
	for _, s := range []string{"a | b > c", "x=$(y); ${z:-w} \"$x\"", ":(){ :|:& };:", "cat <<E\n$(a)\nE", "{a,b}{c,d} [[ a ]]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_ = Reader{}.eachPOSIX(s, func(all []*Command) bool { return len(all) > 0 })
	})
}
