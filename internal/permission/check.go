package permission

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"weir/internal/bridge/wire"
	"weir/internal/policy"
)

// Decision is what the rules say. Its zero value denies.
type Decision uint8

// The decisions.
const (
	Denied Decision = iota
	Asked
	Allowed
)

// String is the decision as events have it.
func (d Decision) String() string {
	switch d {
	case Allowed:
		return "allow"
	case Asked:
		return "ask"
	}
	return "deny"
}

// Reason says by what a decision was made, for machines (P4).
type Reason struct {
	Type   string `json:"type"` // rule or other
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// The reasons of type other.
const (
	MissingField  = "missing_required_field"
	InvalidKey    = "invalid_key"
	UnknownAction = "unknown_action"
	NoAsking      = "mode_does_not_ask" // it would have been asked about
	Bypass        = "mode_bypasses"     // it would have been asked about
	NoRule        = "no_rule"           // the tool's own default
	Unknown       = "rules_not_known"   // a file of rules could not be read yet, and may deny it
	Unreadable    = "cannot_be_read"    // a command has too many parts to be held against the rules that deny some
)

// Result is what the rules say about one call. Its zero value denies.
type Result struct {
	Decision Decision
	Reason   Reason
}

// The modes of agents that count (P5); in every other one, and in none, ask stays ask.
const (
	ModeBypass  = "bypassPermissions"
	ModeNoAsk   = "dontAsk"
	ModeDefault = "default"
)

// Set is the rules of all files. It never changes.
type Set struct{ own, managed *layer }

func newSet() *Set { return &Set{own: newLayer(), managed: newLayer()} }

// Len is the number of rules.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return s.own.count + s.managed.count
}

// Check says whether a call may be made: deny, then allow, then ask, then the tool's default (P4). An ask of the administrator comes
// before an allow of others. mode is what the agent's hook reports.
func (s *Set) Check(c Call, mode string) Result {
	if s == nil {
		s = newSet()
	}
	if r, ok := first(c.denials(), Deny, s.managed, s.own); ok {
		return Result{Denied, ruled(r)}
	}
	if c.Wrong != "" {
		return Result{Denied, other(c.Wrong)}
	}
	if s.denies(&c) && c.script().many {
		return Result{Denied, other(Unreadable)}
	}
	if r, ok := first(c, Allow, s.managed); ok {
		return Result{Allowed, ruled(r)}
	}
	if r, ok := first(c, Ask, s.managed); ok {
		return c.inMode(mode, true, ruled(r))
	}
	if r, ok := first(c, Allow, s.own); ok {
		return Result{Allowed, ruled(r)}
	}
	if r, ok := first(c, Ask, s.own); ok {
		return c.inMode(mode, false, ruled(r))
	}
	if c.Default == Asked {
		return c.inMode(mode, false, other(NoRule))
	}
	return Result{c.Default, other(NoRule)}
}

// denies says whether some commands of a call's kind are denied.
func (s *Set) denies(c *Call) bool {
	return c.command != "" && len(s.own.lists[Deny].commands[c.kind])+len(s.managed.lists[Deny].commands[c.kind]) > 0
}

// inMode is what becomes of ask (P5).
func (c Call) inMode(mode string, managed bool, why Reason) Result {
	switch {
	case mode == ModeNoAsk:
		return Result{Denied, other(NoAsking)}
	case mode == ModeBypass && !c.Interactive && !managed:
		return Result{Allowed, other(Bypass)}
	}
	return Result{Asked, why}
}

func ruled(r Rule) Reason { return Reason{Type: "rule", Rule: r.String()} }

func other(reason string) Reason { return Reason{Type: "other", Reason: reason} }

// layer is the rules of one rank.
type layer struct {
	count int
	lists map[List]*table
}

func newLayer() *layer {
	return &layer{lists: map[List]*table{Deny: newTable(), Allow: newTable(), Ask: newTable()}}
}

func (l *layer) add(r Rule, list List) {
	l.count++
	l.lists[list].add(r, list)
}

