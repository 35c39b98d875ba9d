package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"weir/internal/gate"
	"weir/internal/toolguard"
)

// Carrier carries out the calls of tools that are the host's own work (K9).
type Carrier interface {
	// Prepare reads the arguments of a call, and does nothing yet. An error is the answer.
	Prepare(tool string, args json.RawMessage) (Job, *toolguard.Error)
}

// Job is one call that may be made once all have let it.
type Job struct {
	Args json.RawMessage // as they were read, each once: what rules and hooks see
	Asks string          // what a person is asked
	Run  func(context.Context, Asker) (json.RawMessage, *toolguard.Error)
}

// Carry has calls of tools carried out. It is called before Listen.
func (s *Server) Carry(c Carrier) { s.carrier = c }

// asksCall says whether a line is of the channel of tool calls, and not a question about one (G20).
func asksCall(line []byte) bool {
	var head struct {
		Type json.RawMessage `json:"type"`
		V    json.RawMessage `json:"v"`
		Tool json.RawMessage `json:"tool"`
	}
	return json.Unmarshal(line, &head) == nil && head.Type == nil && (head.V != nil || head.Tool != nil)
}

// call answers one line of the channel of tool calls: what all have let be made is made.
func (s *Server) call(ctx context.Context, line []byte, who func() (Asker, error)) toolguard.Answer {
	r, err := toolguard.DecodeRequest(line)
	if err != nil {
		var e *toolguard.Error
		if !errors.As(err, &e) {
			e = &toolguard.Error{Code: toolguard.Internal, Message: err.Error()}
		}
		return toolguard.Answer{ID: r.ID, Error: e}
	}
	asker, err := who()
	if err != nil {
		return toolguard.FailAnswer(r.ID, toolguard.Unauthorized, textStranger)
	}
	if asker.Mode == "observe" { // that mode is about what agents do: nothing of it is a reason for the host to do something itself
		asker.Mode = "enforce"
	}
	c := &called{who: asker, tool: r.Tool, input: r.Args, carried: true}
	if reason := s.judge(ctx, c); reason != "" {
		return toolguard.FailAnswer(r.ID, c.code, reason)
	}
	if reason := s.killSwitch(ctx, c); reason != "" { // somebody may have taken an hour to answer
		return toolguard.FailAnswer(r.ID, toolguard.Disabled, reason)
	}
	result, failed := c.job.Run(ctx, asker)
	return toolguard.Answer{ID: r.ID, OK: failed == nil, Result: result, Error: failed}
}

// prepare is asked of calls that the host carries out.
func (s *Server) prepare(_ context.Context, c *called) string {
	if !c.carried {
		return ""
	}
	failed := &toolguard.Error{Code: toolguard.UnknownTool, Message: fmt.Sprintf("the tool %.64q is unknown here", c.tool)}
	if s.carrier != nil {
		c.job, failed = s.carrier.Prepare(c.tool, c.input)
	}
	if failed != nil {
		c.code = failed.Code
		return failed.Message
	}
	c.input = c.job.Args
	return ""
}

// confirmed asks a person about a call; empty: it was allowed.
func (s *Server) confirmed(ctx context.Context, c *called, r gate.Request) string {
	r.Command = c.tool + " " + string(c.input)
	if c.carried {
		r.Command = c.job.Asks
	}
	v := s.host.Confirm(ctx, r)
	if v.Decision == gate.Allow {
		return ""
	}
	if v.Reason == gate.Timeout {
		c.code = toolguard.Timeout
	}
	if c.command == "" {
		return explainCall(v)
	}
	return explain(v)
}
