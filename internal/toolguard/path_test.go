package toolguard

import (
	"strings"
	"testing"
)

// TestMatchK7: one file under its many names, and what is not it.
func TestMatchK7(t *testing.T) {
	const sam, shadow = "**/windows/system32/config/sam", "/etc/shadow"
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{sam, `C:\Windows\System32\config\SAM`, true},
		{sam, `c:/windows/system32/CONFIG/sam`, true},
		{sam, `C:\Windows\Temp\..\System32\.\config\\SAM`, true},
		{sam, `\\?\C:\Windows\System32\config\SAM`, true},
		{sam, `\\.\C:\Windows\System32\config\SAM`, true},
		{sam, `\??\C:\Windows\System32\config\SAM`, true},
		{sam, `//?/C:/Windows/System32/config/SAM`, true},
		{sam, `\\?\GLOBALROOT\Device\HarddiskVolumeShadowCopy12\Windows\System32\config\SAM`, true},
		{sam, `\\localhost\C$\Windows\System32\config\SAM`, true},
		{sam, `\\127.0.0.1\admin$\System32\config\SAM`, true},
		{sam, `\\?\UNC\host\C$\Windows\System32\config\SAM`, true},
		{sam, `C:\Windows\System32\config\SAM::$DATA`, true},
		{sam, `C:\Windows\System32\config\SAM:stream`, true},
		{sam, `C:\Windows\System32\config\SAM. . .`, true},
		{sam, `C:\Windows.\System32 \config\SAM`, true},
		{sam, `C:\WINDOW~1\SYSTEM~1\config\SAM`, true}, // names of eight letters have no short one: nobody misses it
		{sam, `%SystemRoot%\System32\config\SAM`, true},
		{sam, `$env:windir\System32\config\SAM`, true},
		{sam, `file:///C:/Windows/System32/config/SAM`, true},
		{sam, "  \"C:\\Windows\\System32\\config\\SAM\"\n", true},
		{sam, `C:\Windows\System32\config\SA*`, true},
		{sam, `C:\Windows\System32\config\SAMPLE`, false},
		{sam, `C:\Windows\System32\config`, false},
		{sam, `C:\Windows\System32\config\SAM\..\DRIVERS`, false},
		{"**/user data/*/login data", `C:\Users\d\AppData\Local\Google\Chrome\USERDA~1\Default\LOGIND~1`, true},
		{"**/ntds.dit", `D:\copy\NTDS.DIT`, true},
		{shadow, "/etc/shadow", true},
		{shadow, "/etc//./shadow", true},
		{shadow, "/var/../etc/shadow", true},
		{shadow, "../../../../etc/shadow", true},
		{shadow, "etc/shadow/", true},
		{shadow, strings.Repeat("/.", 50_000) + "/etc/shadow", true}, // F32
		{shadow, "/etc/shadow\x00.txt", false},
		{shadow, "/etc/shadows", false},
		{shadow, "/home/d/etc/shadow", false},
		{"**/.ssh/id_rsa", "~/.ssh/id_rsa", true},
		{"**/.ssh/id_rsa", "~root/.ssh/id_rsa", true},
		{"**/.ssh/id_rsa", "$HOME/.ssh/id_rsa", true},
		{"**/.ssh/id_rsa", "~/.ssh/id_rsa.pub", false},
		{"/run/secrets/**", "/run/secrets", false},
		{"/run/secrets/**", "/run/secrets/a/b", true},
	} {
		if got := matchesAny([]string{tt.pattern}, tt.path); got != tt.want {
			t.Errorf("%s, %.100q (%.100s): %v", tt.pattern, tt.path, cleanPath(tt.path), got)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{`\\?\C:\a\..\b`, "/etc/./x:y", `\\h\c$\..`, "~/a", "C:a.. "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := cleanPath(s)
		if p == "" || p[0] != '/' {
			t.Errorf("%q: %q", s, p)
		}
		matchesAny([]string{"**/a/*/b*"}, s)
	})
}