// table is the rules of one list.
type table struct {
	whole    map[string]Rule // by the tool's name
	patterns []Rule          // whole tools by a pattern, or all of a server
	exact    map[Rule]Rule   // contents
	globs    map[string][]Rule
	commands map[kind][]commandRule
	edits    []pathRule
	reads    []pathRule
	sites    []Rule
	params   []Rule // about an argument
}

func newTable() *table {
	return &table{whole: map[string]Rule{}, exact: map[Rule]Rule{}, globs: map[string][]Rule{}, commands: map[kind][]commandRule{}}
}

func (t *table) add(r Rule, list List) {
	name := named(r.Tool)
	k := kindOf(r.Tool)
	server, tool, isServer := strings.Cut(strings.TrimPrefix(r.Tool, "mcp__"), "__")
	switch {
	case r.Content == "" && k == served && server != "" && (!isServer || tool == ""):
		t.patterns = append(t.patterns, r)
	case r.Content == "" && strings.Contains(r.Tool, "*"):
		t.patterns = append(t.patterns, r)
	case r.Content == "":
		t.whole[name] = r
	case list != Allow && r.isParam():
		t.params = append(t.params, r)
	case k == shells || k == scripts:
		t.commands[k] = append(t.commands[k], newCommandRule(r, k == scripts))
	case k == files:
		p, _ := readPath(r.Content)
		p.rule = r
		if readers[strings.ToLower(r.Tool)] {
			t.reads = append(t.reads, p)
		} else {
			t.edits = append(t.edits, p)
		}
	case k == sites && strings.HasPrefix(r.Content, "domain:"):
		t.sites = append(t.sites, r)
	case k == skills && (strings.HasSuffix(r.Content, ":*") || strings.HasSuffix(r.Content, " *")):
		t.globs[name] = append(t.globs[name], r)
	case strings.Contains(r.Content, "*"):
		t.globs[name] = append(t.globs[name], r)
	default:
		t.exact[Rule{name, plain(k, r.Content)}] = r
	}
}

// plain is a content as it is compared: a skill may be called as its command.
func plain(k kind, content string) string {
	switch k {
	case own:
		return content
	case skills:
		content = strings.TrimPrefix(content, "/")
	}
	return unescape(content)
}

// means says whether a pattern of whole tools means a call's: mcp__server is all of a server's.
func (r Rule) means(c *Call) bool {
	names := []string{c.name, c.Tool}
	if isOwn(c.Tool) { // whatever an agent calls its server
		names = append(names, "mcp__"+wire.Server+"__"+c.Tool)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return Matches(r.Tool, name) || !strings.Contains(r.Tool, "*") && strings.HasPrefix(name, strings.TrimRight(r.Tool, "_")+"__")
	})
}

// first is the first rule of a list that a call meets.
func first(c Call, list List, layers ...*layer) (Rule, bool) {
	for _, l := range layers {
		if r, ok := l.lists[list].first(&c, list); ok {
			return r, true
		}
	}
	return Rule{}, false
}

func (t *table) first(c *Call, list List) (Rule, bool) {
	for _, name := range c.names() {
		if r, ok := t.whole[name]; ok {
			return r, true
		}
	}
	if list != Allow || !isOwn(c.Tool) { // no pattern allows all that a tool of the sensor's hands out
		for _, r := range t.patterns {
			if r.means(c) {
				return r, true
			}
		}
	}
	name := named(c.Tool)
	for _, text := range c.Contents {
		if r, ok := t.exact[Rule{name, plain(c.kind, text)}]; ok {
			return r, true
		}
		for _, r := range t.globs[name] {
			pattern := plain(c.kind, r.Content)
			if c.kind == skills {
				pattern = strings.TrimRight(pattern, ":* ") + "*"
			}
			if Matches(pattern, plain(c.kind, text)) {
				return r, true
			}
		}
	}
	for _, r := range t.params {
		if named(r.Tool) == name && c.has(r) {
			return r, true
		}
	}
	if r, ok := t.command(c, list); ok {
		return r, true
	}
	if r, ok := t.site(c, list); ok {
		return r, true
	}
	return t.path(c, list)
}

