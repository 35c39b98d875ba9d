package rule

import (
	"slices"
	"strings"

	"weir/internal/ruleset/powershell/lex"
	"weir/internal/ruleset/script"
)

// word is a word in the form that Windows programs compare: lower case, without what marks an option.
func word(s string) string { return strings.ToLower(strings.TrimLeft(s, "-/")) }

// Words is met when these words stand among a command's, in this order; each may be given in several ways, with | between them.
func Words(list ...string) Cond {
	ways := make([][]string, len(list))
	for i, w := range list {
		ways[i] = strings.Split(w, "|")
	}
	return func(c *script.Command) bool {
		next := 0
		for _, w := range c.Words() {
			for _, f := range fields(w) {
				if next < len(ways) && slices.Contains(ways[next], word(f)) {
					next++
				}
			}
		}
		return next == len(ways)
	}
}

// fields takes a word apart that has several in it, as in sc.exe "stop WinDefend".
func fields(w string) []string {
	if len(w) > 200 || !strings.ContainsAny(w, " \t") {
		return []string{w}
	}
	return append(strings.Fields(w), w)
}

// Text is a command's words in lower case, with blanks between them and backslashes for slashes.
func Text(c *script.Command) string {
	return strings.ReplaceAll(strings.ToLower(strings.Join(c.Words(), " ")), "/", `\`)
}

// Contains is met when one of the texts stands somewhere in the command's words; slashes are written as backslashes.
func Contains(texts ...string) Cond {
	return func(c *script.Command) bool {
		all := Text(c)
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(all, t) })
	}
}

// Starts is met when a word begins like one of the texts; slashes are written as backslashes.
func Starts(texts ...string) Cond {
	return func(c *script.Command) bool {
		for _, w := range c.Words() {
			w = strings.ReplaceAll(strings.ToLower(w), "/", `\`)
			if slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(w, t) }) {
				return true
			}
		}
		return false
	}
}

// URL is met when a word has an address of the web in it.
func URL(c *script.Command) bool {
	for _, w := range c.Words() {
		w = strings.ToLower(w)
		if strings.Contains(w, "http:/") || strings.Contains(w, "https:/") || strings.Contains(w, "ftp://") {
			return true
		}
	}
	return false
}

// Param gives what a parameter of a cmdlet is set to, abbreviated or not; a switch alone is $true.
func Param(c *script.Command, name string) (script.Value, bool) {
	for i, a := range c.Args {
		if a.Quoted || !lex.Parameter(a.Text, name) {
			continue
		}
		if i+1 < len(c.Args) {
			if next := c.Args[i+1]; next.Quoted || len(next.Text) < 2 || next.Text[0] != '-' || len(next.Items) > 0 {
				return next, true
			}
		}
		return script.Value{Text: "$true"}, true
	}
	return script.Value{}, false
}

// Set is met when a parameter is given, whatever it is set to.
func Set(name string) Cond {
	return func(c *script.Command) bool { _, ok := Param(c, name); return ok }
}

// Enabled is met when a switch, or a parameter with a truth value, is on, or set to what only running would tell.
func Enabled(name string) Cond {
	return func(c *script.Command) bool {
		v, ok := Param(c, name)
		return ok && v.Text != "$false" && v.Text != "0" && !strings.EqualFold(v.Text, "false")
	}
}

// Value is met when one of the words of a cmdlet is the value, whether by position or by name.
func Value(values ...string) Cond {
	return func(c *script.Command) bool {
		for _, w := range c.Words() {
			if i := strings.LastIndexByte(w, '\\'); i >= 0 {
				w = w[i+1:]
			}
			if slices.Contains(values, strings.ToLower(w)) {
				return true
			}
		}
		return false
	}
}

// Made is met when what the command works on comes from such a command.
func Made(cond Cond) Cond { return func(c *script.Command) bool { return c.Made(cond) } }

// Named is met by commands of these names.
func Named(names ...string) Cond {
	return func(c *script.Command) bool { return slices.Contains(names, c.Name) }
}

// OnType is met by methods of a type, whose name is given in lower case with its brackets, as far as it goes.
func OnType(types ...string) Cond {
	return func(c *script.Command) bool {
		return c.On.Type && slices.ContainsFunc(types, func(t string) bool { return strings.HasPrefix(c.On.Text, t) })
	}
}
