package toolguard

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"weir/internal/commands"
)

//go:embed rules.txt
var rulesText string

// vocabulary is what rules.txt may name.
type vocabulary struct {
	lists map[string][]string
	paths map[string]paths
	tests map[string]func(*Command) bool
	conds map[string]condition
	names *strings.Replacer // of the installation, in examples
}

// groupNames are the groups of rules, from the first on.
var groupNames = []string{"commands", "self", "paths", "update"}

// The conditions that are made of a word, of texts, of paths and of another condition.
var (
	ofOneWord = map[string]func(string) condition{"enables": enables, "sets": setsValue}
	ofTexts   = map[string]func(...string) condition{
		"words": hasWords, "arg": hasArg, "value": hasValue, "text": textContains, "starts": startsWith, "named": isNamed, "type": onType, "off": offOf, "unit": hasUnit,
	}
	ofPaths      = map[string]func(paths) condition{"touches": touchesPath, "writes": writesPath, "last": lastIs, "firsts": firstsAre}
	ofConditions = map[string]func(condition) condition{"from": isMade, "piped": isPiped, "fed-by": isFed}
)

// ruleReader reads rules.txt.
type ruleReader struct {
	*vocabulary
	rest string // of the condition that is read
	bad  string
}

// readRules are the rules of a text, in the order in which they are asked.
func (v *vocabulary) readRules(text string) (rules []Rule, err error) {
	r, n := &ruleReader{vocabulary: v}, 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		body, inside := strings.CutPrefix(line, "\t")
		key, value, _ := strings.Cut(body, " ")
		name, rest, _ := strings.Cut(value, " ")
		switch {
		case value == "":
			r.bad = "nothing follows " + key
		case inside && len(rules) > 0:
			r.line(&rules[len(rules)-1], key, value)
		case !inside && key == "rule":
			rules = append(rules, Rule{ID: value})
		case !inside && key == "list":
			v.lists[name] = append(v.lists[name], r.list(rest, ", ")...)
		case !inside && key == "let":
			v.conds[name] = r.condition(rest)
		default:
			r.bad = "there is no word " + key + " here"
		}
		if r.bad != "" {
			return nil, fmt.Errorf("rules.txt:%d: %s", n, r.bad)
		}
	}
	return rules, nil
}

// find finds what a name stands for.
func find[T any](r *ruleReader, all map[string]T, name string) T {
	v, ok := all[name]
	if !ok {
		r.bad = "there is no " + name
	}
	return v
}

// list takes a list apart; $NAME is one that has a name.
func (r *ruleReader) list(text, by string) []string {
	all := make([]string, 0, 1+strings.Count(text, by))
	for item := range strings.SplitSeq(text, by) {
		if name, ok := strings.CutPrefix(item, "$"); ok {
			all = append(all, find(r, r.lists, name)...)
		} else {
			all = append(all, item)
		}
	}
	return all
}

// line adds a line to a rule.
func (r *ruleReader) line(rule *Rule, key, value string) {
	first, rest, _ := strings.Cut(value, " ")
	if strings.IndexByte(rest, '{') >= 0 {
		rest = r.names.Replace(rest)
	}
	switch key {
	case "group":
		if rule.Group = slices.Index(groupNames, value) + 1; rule.Group == 0 {
			r.bad = "there is no group " + value
		}
	case "refuses":
		rule.Refuses = value
	case "why":
		rule.Why = value
	case "instead":
		rule.Instead = value
	case "refused":
		rule.Refused = append(rule.Refused, Example{first, rest})
	case "near":
		rule.Near = append(rule.Near, Example{first, rest})
	case "files":
		rule.Files = append(rule.Files, r.list(value, ", ")...)
	case "changed":
		rule.Changed = append(rule.Changed, r.list(value, ", ")...)
	case "deleted":
		rule.Deleted = append(rule.Deleted, r.list(value, ", ")...)
	case "on":
		names, cond, _ := strings.Cut(value, ": ")
		if names == "-" {
			names = "$unknown"
		}
		rule.On = append(rule.On, trigger{r.list(names, " "), r.condition(cond)})
	case "changes":
		rule.On = append(rule.On, onChanges(find(r, r.paths, value))...)
	case "edits":
		rule.On = append(rule.On, onChanges(find(r, r.paths, value))[1:]...)
	case "found":
		for _, on := range onChanges(find(r, r.paths, first)) {
			rule.On = append(rule.On, trigger{on.Names, condition{on.When.is, [][]string{wordsIn("which", "command", "type"), wordsIn(r.list(rest, ", ")...)}}})
		}
	case "stops":
		rule.On = append(rule.On, stops(r.list(value, ", ")...)...)
	case "services":
		rule.On = append(rule.On, services(r.list(value, ", ")...)...)
	default:
		r.bad = "there is no word " + key
	}
}

