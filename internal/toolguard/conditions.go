package toolguard

import (
	"path"
	"slices"
	"strings"
)

// hasArg is met when one of the words is one of these.
func hasArg(list ...string) condition {
	return when(func(c *Command) bool {
		return slices.ContainsFunc(c.Args, func(v Value) bool { return slices.Contains(list, v.Text) })
	}, wordsIn(list...)...)
}

// hasWord is met when one of the words is such, which takes one of these.
func hasWord(is func(string) bool, words ...string) condition {
	return when(func(c *Command) bool { return slices.ContainsFunc(c.Words(), is) }, words...)
}

// hasOption is met when a word and its value, behind = or as the next word, are such.
func hasOption(is func(option, value string) bool, words ...string) condition {
	return when(func(c *Command) bool {
		for i, v := range c.Args {
			option, value, glued := strings.Cut(v.Text, "=")
			if !glued && i+1 < len(c.Args) {
				value = c.Args[i+1].Text
			}
			if is(option, value) {
				return true
			}
		}
		return false
	}, words...)
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
			ok, err := path.Match(w, unitName(u))
			return ok && err == nil && strings.ContainsAny(w, "*?[")
		})
	}
}

// hasUnit is met when one of the words names one of these units.
func hasUnit(units ...string) condition {
	return hasWord(isUnit(units...), append(wordsIn(units...), pattern)...)
}

// hasFlag is met when a short option is given, alone or among others as in -xvf, or a long one, whole or abbreviated.
func hasFlag(short byte, long string) condition {
	return when(func(c *Command) bool {
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
	})
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

// paths is a condition on paths, with the words of those that meet it.
type paths struct {
	is    func(path string) bool
	words [][]string
}

// touchesPath is met when an operand, cleaned, meets the condition.
func touchesPath(p paths) condition {
	return condition{func(c *Command) bool {
		return slices.ContainsFunc(operandsOf(c), func(w string) bool { return p.is(c.in(w)) })
	}, p.words}
}

// in is a path of a command's as it is from its directory.
func (c *Command) in(w string) string {
	if c.Dir != "" && w != "" && w[0] != '/' && w[0] != '~' && w[0] != unknownText[0] {
		w = strings.TrimSuffix(c.Dir, "/") + "/" + w
	}
	return clean(w)
}

// firstsAre is met when an operand does that is not the last of several of mv's.
func firstsAre(p paths) condition {
	return condition{func(c *Command) bool {
		w := operandsOf(c)
		if c.Name == "mv" && len(w) > 1 {
			w = w[:len(w)-1]
		}
		return slices.ContainsFunc(w, func(w string) bool { return p.is(c.in(w)) })
	}, p.words}
}

// lastIs is met when the last operand does, or what has the name of another one in it: where cp, mv and ln write; an option -t names it as well.
func lastIs(p paths) condition {
	return condition{func(c *Command) bool {
		w := operandsOf(c)
		for i, v := range c.Args {
			if v.Text == "-t" && i+1 < len(c.Args) {
				w = append(w, c.Args[i+1].Text)
			}
		}
		if len(w) < 2 {
			return false
		}
		to := c.in(w[len(w)-1])
		return p.is(to) || slices.ContainsFunc(w[:len(w)-1], func(from string) bool {
			return strings.HasPrefix(to, "/") && !strings.ContainsAny(from, "*?[") && p.is(path.Join(to, path.Base(from)))
		})
	}, p.words}
}

// fetchesTo is met when curl or wget writes to such a file.
func fetchesTo(p paths) condition {
	return condition{func(c *Command) bool {
		for i, v := range c.Args {
			for _, o := range [...]string{"-o", "-O", "--output", "--output-document", "-P", "--output-dir", "--directory-prefix"} {
				to, glued := strings.CutPrefix(v.Text, o)
				if len(o) == 2 && len(v.Text) > 2 && v.Text[0] == '-' && v.Text[1] != '-' && strings.HasSuffix(v.Text, o[1:]) && i+1 < len(c.Args) && p.is(c.in(c.Args[i+1].Text)) { // -qO
					return true
				}
				if v.Text == o && i+1 < len(c.Args) {
					to = c.Args[i+1].Text
				}
				if (v.Text == o || glued) && p.is(c.in(strings.TrimPrefix(to, "="))) {
					return true
				}
			}
		}
		return false
	}, p.words}
}

// writesPath is met when output is redirected to such a file.
func writesPath(p paths) condition {
	return condition{func(c *Command) bool {
		return slices.ContainsFunc(c.Writes, func(v Value) bool { return p.is(c.in(v.Text)) })
	}, p.words}
}

// clean is path.Clean but for a star at the end, which stays, and for words that are no paths.
func clean(w string) string {
	switch {
	case strings.HasPrefix(w, "~"): // homes lie in /home
		w = path.Clean("/home/" + w)
		return strings.Replace(w, "/home/~", "~", 1)
	case strings.HasPrefix(w, "/"):
		return throughProc(path.Clean(w))
	}
	return w
}

// belowAny is a condition on paths: one of these, or below one.
func belowAny(list ...string) paths {
	return paths{func(p string) bool {
		return slices.ContainsFunc(list, func(l string) bool { return p == l || strings.HasPrefix(p, l+"/") })
	}, wordsOfPaths(list, false)}
}

// namedBy is a condition on paths by patterns.
func namedBy(patterns []string) paths {
	list := readPatterns(patterns)
	words := wordsOfPaths(patterns, true)
	if words != nil {
		words = [][]string{append(words[0], root, partOfName), append(words[1], root, pattern)}
	}
	return paths{func(p string) bool {
		return strings.HasPrefix(p, "/") && list.match(strings.Split(strings.Trim(strings.ToLower(p), "/"), "/"))
	}, words}
}

// extracts is met by tar that unpacks.
var extracts = anyOf(hasFlag('x', "extract"), when(func(c *Command) bool {
	w := first(c.Args).Text
	return w != "" && w[0] != '-' && strings.Contains(w, "x") && strings.Trim(w, "xvfzjJpkmC") == ""
}))

// onChanges are the ways in which Linux programs change files that meet the condition.
func onChanges(p paths) []trigger {
	return []trigger{
		{Names: []string{"*>"}, When: writesPath(p)},
		{Names: []string{"tee", "rm", "unlink", "shred", "truncate", "chattr", "sponge"}, When: touchesPath(p)},
		{Names: []string{"mv", "rename"}, When: anyOf(touchesPath(p), lastIs(p))},
		{Names: []string{"cp", "install", "ln", "rsync", "qemu-img", "ddrescue"}, When: lastIs(p)},
		{Names: []string{"curl", "wget", "aria2c"}, When: fetchesTo(p)},
		{Names: []string{"tar", "bsdtar"}, When: allOf(extracts, touchesPath(p))},
		{Names: []string{"unzip"}, When: allOf(hasFlag('d', ""), touchesPath(p))},
		{Names: []string{"awk", "gawk"}, When: allOf(hasArg("inplace"), touchesPath(p))},
		{Names: []string{"ed"}, When: touchesPath(p)},
		{Names: []string{"sed", "perl", "ex"}, When: allOf(anyOf(hasFlag('i', "in-place")), touchesPath(p))},
		{Names: []string{"dd", "dcfldd", "dc3dd"}, When: condition{func(c *Command) bool {
			return slices.ContainsFunc(c.Args, func(v Value) bool {
				to, ok := strings.CutPrefix(v.Text, "of=")
				return ok && p.is(c.in(to))
			})
		}, p.words}},
	}
}
