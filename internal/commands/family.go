package commands

import (
	"strings"
	"sync"
)

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

// index makes two maps: every command by name, and those whose names may end in a version (python3.11).
var index = sync.OnceValues(func() (plain, versioned map[string]*Command) {
	plain, versioned = make(map[string]*Command, 1024), make(map[string]*Command, 64)
	for _, f := range Families {
		for _, c := range f.Commands {
			for name := range strings.FieldsSeq(c.Names) {
				if base, ok := strings.CutSuffix(name, "#"); ok {
					versioned[base], name = c, base
				}
				plain[name] = c
			}
		}
	}
	return plain, versioned
})

// Lookup finds a command by its name without a path, nil when it is not known.
func Lookup(name string) *Command {
	plain, versioned := index()
	if c := plain[name]; c != nil {
		return c
	}
	base := strings.TrimRight(name, "0123456789.")
	if base == name {
		return nil
	}
	if c := versioned[base]; c != nil {
		return c
	}
	return versioned[strings.TrimSuffix(base, "-")]
}

// Subcommand finds one by its name, nil when it is not known, or c is not.
func (c *Command) Subcommand(name string) *Command {
	if c != nil {
		for _, s := range c.Sub {
			if Listed(s.Names, name) {
				return s
			}
		}
	}
	return nil
}