// condition reads one: A & B, A | B, !A, (A), a name, or a word with what it is about in brackets.
func (r *ruleReader) condition(text string) condition {
	r.rest = text
	cond := r.either()
	if r.rest != "" && r.bad == "" {
		r.bad = "this cannot be read: " + r.rest
	}
	return cond
}

// takes takes a sign away that is there.
func (r *ruleReader) takes(sign string) (ok bool) {
	r.rest, ok = strings.CutPrefix(r.rest, sign)
	return ok
}

func (r *ruleReader) either() condition {
	return r.several(" | ", anyOf, func() condition { return r.several(" & ", allOf, r.one) })
}

func (r *ruleReader) several(sign string, join func(...condition) condition, part func() condition) condition {
	conds := []condition{part()}
	for r.takes(sign) {
		conds = append(conds, part())
	}
	if len(conds) == 1 {
		return conds[0]
	}
	return join(conds...)
}

func (r *ruleReader) one() condition {
	switch {
	case r.takes("!"):
		return isNot(r.one())
	case r.takes("("):
		return r.closed(r.either())
	}
	i := strings.IndexAny(r.rest+" ", " ()")
	name := r.rest[:i]
	if r.rest = r.rest[i:]; !r.takes("(") {
		return find(r, r.conds, name)
	}
	if join := ofConditions[name]; join != nil {
		return r.closed(join(r.either()))
	}
	i = strings.IndexByte(r.rest+")", ')')
	list := r.list(r.rest[:i], ", ")
	r.rest = r.rest[i:]
	switch first := list[0]; {
	case name == "has":
		return r.closed(when(find(r, r.tests, first), list[1:]...))
	case name == "flag" && len(first) == 1 && len(list) < 3:
		return r.closed(hasFlag((strings.TrimPrefix(first, "-") + "\x00")[0], strings.Join(list[1:], "")))
	case ofOneWord[name] != nil && len(list) == 1:
		return r.closed(ofOneWord[name](first))
	case ofPaths[name] != nil && len(list) == 1:
		return r.closed(ofPaths[name](find(r, r.paths, first)))
	}
	if join := find(r, ofTexts, name); join != nil {
		return r.closed(join(list...))
	}
	return condition{}
}

func (r *ruleReader) closed(cond condition) condition {
	if !r.takes(")") && r.bad == "" {
		r.bad = "a bracket is not closed before " + r.rest
	}
	return cond
}

