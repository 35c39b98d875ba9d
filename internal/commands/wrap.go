package commands

import (
	"slices"
	"strings"
)

// all words but options and their values are operands.
const all = 1 << 30

// isMachine says whether a word is a kind of machine, as setarch names them.
func isMachine(w string) bool {
	return Listed("linux32 linux64 i386 i486 i586 i686 x86_64 amd64 athlon uname26 arm armh armv6l armv7l armv8l aarch64 arm64 ppc ppc32 ppc64 ppc64le s390 s390x mips mips64 riscv64 ia64 sparc sparc64 alpha parisc", w)
}

// KnowsWrapper says whether a program, by its name without a directory, is one that runs another command.
func KnowsWrapper(name string) bool { return wrapper(name) != nil }

func wrapper(name string) *Command {
	if c := known().wrappers[name]; c != nil {
		return c
	}
	if c := Lookup(name); c != nil && c.Wraps {
		return c
	}
	return nil
}

// RunTexts are the names of programs that may run a text of a shell, which an option or an operand gives.
func RunTexts() (names []string) {
	for name, c := range known().wrappers {
		if c.Text != "" || c.Joined {
			names = append(names, name)
		}
	}
	return names
}

// Unwrap finds what a program runs with the words that follow its name: commands, each a program with its words, and texts of a shell. No word is in
// two of them. text gives a word's text as far as it is known.
func Unwrap[W any](name string, args []W, text func(W) string) (commands [][]W, texts []string) {
	c := wrapper(name)
	if c == nil {
		return nil, nil
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = text(a)
	}
	var at []span
	if c.Starts != "" {
		at = started(c.Starts, words)
	} else {
		at, texts = c.leads(name, words)
	}
	for _, s := range at {
		commands = append(commands, args[s.from:s.to])
	}
	return commands, texts
}

// span is some of the words, never none.
type span struct{ from, to int }

// leads takes away options, their values and operands.
func (c *Command) leads(name string, words []string) ([]span, []string) {
	var texts []string
	operands, i := c.Skip, 0
	if c.Wraps {
		operands = len(c.Lead)
	}
	for ; i < len(words); i++ {
		w := words[i]
		switch {
		case strings.HasPrefix(w, "-"):
			names, value, next := c.Given(w)
			if next && i+1 < len(words) {
				i++
				value = words[i]
			}
			switch {
			case !slices.ContainsFunc(names, func(name string) bool { return Listed(c.Text, name) }):
			case name == "env":
				return nil, []string{value + " " + strings.Join(words[i+1:], " ")}
			default:
				texts, operands = append(texts, value), all
			}
			if name == "runuser" && (slices.Contains(names, "u") || slices.Contains(names, "user")) {
				operands = 0
			}
			continue
		case c.Sets && strings.Contains(w, "="):
			continue
		case operands > 0 && (c.Skips == nil || c.Skips(w)):
			operands--
			continue
		}
		break
	}
	end := len(words)
	if name == "parallel" {
		end = i
		for end < len(words) && !strings.HasPrefix(words[end], ":::") {
			end++
		}
	}
	switch {
	case i < end && (!c.Joined || i+1 < end && !strings.ContainsAny(words[i], " \t\n")):
		return []span{{i, end}}, texts
	case i < end:
		texts = append(texts, strings.Join(words[i:end], " "))
	case end < len(words): // parallel ::: TEXT …
		texts = append(texts, words[end+1:]...)
	}
	return nil, texts
}

// Given reads a word as getopt does: the options in it, a long one by every name that it may be the beginning of, the value of the last, and whether
// that is the next word.
func (c *Command) Given(w string) (names []string, value string, next bool) {
	if long, ok := strings.CutPrefix(w, "--"); ok {
		name, value, glued := strings.Cut(long, "=")
		if a := longArity(c.Long, name); a != Refused {
			return []string{name}, value, a == TakesValue && !glued
		}
		for o := range strings.FieldsSeq(c.Long) {
			if name != "" && strings.HasPrefix(o, name) {
				names, next = append(names, strings.TrimRight(o, "=?")), next || arityOf(o) == TakesValue && !glued
			}
		}
		return names, value, next
	}
	for k := 1; k < len(w); k++ {
		names = append(names, w[k:k+1])
		if a := ShortArity(c.Short, w[k]); a == TakesValue || a == Optional {
			return names, w[k+1:], a == TakesValue && k+1 == len(w)
		}
	}
	return names, "", false
}

// started finds the commands behind such options, up to a semicolon or {} +.
func started(options string, words []string) []span {
	var found []span
	for i := 0; i < len(words); i++ {
		if !Listed(options, words[i]) {
			continue
		}
		from := i + 1
		for i = from; i < len(words) && words[i] != ";" && (words[i] != "+" || words[i-1] != "{}"); i++ {
		}
		if from < i {
			found = append(found, span{from, i})
		}
	}
	return found
}
