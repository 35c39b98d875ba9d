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
	{"transfer", "Transfer over the network", transferCommands},
}
