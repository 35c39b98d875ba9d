package bridge

import (
	"context"
	"encoding/json"

	"weir/internal/bridge/wire"
)

// Tools are tools of the sensor's own, which agents call by weir-hook mcp.
type Tools interface {
	// Owns says whether a tool is one of them, by the name an agent calls it.
	Owns(tool string) bool
	// Announce takes what a hook tells of a call that is about to be made, and says why it is denied; empty: it may be made.
	Announce(who Asker, r wire.Request) string
	// Denied takes what a hook was answered of a call of theirs that may not be made.
	Denied(who Asker, r wire.Request, reason string)
	// Call makes a call; tell is given what it waits for. who says who asks, anew each time.
	Call(ctx context.Context, who func() (Asker, error), r wire.Request, tell func(waits string)) wire.CallAnswer
}

// Offer has calls of tools made. It is called before Listen.
func (s *Server) Offer(t Tools) { s.tools = t }

// owned handles the announcement of a call of an own tool; ok tells that it was one. What is announced is the call that the stages before saw,
// and no shell command is one, whatever tool its request names beside it.
func (s *Server) owned(c *called) (reason string, ok bool) {
	if !s.own(c) {
		return "", false
	}
	reason = s.tools.Announce(c.who, c.asOwn())
	if reason == "" {
		return "", true
	}
	// Where the mode denies nothing, the call is still not announced, so that it is denied when it is made.
	reason, denied := s.builtIn(c.who, c.tool, "tool_refused", reason, reason)
	if !denied {
		s.tools.Denied(c.who, c.asOwn(), reason)
		return "", true
	}
	return reason, true
}

func (s *Server) own(c *called) bool {
	return s.tools != nil && c.command == "" && !c.carried && s.tools.Owns(c.tool)
}

// asOwn is the announcement of a call.
func (c *called) asOwn() wire.Request {
	r := c.told
	r.ToolName, r.ToolInput = c.tool, c.input
	return r
}

// asksOwn gives the request of a line that calls one of the sensor's own tools.
func (s *Server) asksOwn(line []byte) (r wire.Request, ok bool) {
	ok = s.tools != nil && json.Unmarshal(line, &r) == nil && r.Type == wire.ToolCall && fits(r)
	return r, ok
}
