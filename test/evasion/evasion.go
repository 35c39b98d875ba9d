package evasion

import (
	"regexp"
	"strings"
	"unicode"

	"weir/internal/toolguard"
)

// Way is one transformation; it gives nothing where it does not apply.
type Way struct {
	Name string
	Of   []toolguard.Dialect
	Do   func(d toolguard.Dialect, text string) string
}

// Ways are all of them.
func Ways() []Way {
	both := []toolguard.Dialect{toolguard.PowerShell, toolguard.Cmd}
	ps := []toolguard.Dialect{toolguard.PowerShell}
	cmd := []toolguard.Dialect{toolguard.Cmd}
	posix := []toolguard.Dialect{toolguard.POSIX}
	return []Way{
		{"case", both, func(_ toolguard.Dialect, s string) string { return flip(s) }},
		{"back-ticks", ps, func(_ toolguard.Dialect, s string) string { return inName(s, "`") }},
		{"carets", cmd, func(_ toolguard.Dialect, s string) string { return inName(s, "^") }},
		{"quotes in the name", cmd, func(_ toolguard.Dialect, s string) string { return inName(s, `""`) }},
		{"quotes in the name", ps, func(_ toolguard.Dialect, s string) string { return inName(s, "''") }},
		{"a variable", cmd, variable},
		{"aliases", ps, func(_ toolguard.Dialect, s string) string { return alias(s) }},
		{"abbreviated parameters", ps, func(_ toolguard.Dialect, s string) string { return abbreviate(s) }},
		{"concatenated name", ps, func(_ toolguard.Dialect, s string) string { return named(s, "& ('%s'+'%s')%s") }},
		{"formatted name", ps, func(_ toolguard.Dialect, s string) string { return named(s, `& ("{0}{1}" -f '%s','%s')%s`) }},
		{"reordered name", ps, func(_ toolguard.Dialect, s string) string { return reordered(s) }},
		{"name in a variable", ps, func(_ toolguard.Dialect, s string) string { return named(s, "$n = '%s' + '%s'; & $n%s") }},
		{"concatenated texts", ps, func(_ toolguard.Dialect, s string) string { return concatenate(s) }},
		{"white space", both, func(_ toolguard.Dialect, s string) string { return spread(s) }},
		{"Unicode dashes", ps, func(_ toolguard.Dialect, s string) string { return dashes(s) }},
		{"smart quotes", ps, func(_ toolguard.Dialect, s string) string { return smart(s) }},
		{"cmd /c", both, commandC},
		{"powershell -Command", both, nested},
		{"comments", ps, func(_ toolguard.Dialect, s string) string { return comment(s) }},
		{"a path before the name", both, func(_ toolguard.Dialect, s string) string { return path(s) }},
		{"quotes in the name", posix, func(_ toolguard.Dialect, s string) string { return inName(s, "''") }},
		{"a backslash", posix, func(_ toolguard.Dialect, s string) string { return inName(s, `\`) }},
		{"white space", posix, func(_ toolguard.Dialect, s string) string { return spread(s) }},
		{"bash -c", posix, func(_ toolguard.Dialect, s string) string {
			return "bash -c '" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}},
		{"a list before it", posix, func(_ toolguard.Dialect, s string) string { return "cd /tmp && true; " + s }},
		{"sudo and env", posix, func(_ toolguard.Dialect, s string) string {
			if !plainName.MatchString(s) || strings.HasPrefix(s, "eval ") || strings.HasPrefix(s, "source ") || strings.Contains(s, "()") {
				return ""
			}
			return "sudo -E env A=1 " + s
		}},
	}
}

// For are those that apply to a language.
func For(d toolguard.Dialect) []Way {
	var out []Way
	for _, w := range Ways() {
		for _, of := range w.Of {
			if of == d {
				out = append(out, w)
			}
		}
	}
	return out
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z][\w.-]*( |$)`)
	native    = regexp.MustCompile(`^(?i)(vssadmin|wmic|wbadmin|diskshadow|wevtutil|auditpol|bcdedit|reagentc|bootrec|certutil|bitsadmin|mshta|regsvr32|rundll32|msiexec|reg|net|sc|mpcmdrun|cipher|sdelete64|fsutil|ntdsutil|mimikatz|procdump|esentutl|powershell|pwsh|diskpart|format|tasklist)(\.exe)?( |$)`)
	quotedA   = regexp.MustCompile(`'([^'{}$]{4,})'`)
	parameter = regexp.MustCompile(` -([A-Z][a-z]+[A-Z][A-Za-z]{4,})`)
)

// flip turns the case of every letter around, but in texts that are compared as they are.
func flip(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// inName puts something into the middle of the first word.
func inName(s, what string) string {
	name := plainName.FindString(s)
	if len(name) < 4 {
		return ""
	}
	i := len(strings.TrimRight(name, " ")) / 2
	for what == "`" && strings.ContainsRune("0abefnrtuv", rune(unicode.ToLower(rune(s[i])))) {
		if i++; i >= len(name)-1 {
			return ""
		}
	}
	return s[:i] + what + s[i:]
}

func named(s, form string) string {
	name := strings.TrimRight(plainName.FindString(s), " ")
	if len(name) < 3 {
		return ""
	}
	i := len(name) / 2
	out := strings.Replace(form, "%s", name[:i], 1)
	out = strings.Replace(out, "%s", name[i:], 1)
	return strings.Replace(out, "%s", s[len(name):], 1)
}

func reordered(s string) string {
	name := strings.TrimRight(plainName.FindString(s), " ")
	if len(name) < 3 {
		return ""
	}
	i := len(name) / 2
	return "& ('{1}{0}'-f'" + name[i:] + "','" + name[:i] + "')" + s[len(name):]
}

func variable(_ toolguard.Dialect, s string) string {
	name := strings.TrimRight(plainName.FindString(s), " ")
	if name == "" {
		return ""
	}
	return "set p=" + name + "\r\n%p%" + s[len(name):]
}

var shorter = strings.NewReplacer("Invoke-Expression", "iex", "Invoke-WebRequest", "iwr", "Invoke-RestMethod", "irm", "Get-CimInstance", "gcim", "Remove-CimInstance", "rcim", "Get-WmiObject", "gwmi",
	"Remove-Item", "ri", "Set-Content", "sc", "Stop-Service", "spsv", "ForEach-Object", "%", "Get-Process", "gps", "Set-ItemProperty", "sp", "Get-Content", "gc", "Add-LocalGroupMember", "algm", "New-LocalUser", "nlu")

var longer = strings.NewReplacer("iex ", "Invoke-Expression ", "iwr ", "Invoke-WebRequest ", "irm ", "Invoke-RestMethod ", "gwmi ", "Get-WmiObject ", "| % {", "| ForEach-Object {")

func alias(s string) string {
	out := shorter.Replace(s)
	if out == s {
		out = longer.Replace(s)
	}
	if out == s {
		return ""
	}
	return out
}

func abbreviate(s string) string {
	out := parameter.ReplaceAllStringFunc(s, func(p string) string { return p[:len(p)-3] })
	if out == s {
		return ""
	}
	return out
}

func concatenate(s string) string {
	out := quotedA.ReplaceAllStringFunc(s, func(q string) string {
		i := len(q) / 2
		return "(" + q[:i] + "'+'" + q[i:] + ")"
	})
	if out == s {
		return ""
	}
	return out
}

// outside changes what is not in quotes.
func outside(s string, do func(r rune, b *strings.Builder)) string {
	var b strings.Builder
	quote := rune(0)
	for _, r := range s {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
			b.WriteRune(r)
		case r == '\'' || r == '"':
			quote = r
			b.WriteRune(r)
		default:
			do(r, &b)
		}
	}
	return b.String()
}

func spread(s string) string {
	return outside(s, func(r rune, b *strings.Builder) {
		if r == ' ' {
			b.WriteString(" \t  ")
			return
		}
		b.WriteRune(r)
	})
}

func dashes(s string) string {
	out := outside(s, func(r rune, b *strings.Builder) {
		if r == '-' && strings.HasSuffix(b.String(), " ") {
			r = '–'
		}
		b.WriteRune(r)
	})
	if out == s {
		return ""
	}
	return out
}

func smart(s string) string {
	out := strings.NewReplacer("'", "’", `"`, "”").Replace(s)
	if out == s {
		return ""
	}
	return out
}

func commandC(_ toolguard.Dialect, s string) string {
	if !native.MatchString(s) || strings.ContainsAny(s, "$|;") {
		return ""
	}
	return "cmd.exe /c " + s
}

func nested(d toolguard.Dialect, s string) string {
	switch {
	case d == toolguard.PowerShell && !strings.ContainsAny(s, "\"`"):
		return `powershell.exe -NoProfile -ExecutionPolicy Bypass -Command "` + strings.ReplaceAll(s, "$", "`$") + `"`
	case d == toolguard.Cmd && native.MatchString(s) && !strings.ContainsAny(s, `"%&|`):
		return `powershell -nop -c "` + s + `"`
	}
	return ""
}

func comment(s string) string {
	first := true
	out := outside(s, func(r rune, b *strings.Builder) {
		b.WriteRune(r)
		if r == ' ' && first {
			b.WriteString("<# about this #> ")
			first = false
		}
	})
	if first {
		return ""
	}
	return "# what follows\n" + out + " # done"
}

func path(s string) string {
	if !native.MatchString(s) {
		return ""
	}
	return `C:\Windows\System32\` + s
}
