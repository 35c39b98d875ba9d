package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
)

// Host is the sensor, as the bridge needs it.
type Host interface {
	// Who establishes the container that a process is in now. An error means that it is in none, or that this cannot be told.
	Who(pid int) (Asker, error)
	// Decide is the gate's, which blocks until somebody has decided.
	Decide(context.Context, gate.Request) gate.Verdict
	// Confirm asks a person about the call of a tool, whatever the taint; the approval is used up.
	Confirm(context.Context, gate.Request) gate.Verdict
	// Deny writes a denial that is not the gate's; an error means that it was not written.
	Deny(a Asker, command string, d event.Decision) error
	// Called taints the container for what the call of a tool is about to read (G2); an error means that it was not.
	Called(a Asker, tool string, public bool) error
}

// Asker is who asks, as the host established it.
type Asker struct {
	Container  event.Container
	Process    event.Process
	TaintRead  time.Duration // since boot, when the container's taint was read
	Mode       string        // observe, enforce or seal
	AskFlagged bool          // a person is asked about what the reviewer flags (verdict.Request)
	Policy     string        // its version
	Hooks      string        // directory of the operator's hooks; empty: none
	Confirm    []string      // tools about whose calls a person is asked, whatever the taint (K11); * stands for any text
	Unasked    []string      // tools that are called without asking a person; * stands for any text
}

const maxID = 128 // bytes of each id of a request, and of its mode

// fits says whether a request's ids are as long as they may be: some are kept.
func fits(r wire.Request) bool {
	return max(len(r.RequestID), len(r.SessionID), len(r.PromptID), len(r.ToolUseID), len(r.AgentID), len(r.PermissionMode)) <= maxID
}

// who is who asks, at this moment.
func (c *client) who() (Asker, error) {
	who, err := c.server.host.Who(c.peer.pid)
	if err == nil && !c.peer.alive() { // in this order: what was read is the peer's, or the peer is gone
		err = errGone
	}
	return who, err
}

var errGone = errors.New("it has ended")

// Answer decides on one line, or file, for who establishes the asker after it was read. What who cannot tell is denied.
func (s *Server) Answer(ctx context.Context, line []byte, who func() (Asker, error)) wire.Answer {
	var r wire.Request
	if err := json.Unmarshal(line, &r); err != nil {
		return deny("", textJSON)
	}
	if !fits(r) {
		return deny("", textID)
	}
	asker, err := who()
	if err != nil {
		return deny(r.RequestID, textStranger)
	}
	if reason := s.check(ctx, asker, r); reason != "" {
		return deny(r.RequestID, reason)
	}
	return wire.Answer{RequestID: r.RequestID, Decision: wire.Allow}
}

func deny(id, reason string) wire.Answer {
	return wire.Answer{RequestID: id, Decision: wire.Deny, Reason: reason}
}

// check says why a request is denied; empty allows it.
func (s *Server) check(ctx context.Context, who Asker, r wire.Request) string {
	c := &called{who: who, tool: r.ToolName, input: r.ToolInput, dir: r.Dir, public: r.PublicSource, mode: r.PermissionMode, told: r}
	shell := false
	switch r.Type {
	case wire.BashCheck:
		c.tool, c.command, shell = "Bash", r.Command, true
		c.input = marshal(map[string]string{"command": r.Command})
	case wire.ToolCheck:
		c.command, shell = wire.ShellText(r.ToolName, r.ToolInput)
	default:
		return textType
	}
	switch {
	case shell && strings.TrimSpace(c.command) == "":
		return textEmpty
	case c.tool == "":
		return textNoTool
	}
	if shell {
		c.dir = wire.Dir(strconv.Itoa(who.Process.PID), wire.ShellDir(c.tool, c.input, r.Dir))
	}
	return s.judge(ctx, c)
}

// builtIn denies by a built-in hook, unless the mode denies nothing.
func (s *Server) builtIn(who Asker, command, code, what, reason string) (string, bool) {
	d := event.Decision{Decision: "deny", Reason: code, Text: what}
	observe := who.Mode == "observe"
	if observe {
		d.Decision, d.Text = "allow", "would have been denied: "+what
	}
	err := s.host.Deny(who, command, d)
	if err != nil {
		s.logger.WithError(err).Error("write a denial of the bridge")
	}
	return reason, !observe || err != nil // without the log there is nothing to observe with (G9)
}

func marshal(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}
