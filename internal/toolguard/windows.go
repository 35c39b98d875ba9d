package toolguard

import (
	"slices"
	"strings"
)

// word is a word in the form that Windows programs compare: lower case, without what marks an option.
func word(s string) string { return strings.ToLower(strings.TrimLeft(s, "-/")) }

// hasWords is met when these words stand among a command's, in this order; each may be given in several ways, with | between them.
func hasWords(list ...string) condition {
	ways := make([][]string, len(list))
	for i, w := range list {
		ways[i] = strings.Split(w, "|")
	}
	out := when(func(c *Command) bool {
		next := 0
		for _, w := range c.Words() {
			for _, f := range ruleFields(w) {
				if next < len(ways) && slices.Contains(ways[next], word(f)) {
					next++
				}
			}
		}
		return next == len(ways)
	})
	for _, w := range ways {
		out.words = append(out.words, wordsIn(w...))
	}
	return out
}

// ruleFields takes a word apart that has several in it, as in sc.exe "stop WinDefend".
func ruleFields(w string) []string {
	if len(w) > 200 || !strings.ContainsAny(w, " \t") {
		return []string{w}
	}
	return append(strings.Fields(w), w)
}

// textOf is a command's words in lower case, with blanks between them and backslashes for slashes.
func textOf(c *Command) string {
	return strings.ReplaceAll(strings.ToLower(strings.Join(c.Words(), " ")), "/", `\`)
}

// textContains is met when one of the texts stands somewhere in the command's words; slashes are written as backslashes.
func textContains(texts ...string) condition {
	return when(func(c *Command) bool {
		all := textOf(c)
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(all, t) })
	}, anywhere(texts...)...)
}

// startsWith is met when a word begins like one of the texts; slashes are written as backslashes.
func startsWith(texts ...string) condition {
	return hasWord(func(w string) bool {
		w = strings.ReplaceAll(strings.ToLower(w), "/", `\`)
		return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(w, t) })
	})
}

// isURL is met by a word that has an address of the web in it.
func isURL(w string) bool {
	w = strings.ToLower(w)
	return strings.Contains(w, "http:/") || strings.Contains(w, "https:/") || strings.Contains(w, "ftp://")
}

// paramOf gives what a parameter of a cmdlet is set to, abbreviated or not; a switch alone is $true.
func paramOf(c *Command, name string) (Value, bool) {
	for i, a := range c.Args {
		if a.Quoted || !psParameter(a.Text, name) {
			continue
		}
		if i+1 < len(c.Args) {
			if next := c.Args[i+1]; next.Quoted || len(next.Text) < 2 || next.Text[0] != '-' || len(next.Items) > 0 {
				return next, true
			}
		}
		return Value{Text: "$true"}, true
	}
	return Value{}, false
}

// setsValue is met when a parameter is given, whatever it is set to.
func setsValue(name string) condition {
	return when(func(c *Command) bool { _, ok := paramOf(c, name); return ok })
}

// enables is met when a switch, or a parameter with a truth value, is on, or set to what only running would tell.
func enables(name string) condition {
	return when(func(c *Command) bool {
		v, ok := paramOf(c, name)
		return ok && v.Text != "$false" && v.Text != "0" && !strings.EqualFold(v.Text, "false")
	})
}

// hasValue is met when one of the words of a cmdlet is the value, whether by position or by name.
func hasValue(values ...string) condition {
	return hasWord(func(w string) bool {
		return slices.Contains(values, strings.ToLower(w[strings.LastIndexByte(w, '\\')+1:]))
	}, wordsIn(values...)...)
}

// isMade is met when what the command works on comes from such a command.
func isMade(cond condition) condition {
	return condition{func(c *Command) bool { return c.Made(cond.is) }, cond.words}
}

// isPiped is met when what is piped into a command comes from such a command, isFed when it is such a command's output.
func isPiped(cond condition) condition {
	return condition{func(c *Command) bool { return (&Command{From: c.From}).Made(cond.is) }, cond.words}
}

func isFed(cond condition) condition {
	return condition{func(c *Command) bool { return c.From != nil && cond.is(c.From) }, cond.words}
}

// isNamed is met by commands of these names.
func isNamed(names ...string) condition {
	return when(func(c *Command) bool { return slices.Contains(names, c.Name) }, wordsOfNames(names)...)
}

// onType is met by methods of a type, whose name is given in lower case with its brackets, as far as it goes.
func onType(types ...string) condition {
	return when(func(c *Command) bool {
		return c.On.Type && slices.ContainsFunc(types, func(t string) bool { return strings.HasPrefix(c.On.Text, t) })
	}, anywhere(types...)...)
}
