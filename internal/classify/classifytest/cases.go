package classifytest

import "slices"

// Case is a command whose class is known.
type Case struct {
	// ID names the requirement or the way out that it is a case of.
	ID   string
	Text string
	// Class is local, network, grey, or "not local" for either of these two.
	Class string
	// Fires names the shells (b for bash, d for dash) in which it was seen to start a stub or ask for a socket; TestHostileCases does
	// it again. Some need a program that may be missing, or only write.
	Fires string
}

const notLocal = "not local"

// Cases are all of them.
func Cases() []Case {
	var out []Case
	for _, text := range localCases {
		out = append(out, Case{"G5", text, "local", ""})
	}
	return slices.Concat(out, toolCases, shellCases, nameCases, writeCases)
}
