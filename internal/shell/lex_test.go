package shell

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/commands"
)

// TestBraces: only plain lists in braces are followed.
func TestBraces(t *testing.T) {
	for _, tt := range []struct {
		word string
		want []string
	}{
		{"a{b,c}", []string{"ab", "ac"}}, {"f{,.bak}", []string{"f", "f.bak"}}, {"{a,b}{c,d}", []string{"ac", "ad", "bc", "bd"}},
		{"{a}", nil}, {"{1..3}", nil}, {"{a,{b,c}}", nil}, {"{a,b", nil}, {"{a*,b}", nil}, {strings.Repeat("{a,b}", 6), nil},
		{strings.Repeat("{a,b}", 1000), nil},
	} {
		got, ok := Braces(tt.word)
		if !ok {
			got = nil
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Braces(%.40q): %s", tt.word, diff)
		}
	}
}

// TestBuilder: quotes, wildcards and what is not known.
func TestBuilder(t *testing.T) {
	for _, tt := range []struct {
		lit  string
		want commands.Word
	}{
		{`a\ b`, commands.Word{Text: "a b", Fixed: true}}, {`\-x`, commands.Word{Text: "-x", Fixed: true}}, {`src/*.go`, commands.Word{Text: "src/", Glob: true}},
		{`\*`, commands.Word{Text: "*", Fixed: true}}, {`[a`, commands.Word{Text: "[a", Fixed: true}}, {`[a]`, commands.Word{Glob: true}}, {`a?`, commands.Word{Text: "a", Glob: true}},
	} {
		var b Builder
		b.Lit(tt.lit)
		if diff := cmp.Diff(tt.want, b.Word()); diff != "" {
			t.Errorf("%q: %s", tt.lit, diff)
		}
	}
}

// TestParse (B09, B11): what is refused before it is walked.
func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, text, rule string }{
		{"plain", "ls | wc", ""}, {"carriage return", "ls\rx", "syntax"}, {"nul", "ls\x00", "syntax"}, {"not UTF-8", "ls \xff", "syntax"},
		{"not closed", "ls '", "syntax"}, {"deep", strings.Repeat("(", 5000), "limit-depth"},
		{"a long list", strings.Repeat("ls;", 50_000), "limit-nodes"}, {"a long text", "echo '" + strings.Repeat("a b ", 50_000) + "'", ""},
		{"a long document", "cat <<'E'\n" + strings.Repeat("a b\n", 50_000) + "E\n", ""},
	} {
		_, refused := Parse(tt.text)
		got := ""
		if refused != nil {
			got = refused.Rule
		}
		if got != tt.rule {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.rule)
		}
	}
}

// TestEarly: no line of a here-document may begin like its end.
func TestEarly(t *testing.T) {
	for _, tt := range []struct {
		body string
		tabs bool
		want bool
	}{
		{"a\nE", false, false}, {"Ex\nE", false, true}, {"\tE\nE", false, false}, {"\tE\nE", true, true}, {"E", false, false},
	} {
		if got := Early(tt.body, "E", tt.tabs); got != tt.want {
			t.Errorf("Early(%q, %v) = %v, want %v", tt.body, tt.tabs, got, tt.want)
		}
	}
}
