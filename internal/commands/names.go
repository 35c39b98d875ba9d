package commands

import (
	"slices"
	"strings"
)

// A variable can change what runs (PATH, LD_PRELOAD) or be code itself (RANDOM in an
// assignment, PS4). So names are accepted, not refused.

// HarmlessEnv may be set for any command, with a value that locale and time functions
// only look up.
func HarmlessEnv(name, value string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ":
	case "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS", "LINES", "CI":
		return plainValue(value)
	case "PAGER", "GIT_PAGER", "GH_PAGER", "MANPAGER":
		return value == "cat"
	case "GIT_EDITOR":
		return value == "true"
	case "TERM":
		return plainValue(value) && !strings.Contains(value, "/")
	default:
		switch strings.TrimPrefix(name, "LC_") {
		case "ALL", "ADDRESS", "COLLATE", "CTYPE", "IDENTIFICATION", "MEASUREMENT", "MESSAGES", "MONETARY", "NAME", "NUMERIC",
			"PAPER", "TELEPHONE", "TIME":
			if !strings.HasPrefix(name, "LC_") {
				return false
			}
		default:
			return false
		}
	}
	if name == "TZ" {
		return plainValue(value) && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, ":") && !strings.Contains(value, "..")
	}
	return plainValue(value) && !strings.Contains(value, "/")
}

func plainValue(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(Letter(c) || c >= '0' && c <= '9' || strings.IndexByte("_.,:+-@/<>", c) >= 0) {
			return false
		}
	}
	return true
}

// Assignable tells whether a variable of this shell may be assigned, when its name is
// plain. Names in lower case are the text's own; of those in upper case only those that
// no accepted program and no shell reads.
func Assignable(name string) bool {
	if !PlainName(name) {
		return false
	}
	for i := range len(name) {
		if name[i] >= 'a' && name[i] <= 'z' {
			return !strings.HasPrefix(name, "BASH_FUNC_") && !strings.HasPrefix(name, "LD_") && !strings.HasSuffix(name, "_proxy") &&
				name != "histchars" && name != "auto_resume"
		}
	}
	return !dangerous(name)
}

// dangerous tells whether a variable is known to change what runs, or to be more than
// a variable.
func dangerous(name string) bool {
	if Listed(Table("dangerous")["names"], name) {
		return true
	}
	for prefix := range strings.FieldsSeq(Table("dangerous")["prefixes"]) {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "_PROXY") || strings.HasSuffix(name, "_PAGER") || strings.HasSuffix(name, "_OPTIONS")
}

// Inherited tells whether a variable that an observed program was started with is
// harmless, by its name and, when the name alone does not say, its value.
func Inherited(name, value string, hasValue bool) bool {
	if HarmlessEnv(name, value) {
		return true
	}
	switch name {
	case "PWD", "OLDPWD", "USER", "LOGNAME", "HOSTNAME", "SHLVL", "_", "TERM", "COLORTERM", "DISPLAY", "MAIL":
		return true
	case "HOME":
		return hasValue && (value == "/root" || strings.HasPrefix(value, "/home/")) && !strings.Contains(value, "..")
	case "SHELL":
		return value == "/bin/bash" || value == "/bin/sh" || value == "/usr/bin/bash" || value == "/usr/bin/sh"
	case "PATH":
		return hasValue && !slices.ContainsFunc(strings.Split(value, ":"), func(dir string) bool {
			return !Listed("/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /usr/games /usr/local/games /snap/bin", dir)
		})
	}
	return false
}

// Letter tells whether c is a letter of ASCII.
func Letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// PlainName tells whether s is the name of a variable, without a subscript.
func PlainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(Letter(c) || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

// Quote gives a variable's name for a sentence, when it is short enough to be one.
func Quote(name string) string {
	if name == "" || len(name) > 40 {
		return "a variable"
	}
	return name
}

// IsNumber tells whether s is a decimal integer, which arithmetic reads as itself.
func IsNumber(s string) bool {
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	return Digits(s) && len(s) < 18
}

// HostPart is the host of host:port, user@host or [address]:port; an address of IPv6 may stand without brackets.
func HostPart(s string) string {
	s = s[strings.LastIndexByte(s, '@')+1:]
	if rest, ok := strings.CutPrefix(s, "["); ok {
		s, _, _ = strings.Cut(rest, "]")
	} else if strings.Count(s, ":") == 1 {
		s, _, _ = strings.Cut(s, ":")
	}
	return s
}
