package toolguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// required is the argument without which a tool of the tool-call channel does nothing.
var required = map[string][]string{
	"powershell_exec": {"script"}, "cmd_exec": {"command"}, "bash": {"command"}, "shell": {"command"}, "fs_read": {"path", "file_path"}, "fs_write": {"path", "file_path"}, "fs_delete": {"path", "file_path"},
	"fs_list": {"path"}, "agent_update": {"url"},
}

var allowed = json.RawMessage(`{"decision":"allow"}`)

// Answer answers one line of the tool-call channel (K9) with what stands before every handler: the kill switch, then the guard. A call that passes
// is answered with {"decision":"allow"}; nothing is carried out.
func (g *Guard) Answer(line []byte, killed func() bool) Answer {
	r, err := DecodeRequest(line)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Code: Internal, Message: err.Error()}
		}
		return Answer{ID: r.ID, Error: e}
	}
	if Changes(r.Tool) && killed() {
		return FailAnswer(r.ID, Disabled, "the operator has turned off every tool that changes something")
	}
	if hit, ok := g.Check(r.Tool, r.Args); ok {
		return FailAnswer(r.ID, Blocked, hit.Message())
	}
	if !Known(r.Tool) {
		return FailAnswer(r.ID, UnknownTool, fmt.Sprintf("the tool %q is unknown", r.Tool))
	}
	if names := required[strings.ToLower(r.Tool)]; names != nil && !given(r.Args, names) {
		return FailAnswer(r.ID, InvalidArgs, fmt.Sprintf("%s needs %s as a text", r.Tool, names[0]))
	}
	return Answer{ID: r.ID, OK: true, Result: allowed}
}

// given says whether one of the names stands for a text, or a list of texts.
func given(args json.RawMessage, names []string) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return false
	}
	for _, n := range names {
		var text string
		var list []string
		if json.Unmarshal(all[n], &text) == nil && text != "" || json.Unmarshal(all[n], &list) == nil && len(list) > 0 {
			return true
		}
	}
	return false
}
