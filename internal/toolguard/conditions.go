package toolguard

import (
	"path"
	"slices"
	"strings"
)

// hasArg is met when one of the words is one of these.
func hasArg(list ...string) condition {
	return func(c *Command) bool {
		return slices.ContainsFunc(c.Args, func(v Value) bool { return slices.Contains(list, v.Text) })
	}
}

// hasWord is met when one of the words is such.
func hasWord(is func(string) bool) condition {
	return func(c *Command) bool { return slices.ContainsFunc(c.Words(), is) }
}

// isUnit says whether a word names one of these units of systemd: alone, with what units end in, as a pattern, or by its file.
func isUnit(units ...string) func(string) bool {
	return func(w string) bool {
		w = w[strings.LastIndexByte(w, '/')+1:]
		base := strings.TrimSuffix(strings.TrimSuffix(w, ".service"), ".socket")
		return slices.ContainsFunc(units, func(u string) bool {
			if u == base {
				return true
			}
			ok, err := path.Match(w, u+".service")
			return ok && err == nil && strings.ContainsAny(w, "*?[")
		})
	}
}

// hasFlag is met when a short option is given, alone or among others as in -xvf, or a long one, whole or abbreviated.
func hasFlag(short byte, long string) condition {
	return func(c *Command) bool {
		for _, v := range c.Args {
			switch w := v.Text; {
			case w == "--":
				return false
			case strings.HasPrefix(w, "--"):
				name, _, _ := strings.Cut(w[2:], "=")
				if long != "" && len(name) > 1 && strings.HasPrefix(long, name) {
					return true
				}
			case len(w) > 1 && w[0] == '-' && short != 0 && strings.IndexByte(w[1:], short) >= 0:
				return true
			}
		}
		return false
	}
}

// operandsOf are a command's words that are no options, each as a clean path.
func operandsOf(c *Command) []string {
	var out []string
	for _, v := range c.Args {
		if v.Text != "" && v.Text[0] != '-' {
			out = append(out, v.Text)
		}
	}
	return out
}

// touchesPath is met when an operand, cleaned, meets the condition.
func touchesPath(is func(path string) bool) condition {
	return func(c *Command) bool {
		return slices.ContainsFunc(operandsOf(c), func(w string) bool { return is(c.in(w)) })
	}
}

// in is a path of a command's as it is from its directory.
func (c *Command) in(w string) string {
	if c.Dir != "" && w != "" && w[0] != '/' && w[0] != '~' && w[0] != unknownText[0] {
		if c.Dir[0] == '~' {
			return strings.TrimSuffix(path.Join(c.Dir, w), "/")
		}
		w = strings.TrimSuffix(c.Dir, "/") + "/" + w
	}
	return clean(w)
}

// firstsAre is met when an operand does that is not the last of several of mv's.
func firstsAre(is func(path string) bool) condition {
	return func(c *Command) bool {
		w := operandsOf(c)
		if c.Name == "mv" && len(w) > 1 {
			w = w[:len(w)-1]
		}
		return slices.ContainsFunc(w, func(w string) bool { return is(c.in(w)) })
	}
}

// lastIs is met when the last operand does: where cp, mv and ln write; an option -t names it as well.
func lastIs(is func(path string) bool) condition {
	return func(c *Command) bool {
		for i, v := range c.Args {
			if v.Text == "-t" && i+1 < len(c.Args) && is(c.in(c.Args[i+1].Text)) {
				return true
			}
		}
		w := operandsOf(c)
		return len(w) > 1 && is(c.in(w[len(w)-1]))
	}
}

// writesPath is met when output is redirected to such a file.
func writesPath(is func(path string) bool) condition {
	return func(c *Command) bool {
		return slices.ContainsFunc(c.Writes, func(v Value) bool { return is(c.in(v.Text)) })
	}
}

// clean is path.Clean but for a star at the end, which stays, and for words that are no paths.
func clean(w string) string {
	if !strings.HasPrefix(w, "/") {
		return w
	}
	return throughProc(path.Clean(w))
}

// belowAny is a condition on paths: one of these, or below one.
func belowAny(list ...string) func(string) bool {
	return func(p string) bool {
		return slices.ContainsFunc(list, func(l string) bool { return p == l || strings.HasPrefix(p, l+"/") })
	}
}

// namedBy is a condition on paths by patterns.
func namedBy(patterns []string) func(string) bool {
	list := readPatterns(patterns)
	return func(p string) bool {
		return strings.HasPrefix(p, "/") && list.match(strings.Split(strings.Trim(strings.ToLower(p), "/"), "/"))
	}
}

// onChanges are the ways in which Linux programs change files that meet the condition.
func onChanges(is func(path string) bool) []trigger {
	return []trigger{
		{Names: []string{"*>"}, When: writesPath(is)},
		{Names: []string{"tee", "rm", "unlink", "shred", "truncate", "chattr", "umount"}, When: touchesPath(is)},
		{Names: []string{"mv", "rename"}, When: touchesPath(is)},
		{Names: []string{"cp", "install", "ln", "rsync"}, When: lastIs(is)},
		{Names: []string{"sed", "perl", "ex"}, When: allOf(anyOf(hasFlag('i', "in-place")), touchesPath(is))},
		{Names: []string{"dd"}, When: func(c *Command) bool {
			return slices.ContainsFunc(c.Args, func(v Value) bool {
				to, ok := strings.CutPrefix(v.Text, "of=")
				return ok && is(c.in(to))
			})
		}},
	}
}