// ruleTests are the tests that rules.txt names, but for those about the names of the installation.
var ruleTests = map[string]func(*Command) bool{
	"args": func(c *Command) bool { return len(c.Args) > 0 }, "operands": func(c *Command) bool { return len(operandsOf(c)) > 0 }, "input": func(c *Command) bool { return c.From != nil || len(c.Reads) > 0 },
	"posix": func(c *Command) bool { return c.Dialect == POSIX }, "url": hasWord(isURL).is, "diskparts": diskparts, "wipes": wipes, "mirrors-over": mirrorsOver, "wipes-listed": wipesListed, "drops-hive": dropsHive, "shadows": shadows,
	"encoded": runsEncoded, "alike": hasWord(alike).is, "broad": broad, "weakens": weakens, "lets": lets, "masquerade": masquerade, "hive": hasWord(isHive).is, "thief": steals,
	"raw": func(c *Command) bool {
		return slices.ContainsFunc(c.Writes, func(v Value) bool { return rawDevice().MatchString(v.Text) }) ||
			slices.ContainsFunc(c.Words(), func(w string) bool { return rawDevice().MatchString(strings.TrimPrefix(w, "of=")) })
	},
	"drive":            hasWord(func(w string) bool { return drive().MatchString(w) }).is,
	"names-path":       hasWord(func(w string) bool { return w != "" && w[0] != '-' && w[0] != '/' && strings.ContainsAny(w, `:\`) }).is,
	"fed-shadows":      func(c *Command) bool { return c.From != nil && strings.Contains(textOf(c.From), "delete shadows") },
	"first-is-share":   func(c *Command) bool { return strings.HasPrefix(first(c.Args).Text, `\\`) },
	"from-local-users": func(c *Command) bool { return c.From != nil && c.From.Name == "get-localuser" },
	"group-object":     func(c *Command) bool { return strings.Contains(strings.ToLower(c.On.Text), "/administrators,group") },
	"http-object": func(c *Command) bool {
		return c.Name == ".open" && strings.Contains(textOf(c), "http") || c.Name == "new-object" && strings.Contains(textOf(c), "xmlhttp")
	},
	"credential-key": hasWord(func(w string) bool {
		return slices.Contains(credentialKeys, strings.TrimRight(strings.ToLower(w), `\`))
	}).is,
	"given-lsass": func(c *Command) bool { // a program that only running would tell, given lsass's number
		return slices.ContainsFunc(c.Args, func(a Value) bool { return a.Of != nil && lsass.is(a.Of) })
	},
	"deletes-each": hasOption(func(option, value string) bool {
		return commands.Listed("-x -X --exec --exec-batch", option) && commands.Listed("rm shred unlink truncate", path.Base(value))
	}).is,
	"finds-all": func(c *Command) bool { return first(texted(operandsOf(c))).Text == "." },
	"deletes-others": func(c *Command) bool {
		return slices.ContainsFunc(c.Args, func(v Value) bool { return strings.HasPrefix(v.Text, "--del") })
	},
	"vacuums": hasOption(func(option, value string) bool {
		return strings.HasPrefix(option, "--vacuum-") && nothing().MatchString(value)
	}).is,
	"audit-off": hasOption(func(option, value string) bool { return option == "-e" && value == "0" || option == "-e0" }).is,
	"root-id": hasOption(func(option, value string) bool {
		return value == "0" && (option == "--uid" || len(option) > 1 && option[0] == '-' && option[1] != '-' && option[len(option)-1] == 'u') || option == "-u0" || option == "-ou0"
	}).is,
	"shell-fetched": func(c *Command) bool { return !onlyChecks(c) && (scriptFetched(c) || bare(c) && piped(c)) },
	"interpreter-fetched": func(c *Command) bool {
		return !onlyChecks(c) && (bare(c) && (piped(c) || fetchedIn(c)) || codeFetched(c))
	},
	"eval-fetched": func(c *Command) bool {
		return fetchedIn(c) || c.Name == "source" && strings.HasSuffix(first(c.Args).Text, "/stdin") && piped(c)
	},
	"later-fetched": func(c *Command) bool {
		return piped(c) && !hasFlag('c', "command").is(c) && !(c.Name == "crontab" && hasFlag('l', "").is(c))
	},
	"runs-input":    func(c *Command) bool { return piped(c) && slices.ContainsFunc(codes(c), runsInput().MatchString) },
	"fetches-code":  func(c *Command) bool { return slices.ContainsFunc(codes(c), fetchedCode().MatchString) },
	"starts-rescue": hasWord(func(w string) bool { return startsRescue().MatchString(w) }).is,
	"opens-shell":   hasWord(func(w string) bool { return opensShell().MatchString(w) }).is,
	"socat-runs": hasWord(func(w string) bool {
		l := strings.ToLower(w)
		return strings.HasPrefix(l, "exec:") || strings.HasPrefix(l, "system:")
	}).is,
}

// startsRescue is met by a signal at which systemd leaves its services.
var startsRescue = pathPattern(`(?i)^(-{0,2}|--signal=|-s)((sig)?rtmin\+[12]|3[56])$`)
