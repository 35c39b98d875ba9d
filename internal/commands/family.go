package commands

// Family is a group of commands that belong together.
type Family struct {
	Name     string // "text", "git"
	Title    string // for people
	Commands []*Command
}

// Families has all families, in the order of the documentation.
var Families = []Family{
	{"text", "Reading and shaping text", textCommands},
	{"search", "Finding", searchCommands},
	{"files", "Files and directories", fileCommands},
	{"system", "The machine", systemCommands},
	{"wrap", "Commands that run a command", wrapCommands},
	{"builtin", "Builtins of the shell", builtinCommands},
	{"git", "Git", gitCommands},
	{"transfer", "Transfer over the network", transferTools},
	{"packages", "Packages", packageTools},
	{"runtime", "Languages, and programs that run others", runtimeTools},
	{"build", "Building and testing", buildTools},
	{"container", "Containers, clusters and machines", containerTools},
}
