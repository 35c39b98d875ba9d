package toolguard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"weir/internal/bridge/wire"
)

// Options are what a guard is made of. None of them takes a rule away.
type Options struct {
	Names    ProtectedNames // of the sensor; without a service: builtin.Installed()
	Server   string         // host that updates may come from besides GitHub; empty: none
	Appended []Rule         // the operator's
}

// Guard has the rules, made ready. It never changes, so that all may use it at once.
type Guard struct {
	rules  []Rule
	on     map[string][]asked
	every  []asked // for whatever name
	server string
	// prefilter is made when the first text comes that is long enough for it.
	prefilter func() *prefilter
	least     int // bytes
}

// asked is a condition with its rule.
type asked struct {
	rule *Rule
	when condition
}

// Hit is a refusal. Its zero value is none.
type Hit struct {
	Rule    *Rule
	Excerpt string // of what was refused, as it is: who shows it takes secrets out
	Detail  string // more than the rule says, or empty
}

// ID is the rule's.
func (h Hit) ID() string {
	if h.Rule == nil {
		return ""
	}
	return h.Rule.ID
}

// Message tells the one who called what was refused, why, and what to do instead.
func (h Hit) Message() string {
	detail := ""
	if h.Detail != "" {
		detail = " (" + h.Detail + ")"
	}
	return fmt.Sprintf("Blocked by the guard's rule %s: it %s%s. %s %s", h.Rule.ID, h.Rule.Refuses, detail, h.Rule.Why, h.Rule.Instead)
}

// New makes a guard.
func New(o Options) *Guard {
	if o.Names.Service == "" {
		o.Names = InstalledNames()
	}
	g := &Guard{rules: append(o.Names.rules(), o.Appended...), on: make(map[string][]asked, manyNames), server: o.Server, least: leastFiltered}
	for i := range g.rules {
		r := &g.rules[i]
		for _, on := range r.On {
			for _, name := range on.Names {
				if name == "*" {
					g.every = append(g.every, asked{r, on.When})
					continue
				}
				g.on[name] = append(g.on[name], asked{r, on.When})
			}
		}
	}
	g.prefilter = sync.OnceValue(func() *prefilter { return newPrefilter(g.rules) })
	return g
}

// manyNames is about how many names of commands the rules have.
const manyNames = 1 << 10

// Rules are all that are in force, built-in ones first.
func (g *Guard) Rules() []Rule { return g.rules }

// unreadable refuses what the guard fails on.
var unreadable = Rule{
	ID: "unreadable", Group: OnCommands, Refuses: "cannot be checked: the guard failed on it", Why: "The guard cannot tell what it does.", Instead: "Write it in a simpler way.",
}

// Check judges the call of a tool (K1). It is the whole of the guard: what it refuses must not reach any handler.
func (g *Guard) Check(tool string, args json.RawMessage) (Hit, bool) {
	return g.CheckIn(tool, args, nil)
}

// CheckIn is Check, where resolve tells the places that a path of the caller's may lead to, past symbolic links; it may be nil. A call that it
// cannot wholly tell of is refused.
func (g *Guard) CheckIn(tool string, args json.RawMessage, resolve func(path string) (places []string, whole bool)) (hit Hit, refused bool) {
	named := func(name string) bool { return strings.EqualFold(name, wire.Canonical(tool)) }
	for i := range g.rules {
		if slices.ContainsFunc(g.rules[i].Tools, named) {
			return Hit{Rule: &g.rules[i], Excerpt: tool}, true
		}
	}
	defer func() { // what the guard fails on must not be what gets past it
		if recover() != nil {
			hit, refused = Hit{Rule: &unreadable, Excerpt: tool}, true
		}
	}()
	c, whole := read(tool, args)
	if !whole {
		return Hit{Rule: &unreadable, Excerpt: tool}, true
	}
	for _, s := range c.scripts {
		if hit, ok := g.Script(s.dialect, s.text); ok {
			return hit, true
		}
	}
	for i, p := range append(c.paths, c.likely...) {
		if resolve == nil && strings.HasPrefix(p, "./**/") {
			continue // whatever directory that is
		}
		if resolve == nil || !isRelative(p) { // what is relative is told by where it leads
			if hit, ok := g.path(p, c); ok {
				return hit, true
			}
		}
		if resolve == nil {
			continue
		}
		places, whole := resolve(p)
		for _, real := range places {
			if hit, ok := g.path(real, c); ok {
				hit.Detail = "it leads to " + real
				return hit, true
			}
		}
		if !whole && i < len(c.paths) {
			return Hit{Rule: &unreadable, Excerpt: tool}, true
		}
	}
	for _, u := range c.updates {
		if err := CheckUpdate(u, g.server); err != nil {
			return Hit{&g.rules[slices.IndexFunc(g.rules, func(r Rule) bool { return r.Group == OnUpdate })], u, err.Error()}, true
		}
	}
	return Hit{}, false
}

