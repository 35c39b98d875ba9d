package toolguard

import (
	"slices"
	"strings"
)

// encodes says whether PowerShell would read a word as -EncodedCommand: any abbreviation, with a dash or a slash.
func encodes(w string) bool {
	if len(w) < 2 || w[0] != '-' && w[0] != '/' {
		return false
	}
	w, _, _ = strings.Cut(strings.ToLower(strings.TrimLeft(w, "-/")), ":")
	return w != "" && (strings.HasPrefix("encodedcommand", w) || w == "ec" || strings.HasPrefix("encodedarguments", w) && len(w) > 7 || w == "ea")
}

// runsEncoded is met by PowerShell with an encoded command among its options.
func runsEncoded(c *Command) bool {
	for i := 0; i < len(c.Args); i++ {
		switch w := c.Args[i].Text; {
		case encodes(w):
			return true
		case IsCommandText(w):
			return false
		case w != "" && w[0] != '-' && w[0] != '/' && (i == 0 || !strings.HasPrefix(c.Args[i-1].Text, "-")):
			return false
		}
	}
	return false
}

// IsCommandText says whether PowerShell would read a word as -Command or -File: the rest is a script then.
func IsCommandText(w string) bool {
	if len(w) < 2 || w[0] != '-' && w[0] != '/' {
		return false
	}
	w = strings.ToLower(strings.TrimLeft(w, "-/"))
	return w != "" && (strings.HasPrefix("command", w) || strings.HasPrefix("file", w) || w == "cwa" || w == "commandwithargs")
}

var builtinNames = []string{"administrator", "guest", "anonymous logon", "system", "local system", "defaultaccount"}

// alike says whether the name of an account can be taken for one of the built-in ones, or is hidden from lists.
func alike(w string) bool {
	name := strings.ToLower(strings.Join(strings.Fields(w), " "))
	return slices.Contains(builtinNames, name) && !strings.EqualFold(w, name) || strings.HasSuffix(w, "$") && !strings.ContainsAny(w, `\ `)
}
