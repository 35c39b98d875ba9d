package toolguard

import "strings"

// unknownText stands in a text for a part that only running would tell.
const unknownText = "\x00"

// Limits on what parsers keep, so that a text costs what its length says.
const (
	MaxValue = 64 << 10 // bytes of one value
	MaxSteps = 64       // commands that Made looks at
	MaxArgs  = 8192     // words of one command; the others are left out
)

// Dialect is the language that a command was written in.
type Dialect uint8

// The dialects.
const (
	POSIX Dialect = iota
	PowerShell
	Cmd
)

// Value is a word, or what an expression is worth.
type Value struct {
	Text   string   // with Unknown for each part that is not literal
	Items  []Value  // of a list; Text is then the first one's
	Of     *Command // whose output it is, or a part of it
	Type   bool     // a PowerShell type: Text is its name in brackets
	Block  bool     // a script block; its commands stand in the list
	Quoted bool
}

// Known says whether the whole text is literal.
func (v Value) Known() bool { return !strings.Contains(v.Text, unknownText) }

// All gives the items of a list, or the value itself.
func (v Value) All() []Value {
	if len(v.Items) > 0 {
		return v.Items
	}
	return []Value{v}
}

// Command is one command, wherever it stands in a text.
type Command struct {
	Dialect Dialect
	Name    string   // lower case, without path and .exe, aliases resolved; a method is .name; empty when unknown
	Program string   // as it was written
	Args    []Value  // what follows the name, in order
	On      Value    // the object of a method
	From    *Command // whose output is piped into it
	Line    string   // of cmd: all of it as it was written
	Dir     string   // where it is run, where a shell's text says so
	Runs    *Command // what it runs with the rest of its words, as sudo and env do
	Writes  []Value  // files that redirections write to
	Reads   []Value  // texts that are its standard input
	Sets    []Value  // NAME=VALUE before it, or by themselves
}

// baseName is a program's name as rules have it: lower case, without directory and extension.
func baseName(name string) string {
	name = strings.TrimSpace(name)
	if i := strings.LastIndexAny(name, `\/`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.ToLower(name)
	for _, ext := range [...]string{".exe", ".com"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// Made says whether one of the commands that c's words, object and input come from meets the condition. c itself is not asked.
func (c *Command) Made(is func(*Command) bool) bool {
	steps := 0
	return c.made(is, &steps)
}

func (c *Command) made(is func(*Command) bool, steps *int) bool {
	ask := func(o *Command) bool {
		if o == nil || o == c || *steps >= MaxSteps {
			return false
		}
		*steps++
		for r := o.Runs; r != nil && *steps < MaxSteps; r = r.Runs {
			*steps++
			if is(r) {
				return true
			}
		}
		return is(o) || o.made(is, steps)
	}
	if ask(c.From) || ask(c.On.Of) {
		return true
	}
	for _, list := range [][]Value{c.Args, c.Reads} {
		for _, a := range list {
			for _, v := range a.All() {
				if ask(v.Of) {
					return true
				}
			}
		}
	}
	return false
}

// Words are the texts of all words, lists taken apart.
func (c *Command) Words() []string {
	out := make([]string, 0, len(c.Args))
	for _, a := range c.Args {
		for _, v := range a.All() {
			out = append(out, v.Text)
		}
	}
	return out
}