// has says whether one of a call's arguments is what a rule says of it: a text, a number or a truth, as the agent writes it.
func (c *Call) has(r Rule) bool {
	name, value, _ := r.param()
	raw := bytes.TrimSpace(c.args[name])
	var text string
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || string(raw) == "null":
		return false
	case json.Unmarshal(raw, &text) != nil:
		text = string(raw)
	}
	return Matches(value, text)
}

// command is the first rule about commands that a call meets: one of its commands where the list denies or asks, each of them where it allows.
func (t *table) command(c *Call, list List) (Rule, bool) {
	rules := t.commands[c.kind]
	if len(rules) == 0 || c.command == "" {
		return Rule{}, false
	}
	if list == Allow {
		return t.covered(c)
	}
	s := c.script()
	for i := range rules {
		if rules[i].meets(s) {
			return rules[i].rule, true
		}
	}
	return rules[0].rule, s.many // which of them cannot be told
}

// site is the first rule about the host of an address.
func (t *table) site(c *Call, list List) (Rule, bool) {
	var found Rule
	if c.kind != sites {
		return found, false
	}
	for _, host := range c.hosts {
		ok := false
		for _, r := range t.sites {
			if host == "" && list != Allow || hostIs(strings.TrimPrefix(r.Content, "domain:"), host) {
				found, ok = r, true
				break
			}
		}
		if ok != (list == Allow) {
			return found, ok
		}
	}
	return found, list == Allow && len(c.hosts) > 0
}

// hostIs compares a host: * alone is any, *. before a name any below it, and another * stands for any part of one label.
func hostIs(pattern, host string) bool {
	pattern = strings.ToLower(strings.TrimRight(pattern, "."))
	if pattern == "*" || host == "" {
		return pattern == "*"
	}
	want, have := strings.Split(pattern, "."), strings.Split(host, ".")
	if want[0] == "*" && len(have) > len(want) {
		have = have[len(have)-len(want):]
	}
	return slices.EqualFunc(want, have, func(want, have string) bool { return have != "" && Matches(want, have) })
}

// path is the first rule about a file: about one of the places that one of the paths leads to where the list denies or asks, about each of them where
// it allows. Where it denies or asks, it is about the files that known commands are given, too.
func (t *table) path(c *Call, list List) (Rule, bool) {
	if c.kind == shells {
		if len(t.reads)+len(t.edits) == 0 || list == Allow || c.command == "" {
			return Rule{}, false
		}
		s := c.script()
		if r, ok := c.about(t.reads, s.reads, list); ok {
			return r, true
		}
		return c.about(t.edits, s.writes, list)
	}
	if c.changes {
		r, ok := c.about(t.edits, c.paths, list)
		if ok || list != Deny || !rereads[strings.ToLower(c.Tool)] {
			return r, ok
		}
	}
	return c.about(t.reads, c.paths, list)
}

// about is the rule that paths meet.
func (c *Call) about(rules []pathRule, paths []string, list List) (found Rule, ok bool) {
	if len(rules) == 0 || len(paths) == 0 {
		return Rule{}, false
	}
	for _, p := range paths {
		for _, place := range c.place.places(p) {
			i := slices.IndexFunc(rules, func(r pathRule) bool {
				return slices.ContainsFunc(c.place.roots(&r, list), func(root string) bool {
					parts, in := below(root, place)
					return in && r.names(parts)
				})
			})
			switch {
			case i >= 0 && list != Allow:
				return rules[i].rule, true
			case i < 0 && list == Allow:
				return Rule{}, false
			case i >= 0:
				found = rules[i].rule
			}
		}
	}
	return found, list == Allow
}

// Matches says whether a text is of a pattern, in which * stands for any characters.
func Matches(pattern, text string) bool { return policy.Matches(pattern, text) }
