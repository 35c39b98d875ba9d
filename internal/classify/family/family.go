package family

import "weir/internal/classify/table"

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
	{"transfer", "Transfer over the network", transferCommands},
	{"packages", "Packages", packageCommands},
	{"runtime", "Languages, and programs that run others", runtimeCommands},
	{"build", "Building and testing", buildCommands},
	{"container", "Containers, clusters and machines", containerCommands},
}
