// Package cases is a table of commands whose class is known: what must be local, and ways in that must not be. It owns no code that
// judges or runs them.
package cases

import "slices"

// Case is a command whose class is known.
type Case struct {
	// ID names the requirement or the way out that it is a case of.
	ID   string
	Text string
	// Class is local, network, grey, or "not local" for either of these two.
	Class string
	// Fires names the shells (b for bash, d for dash) in which it was seen to start a stub or ask for a socket; TestCasesFire does
	// it again. Some need a program that may be missing, or only write.
	Fires string
}

// NotLocal is the class of a case that may be grey or network.
const NotLocal = "not local"

// All are all of them.
func All() []Case {
	var out []Case
	for _, text := range Local {
		out = append(out, Case{"G5", text, "local", ""})
	}
	return slices.Concat(out, toolCases, shellCases, nameCases, writeCases)
}
