package toolguard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ParseCmd is Each at once.
func ParseCmd(text string) (all []*Command) {
	eachCmd(text, func(c []*Command) bool {
		all = append(all, c...)
		return true
	})
	return all
}

func linesCmd(text string) []string {
	var out []string
	for _, c := range ParseCmd(text) {
		name := c.Name
		if name == "" {
			name = "?"
		}
		out = append(out, strings.ReplaceAll(strings.Join(append([]string{name}, c.Words()...), "|"), unknownText, "…"))
	}
	return out
}

// TestParseK4: what commands a text comes to.
func TestParseK4(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"plain", `copy a.txt "b c.txt"`, []string{"copy|a.txt|b c.txt"}},
		{"carets", "co^py a^&b c", []string{"copy|a&b|c"}},
		{"a caret at the end of a line", "copy a ^\r\n b", []string{"copy|a|b"}},
		{"lists", "copy a b & del c && echo d || type e", []string{"copy|a|b", "del|c", "echo|d", "type|e"}},
		{"brackets", "if exist a (\n del a\n) else (\n del b\n)", []string{"del|a", "del|b"}},
		{"conditions", `if not "%x%"=="a b" del c & if /i a==b del d & if 1 EQU 1 del e`, []string{"del|c", "del|d", "del|e"}},
		{"loops", "for %%f in (*.txt) do @del %%f", []string{"del|…f"}},
		{"variables", "set p=del\r\n%p% x %unknown%", []string{"set|p=del", "del|x|…"}},
		{"call and start", `call del a & start "title" /b del c`, []string{"del|a", "del|c"}},
		{"glued options", "del/f/q a", []string{"del|/f/q|a"}},
		{"comments", "rem del a\n:: del b\ndel c", []string{"del|c"}},
		{"redirections", "type a > b 2>&1", []string{"type|a"}},
		{"paths", `"C:\Program Files\x\tool.exe" a`, []string{"tool|a"}},
		{"echo", "echo del a", []string{"echo|del|a"}},
	} {
		if diff := cmp.Diff(tt.want, linesCmd(tt.text)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"if exist a (del b) else del c", "for /f %%i in ('dir') do x ^& y", "set a=%a%%a%\n%a% !b! > c", `start "" "a b" /c "d`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		total := 0
		for _, c := range ParseCmd(s) {
			for _, w := range c.Words() {
				total += len(w)
			}
		}
		if most := 64*len(s) + 8*MaxValue; total > most {
			t.Errorf("%d bytes were made of %d", total, len(s))
		}
	})
}
