package family

import (
	"weir/internal/classify/family/network"
	"weir/internal/classify/table"
)

// Family is a group of commands that belong together.
type Family struct {
	Name     string // "text", "git"
	Title    string // for people
	Commands []*table.Command
}

// All are all families, in the order of the documentation.
var All = []Family{
	{"text", "Reading and shaping text", textCommands},
	{"search", "Finding", searchCommands},
	{"files", "Files and directories", fileCommands},
	{"system", "The machine", systemCommands},
	{"wrap", "Commands that run a command", wrapCommands},
	{"builtin", "Builtins of the shell", builtinCommands},
	{"git", "Git", gitCommands},
	{"transfer", "Transfer over the network", network.Transfer},
	{"packages", "Packages", network.Packages},
	{"runtime", "Languages, and programs that run others", network.Runtime},
	{"build", "Building and testing", network.Build},
	{"container", "Containers, clusters and machines", network.Container},
}
