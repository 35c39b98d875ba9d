package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/gitguard"
	"weir/internal/permission"
	"weir/internal/strict"
	"weir/internal/toolguard"
)

// called is one call of a tool, as the stages see it.
type called struct {
	who     Asker
	tool    string
	input   json.RawMessage
	command string // of a shell; empty for other tools
	dir     string
	public  bool
	mode    string // of the agent's own permissions
	confirm bool   // a permission rule wants a person asked
	told    wire.Request

	carried bool   // the host makes the call itself, when all have let it
	job     Job    // then
	code    string // of the denial, on the channel of tool calls
}

// text is what events call it.
func (c *called) text() string {
	if c.command != "" {
		return c.command
	}
	return c.tool
}

// judge sends a call through all that may deny it, in this order; the first denial is the answer, and nothing behind it is asked.
// Empty lets the call be made.
func (s *Server) judge(ctx context.Context, c *called) string {
	for _, stage := range [...]struct {
		ask  func(context.Context, *called) string
		code string
	}{
		{s.killSwitch, toolguard.Disabled},     // the operator's file: every tool that changes something is off (K10)
		{s.guard, toolguard.Blocked},           // what is catastrophic by itself, in every mode and for everybody (K1)
		{s.prepare, toolguard.InvalidArgs},     // where the host makes the call: whether it can
		{s.permission, toolguard.Unauthorized}, // the rules of permissions.yaml (P4)
		{s.hook, toolguard.Unauthorized},       // the built-in hooks, then the operator's (G18)
		{s.gate, toolguard.Unauthorized},       // taint, reviewer, person; then what the call is about to read taints
	} {
		if reason := stage.ask(ctx, c); reason != "" {
			c.code = cmp.Or(c.code, stage.code)
			if s.own(c) {
				s.tools.Denied(c.who, c.asOwn(), reason)
			}
			return reason
		}
	}
	return ""
}

// Guard refuses calls that are catastrophic by themselves; *ruleset.Guard is the only one outside of tests.
type Guard interface {
	CheckIn(tool string, args json.RawMessage, resolve func(path string) (places []string, whole bool)) (toolguard.Hit, bool)
}

// Permissions are rules that people wrote for tools; *permission.Set are.
type Permissions interface {
	Check(c permission.Call, mode string) permission.Result
}

func (s *Server) killSwitch(_ context.Context, c *called) string {
	if !s.Killed(c.tool) {
		return ""
	}
	s.tell(c, event.Decision{Decision: "deny", Reason: "kill_switch", Text: "the kill switch is on", Tool: c.tool}, c.tool)
	return wire.Killed
}

func (s *Server) guard(_ context.Context, c *called) string {
	hit, ok := s.rules.Load().Guard.CheckIn(c.tool, c.input, wire.SeenBy(strconv.Itoa(c.who.Process.PID), c.dir))
	if !ok {
		return ""
	}
	s.tell(c, event.Decision{Decision: "deny", Reason: "guard", Text: "it " + hit.Rule.Refuses, Tool: c.tool, Rule: hit.Rule.ID}, hit.Excerpt)
	return hit.Message()
}

// tell writes a denial that stands whether or not it could be written.
func (s *Server) tell(c *called, d event.Decision, excerpt string) {
	if err := s.host.Deny(c.who, excerpt, d); err != nil {
		s.logger.WithError(err).WithField("rule", d.Rule).Error("write a denial of the bridge")
	}
}

func (s *Server) permission(_ context.Context, c *called) string {
	asked := permission.Place{Dir: c.dir, Resolve: wire.SeenBy(strconv.Itoa(c.who.Process.PID), c.dir)}.Call(c.tool, c.input)
	if c.confirms(asked.Tool) {
		asked.Interactive = true // only the operator's policy and rules take that away, no mode (K11)
		asked.Default = min(asked.Default, permission.Asked)
	}
	result := s.rules.Load().Permissions.Check(asked, c.mode)
	switch result.Decision {
	case permission.Allowed:
		c.confirm = c.carried && (result.Reason.Type != "rule" || c.who.Mode == "seal") // what the host does itself, a person allows, or a rule that names it (K11)
		return ""
	case permission.Asked:
		c.confirm = true
		return ""
	}
	why := result.Reason.Reason
	if result.Reason.Type == "rule" {
		why = "the rule " + strict.Quote(result.Reason.Rule)
	}
	reason := "Denied by the permission rules of this machine (" + why + "). Go on without it, or ask the user."
	if reason, denied := s.builtIn(c.who, c.text(), "permission", why, reason); denied {
		return reason
	}
	return ""
}

// confirms says whether a person is asked about a call where no rule counts (K11): about tools that the policy lists, and those that administer a
// machine, always; once something tainted the container, about those that change something and are not known to stay inside. Commands of shells are
// judged by the cascade, in which the gate asks, and those that a server of tools runs also as its calls; for what the host carries out a rule by
// name is needed.
func (c *called) confirms(tool string) bool {
	listed := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return permission.Matches(p, c.tool) || permission.Matches(p, tool) })
	}
	switch {
	case c.carried, listed(c.who.Unasked):
		return false
	case slices.Contains(c.who.Confirm, c.tool), slices.Contains(c.who.Confirm, tool):
		return true
	case c.command != "" && !wire.IsServed(c.tool), !toolguard.Changes(tool):
		return false
	case listed(c.who.Confirm), toolguard.Administers(tool):
		return true
	}
	return (len(c.who.Container.Taint) > 0 || c.who.Mode == "seal") && !wire.IsLocal(tool)
}

func (s *Server) hook(ctx context.Context, c *called) string {
	if found, ok := gitguard.Check(c.command, c.dir); ok {
		if reason, denied := s.builtIn(c.who, c.command, "git_guard", found.What, gitReason(found)); denied {
			return reason
		}
	}
	if wire.IsFetch(c.tool, c.input) {
		if reason, denied := s.builtIn(c.who, c.tool, "web_fetch", "a direct web fetch", textWebFetch); denied {
			return reason
		}
	}
	return s.hooks(ctx, c.who, c.text(), c.tool, c.input)
}

func (s *Server) gate(ctx context.Context, c *called) string {
	if reason, ok := s.owned(c); ok {
		return reason // who serves the tool asks, when the call is made
	}
	if free, ok := ctx.Value(judged{}).(func()); ok {
		free()
	}
	c.who.Process.Dir = c.dir
	r := gate.Request{Person: c.command != "" && gitguard.Pushes(c.command), Container: c.who.Container, TaintRead: c.who.TaintRead, Process: c.who.Process, Command: c.command, Dir: c.dir, Git: gitguard.Repositories(c.who.Container.ID, c.who.Process.PID, c.who.Process.Start), Ask: gate.Command, Mode: c.who.Mode, AskFlagged: c.who.AskFlagged, Policy: c.who.Policy}
	if c.confirm && c.who.Mode != "observe" {
		if reason := s.confirmed(ctx, c, r); reason != "" {
			return reason
		}
	}
	if c.command != "" {
		if v := s.host.Decide(ctx, r); v.Decision != gate.Allow {
			return explain(v)
		}
	}
	if c.command != "" && !wire.IsServed(c.tool) {
		return ""
	}
	if err := s.host.Called(c.who, c.tool, c.public); err != nil {
		s.logger.WithError(err).Error("taint for the call of a tool")
		return textNotTainted
	}
	return ""
}
