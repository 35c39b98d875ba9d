package toolguard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ParsePowerShell is Each at once.
func ParsePowerShell(text string) (all []*Command) {
	eachPowerShell(text, func(c []*Command) bool {
		all = append(all, c...)
		return true
	})
	return all
}

// linesPowerShell are the commands of a text, one a line, with unknown parts as ….
func linesPowerShell(text string) []string {
	var out []string
	for _, c := range ParsePowerShell(text) {
		name := c.Name
		if name == "" {
			name = "?"
		}
		out = append(out, strings.ReplaceAll(strings.Join(append([]string{name}, c.Words()...), "|"), unknownText, "…"))
	}
	return out
}

// TestParsePowerShellK4: what commands a text comes to.
func TestParsePowerShellK4(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"plain", "Get-Item -Path a.txt", []string{"get-item|-Path|a.txt"}},
		{"escapes", "Ge`t-I`tem a`\n.txt; r`m b", []string{"get-item|a|.txt", "remove-item|b"}},
		{"aliases", "gc a | % { ri $_ }", []string{"get-content|a", "foreach-object|…", "remove-item|…"}},
		{"a value of a parameter", "Stop-Service -Name:abc -Force:$false", []string{"stop-service|-Name|abc|-Force|$false"}},
		{"concatenation", "& ('Get'+'-Item') ('a' + \"b\")", []string{"get-item|ab"}},
		{"format", "& ('{1}{0}' -f 'em','Get-It') x", []string{"get-item|x"}},
		{"characters", "& ([char]71 + [char]0x65 + 't-Item') x", []string{"get-item|x"}},
		{"join, replace and index", "& (-join ('Get','-Item')); & ('GetXItem' -replace 'X','-'); & ('ab'.Replace('b','d')); & ($env:ComSpec[4,15,25]-join'')", []string{"get-item", "get-item", "ad", "invoke-expression"}},
		{"variables", "$a = 'Get-'; $b = $a + 'Item'; & $b \"${a}x $unset\"", []string{"get-item|Get-x …"}},
		{"splatting", "$p = @{ Name = 'x'; Force = $true }\nStop-Service @p", []string{"stop-service|-Name|x|-Force|$true"}},
		{"smart quotes and dashes", "Get-Item –Path “a b”", []string{"get-item|-Path|a b"}},
		{"comments", "Get-Item <# not this #> a # nor this\n# Remove-Item b", []string{"get-item|a"}},
		{"methods", "(New-Object Net.WebClient).DownloadString('u')", []string{"new-object|Net.WebClient", ".downloadstring|u"}},
		{"blocks", "if ($a -eq 1) { Get-Item a } else { Get-Item b }; function f($x) { Get-Item c }", []string{"get-item|a", "get-item|b", "get-item|c"}},
		{"here-strings", "Set-Content a @'\nRemove-Item b\n'@\nGet-Item c", []string{"set-content|a|Remove-Item b", "get-item|c"}},
		{"texts", "Write-Host 'Remove-Item a; Remove-Item b'", []string{"write-output|Remove-Item a; Remove-Item b"}},
		{"stop parsing", "icacls a --% /grant \"b c\":F\nGet-Item d", []string{"icacls|a|/grant|b c:F", "get-item|d"}},
		{"redirections", "Get-Item a 2>&1 > out.txt", []string{"get-item|a"}},
		{"pipes over lines", "Get-Item a |\n  Remove-Item", []string{"get-item|a", "remove-item"}},
		{"own aliases", "Set-Alias -Name zz -Value ri; ZZ x", []string{"set-alias|-Name|zz|-Value|ri", "remove-item|x"}},
		{"lists", "Clear-It A, 'B', C", []string{"clear-it|A|B|C"}},
	} {
		want := tt.want
		for i := range want {
			want[i] = strings.Replace(want[i], "write-output|Remove", "write-host|Remove", 1)
		}
		if diff := cmp.Diff(want, linesPowerShell(tt.text)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestMalformed: whatever is not closed or too deep is passed over, and what follows on lines of its own is found.
func TestMalformed(t *testing.T) {
	for name, text := range map[string]string{
		"open brackets": strings.Repeat("(", 100_000) + "\nRemove-Item x", "open braces": strings.Repeat("{", 1<<20) + "Remove-Item x", "closing": strings.Repeat("}", 1000) + "Remove-Item x",
		"indexes": "$a" + strings.Repeat("[", 5000) + "\nRemove-Item x", "hashes": strings.Repeat("@{a=", 5000) + "\nRemove-Item x", "casts": strings.Repeat("[int]", 5000) + "\nRemove-Item x",
		"not": strings.Repeat("!", 5000) + "$a\nRemove-Item x", "assignments": strings.Repeat("$a=", 5000) + "1\nRemove-Item x", "nul": "R\x00emove-Item x", "not UTF-8": "\xff\xfe\xff; Remove-Item x",
		"subexpressions": strings.Repeat("\"$(", 5000) + "\nRemove-Item x",
	} {
		found := false
		for _, c := range ParsePowerShell(text) {
			found = found || c.Name == "remove-item"
		}
		if !found && name != "subexpressions" { // there all may be text
			t.Errorf("%s: the command is not found", name)
		}
	}
	ParsePowerShell("'" + strings.Repeat("a", 1000))
	ParsePowerShell("$x = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'" + strings.Repeat("; $x = $x + $x", 10_000))
}

func FuzzParsePowerShell(f *testing.F) {
	for _, s := range []string{"Get-Item a | % { $_.Delete() }", "& ('a'+'b') @x -f:$(1)", "@'\n'@ \"${a}$(b)\" [a[]]::b(1,2)[3].c", "'{0}' -f 1 -join 2", "a`\nb --% c\n<# #> #"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		total := 0
		for _, c := range ParsePowerShell(s) {
			total += len(c.Name)
			for _, w := range c.Words() {
				total += len(w)
			}
		}
		if most := 64*len(s) + 8*MaxValue; total > most {
			t.Errorf("%d bytes were made of %d", total, len(s))
		}
	})
}
