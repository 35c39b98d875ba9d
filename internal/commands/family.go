package commands

import "strings"

// Family is a group of commands that belong together.
type Family struct {
	Name     string // "text", "git"
	Title    string // for people
	Commands []*Command
}

// Families has all families, in the order of the documentation.
func Families() []Family { return known().families }

// Lookup finds a command by its name without a path, nil when it is not known.
func Lookup(name string) *Command {
	k := known()
	if c := k.plain[name]; c != nil {
		return c
	}
	base := strings.TrimRight(name, "0123456789.")
	if base == name {
		return nil
	}
	if c := k.versioned[base]; c != nil {
		return c
	}
	return k.versioned[strings.TrimSuffix(base, "-")]
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
