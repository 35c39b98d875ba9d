package agenthook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"strings"
)

// The exit codes of an agent's hook. Any other lets the call pass.
const (
	ok    = 0
	block = 2
)

// maxInput bounds what an agent hands to its hook.
const maxInput = 64 << 20

// World is what a hook is started with.
type World struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Self           string // the command that runs a hook, for settings: weir-hook, or weir hook
	Home           string // of the user

	trust      func(*net.UnixConn) error // tests answer from their own process; nil: outside
	killSwitch string                    // tests have their own; empty: self.KillSwitch
}

// call is a tool call that an agent is about to make, as Claude Code and Codex hand it to a PreToolUse hook; more than this is left alone.
type call struct {
	Event    string          `json:"hook_event_name"`
	ToolName string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	Dir      string          `json:"cwd"`
	Session  string          `json:"session_id"`
	Prompt   string          `json:"prompt_id"`
	ToolUse  string          `json:"tool_use_id"`
	Agent    string          `json:"agent_id"` // of a sub-agent or a fork; the main agent has none
	Mode     string          `json:"permission_mode"`
}

type hookOutput struct {
	Specific specific `json:"hookSpecificOutput"`
}

type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision"`
	Reason   string `json:"permissionDecisionReason"`
}

// PreToolUse is the hook of Claude Code and of Codex: one call on standard input. A call that passes prints nothing, so that the agent's
// own rules still ask their user; a denial is JSON with exit code 0. What goes wrong is exit code 2 with a reason, which denies too.
func (w World) PreToolUse(ctx context.Context) (code int) {
	defer func() {
		if err := recover(); err != nil {
			w.say("Denied: the hook of the command gate failed: %v", err)
			code = block
		}
	}()
	var in call
	if err := w.read(&in); err != nil {
		return w.blocked(err)
	}
	if in.Event != "" && in.Event != "PreToolUse" {
		return ok
	}
	if in.ToolName == "" {
		return w.blocked(errors.New("it names no tool"))
	}
	reason := w.asker().check(ctx, in)
	if reason == "" {
		return ok
	}
	if err := w.write(hookOutput{specific{"PreToolUse", "deny", reason}}); err != nil {
		w.say("%s", reason)
		return block
	}
	return ok
}

// Generic answers {"tool_name","tool_input"} with {"allowed","reason"}.
func (w World) Generic(ctx context.Context) int {
	var in call
	result := struct {
		Allowed bool   `json:"allowed"`
		Reason  string `json:"reason"`
	}{}
	if err := w.read(&in); err != nil {
		result.Reason = "Denied: the call cannot be read: " + err.Error() + "."
	} else if in.ToolName == "" {
		result.Reason = "Denied: the call names no tool."
	} else {
		result.Reason = w.asker().check(ctx, in)
		result.Allowed = result.Reason == ""
	}
	if err := w.write(result); err != nil {
		return block
	}
	return ok
}

// read takes one JSON object.
func (w World) read(into *call) error {
	data, err := io.ReadAll(io.LimitReader(w.Stdin, maxInput+1))
	switch {
	case err != nil:
		return errors.New("standard input cannot be read: it is to be a file or a pipe with the call")
	case len(data) > maxInput:
		return errors.New("standard input is longer than 64 MiB")
	}
	var fields map[string]json.RawMessage
	err = json.Unmarshal(data, &fields)
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return name != strings.ToLower(name) }) // the decoder takes fields in any case, and agents do not
	if err == nil {
		data, err = json.Marshal(fields)
	}
	if err != nil || json.Unmarshal(data, into) != nil {
		return errors.New(`standard input is not a JSON object with "tool_name" and "tool_input"`)
	}
	if into.Dir == "" {
		into.Dir, _ = os.Getwd() // unknown is fine
	}
	return nil
}

func (w World) blocked(err error) int {
	w.say("Denied: the call cannot be checked: %v.", err)
	return block
}

func (w World) write(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Stdout.Write(append(data, '\n'))
	return err
}

func (w World) say(format string, args ...any) {
	// nobody may listen any more
	_, _ = fmt.Fprintf(w.Stderr, format+"\n", args...)
}