func (g *Guard) path(p string, c call) (Hit, bool) {
	parts := pathParts(p)
	whole := parts
	if n := len(parts) - 1; strings.Trim(parts[n], "*?.") == "" { // all that is in it
		whole = append([]string{""}, parts[:n]...)[min(n, 1):]
	}
	for i := range g.rules {
		r := &g.rules[i]
		if matchPath(r.Files, parts) || c.changes && matchPath(r.Changed, parts) || c.deletes && matchPath(r.Deleted, whole) {
			return Hit{Rule: r, Excerpt: p}, true
		}
	}
	return Hit{}, false
}

// Script judges a text in one language, and the texts that it runs. A long one is not read if the prefilter tells that no rule can refuse it.
func (g *Guard) Script(d Dialect, source string) (Hit, bool) {
	source = decode(source)
	if len(source) >= g.least && !g.prefilter().some(d, source) {
		return Hit{}, false
	}
	return g.read(d, source)
}

// leastFiltered is the length from which on the prefilter costs less than reading a text, in bytes.
const leastFiltered = 512

// Whole judges a text as Script does, without the prefilter: both must judge alike.
func (g *Guard) Whole(d Dialect, source string) (Hit, bool) { return g.read(d, decode(source)) }

func (g *Guard) read(d Dialect, source string) (hit Hit, refused bool) {
	Reader{}.Commands(d, source, func(c *Command) bool {
		hit, refused = g.command(c)
		return !refused
	})
	return hit, refused
}

func (g *Guard) command(c *Command) (Hit, bool) {
	for _, a := range g.on[c.Name] {
		if a.when.is(c) {
			return Hit{Rule: a.rule, Excerpt: excerpt(c)}, true
		}
	}
	if name := strings.ToLower(c.Name); name != c.Name { // an operator's rule is about a name in any case
		for _, a := range g.on[name] {
			if a.rule.Group == OnOperator && a.when.is(c) {
				return Hit{Rule: a.rule, Excerpt: excerpt(c)}, true
			}
		}
	}
	if slices.ContainsFunc(c.Writes, kept) {
		for _, a := range g.on["*>"] {
			if a.when.is(c) {
				return Hit{Rule: a.rule, Excerpt: excerpt(c)}, true
			}
		}
	}
	for _, a := range g.every {
		if a.when.is(c) {
			return Hit{Rule: a.rule, Excerpt: excerpt(c)}, true
		}
	}
	return Hit{}, false
}

// kept says whether something stays of what is written there.
func kept(v Value) bool {
	return v.Text != "/dev/null" && v.Text != "" && v.Text != "nul" && v.Text != "NUL" && v.Text != "$null"
}

// maxExcerpt is how much of a refused command is told, in bytes.
const maxExcerpt = 200

func excerpt(c *Command) string {
	s := c.Program
	for _, w := range c.Words() {
		if len(s) > maxExcerpt {
			break
		}
		s += " " + w
	}
	for _, w := range c.Writes {
		s += " > " + w.Text
	}
	s = strings.ReplaceAll(s, unknownText, "…")
	if len(s) > maxExcerpt {
		s = strings.ToValidUTF8(s[:maxExcerpt], "") + "…"
	}
	return s
}
