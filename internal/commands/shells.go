package commands

import "strings"

// Shells are those that read the language of POSIX shells, or nearly.
const Shells = "sh bash dash zsh ksh ash fish rbash rksh rzsh mksh lksh pdksh oksh posh yash hush osh"

// IsShell tells whether a program, by its name without a directory, is one of them; a version may stand behind it (bash-5.2, ksh93).
func IsShell(name string) bool { return Listed(Shells, strings.TrimRight(name, "0123456789.-")) }

// ShellText finds the text that a shell runs (sh -c TEXT) among the words behind its name. Where there is none, at is that of a script, or the
// number of words. An option that takes a value may stand behind -c, too.
func ShellText(words []string) (at int, ok bool) {
	for ; at < len(words); at++ {
		w := words[at]
		switch {
		case w == "-" || w == "--":
			return at + 1, ok && at+1 < len(words)
		case w == "--rcfile" || w == "--init-file":
			at++
		case strings.HasPrefix(w, "--"):
		case len(w) > 1 && (w[0] == '-' || w[0] == '+'):
			ok = ok || w[0] == '-' && strings.Contains(w, "c")
			if strings.ContainsAny(w, "oO") {
				at++
			}
		default:
			return at, ok
		}
	}
	return len(words), false
}
