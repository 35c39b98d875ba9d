package permission

import "strings"

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

func (s *Set) layer(managed bool) *layer {
	if managed {
		return s.managed
	}
	return s.own
}

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
	lists map[List]map[string]*entries // by tool
}

type entries struct {
	whole    bool
	exact    map[string]bool
	patterns []string // of deny
}

func newLayer() *layer {
	return &layer{lists: map[List]map[string]*entries{Deny: {}, Allow: {}, Ask: {}}}
}

func (l *layer) add(r Rule, list List) {
	l.count++
	e := l.lists[list][r.Tool]
	if e == nil {
		e = &entries{exact: map[string]bool{}}
		l.lists[list][r.Tool] = e
	}
	switch {
	case r.Content == "":
		e.whole = true
	case strings.Contains(r.Content, "*"):
		e.patterns = append(e.patterns, r.Content)
	default:
		e.exact[r.Content] = true
	}
}

// first is the first rule of a list that a call meets.
func first(c Call, list List, layers ...*layer) (Rule, bool) {
	for _, l := range layers {
		e := l.lists[list][c.Tool]
		if e == nil {
			continue
		}
		if e.whole {
			return Rule{Tool: c.Tool}, true
		}
		for _, text := range c.Contents {
			if e.exact[text] {
				return Rule{c.Tool, text}, true
			}
			for _, p := range e.patterns {
				if Matches(p, text) {
					return Rule{c.Tool, p}, true
				}
			}
		}
	}
	return Rule{}, false
}

// Matches says whether a text is of a pattern, in which * stands for any characters.
func Matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	head, tail := parts[0], parts[len(parts)-1]
	if len(text) < len(head)+len(tail) || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
		return false
	}
	text = text[len(head) : len(text)-len(tail)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}
