package classify

import (
	"strings"

	"weir/internal/commands"
)

// index has every command by name, versioned those whose names may end in a version
// (python3.11). Both are never written after they are made.
var index, versioned = buildIndex()

func buildIndex() (plain, open map[string]*commands.Command) {
	plain, open = make(map[string]*commands.Command, 1024), make(map[string]*commands.Command, 64)
	for _, f := range commands.Families {
		for _, c := range f.Commands {
			for name := range strings.FieldsSeq(c.Names) {
				if base, ok := strings.CutSuffix(name, "#"); ok {
					open[base], name = c, base
				}
				plain[name] = c
			}
		}
	}
	return plain, open
}

// Lookup finds a command by its name without a path, nil when it is not known.
func Lookup(name string) *commands.Command {
	if c := index[name]; c != nil {
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

// Known tells whether a name is that of a command in the tables, or a builtin.
func Known(name string) bool { return Lookup(name) != nil }
