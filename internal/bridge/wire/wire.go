package wire

import (
	"encoding/json"
	"strings"
	"time"
)

// MaxLine bounds a line, its newline included.
const MaxLine = 2 << 20

// Where a container finds the bridge.
const (
	Variable = "WEIR_BRIDGE"                  // names the socket, in the environment
	Default  = "/run/weir/bridge/shared.sock" // where nothing is named
)

// Where an agent asks that has only a folder in common with the host: it makes ID.request, and the host ID.answer. Each holds one line
// without its newline. Names that begin with a dot are files that are not whole yet.
const (
	FolderVariable = "WEIR_IPC"       // names the folder, in the environment
	Folder         = "/workspace/ipc" // where nothing is named
	RequestSuffix  = ".request"
	AnswerSuffix   = ".answer"
	TempPrefix     = ".weir-"
	Alive          = "sensor.alive" // the host makes it anew every AliveEvery
	AliveEvery     = 2 * time.Second
	maxName        = 64 // bytes of an ID
)

// Stamp is the extended attribute with the SHA-256 of what the host wrote into a file. Linux lets nobody set it without CAP_SYS_ADMIN outside
// user namespaces: so an agent that is root, and could write the file, cannot make it say something else.
const Stamp = "security.weir"

// FolderID is the ID of a request's or an answer's file name; empty: it is none.
func FolderID(name, suffix string) string {
	id, ok := strings.CutSuffix(name, suffix)
	if !ok || len(id) > maxName || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return ""
	}
	return id
}

// The types of requests.
const (
	BashCheck = "security:bash_check" // may Command run?
	ToolCheck = "security:tool_check" // may ToolName be called with ToolInput?
	ToolCall  = "security:tool_call"  // call ToolName, which is the host's own, with ToolInput
)

// The decisions.
const (
	Allow = "allow"
	Deny  = "deny"
)

// Killed is what a model reads where the kill switch is on, whichever end has seen that.
const Killed = "Denied: the operator has turned off every tool that changes something. Only reading goes on. Tell the user, and do not try other ways."

// Request is one question. What is not known is left out; fields that this version does not know are skipped.
type Request struct {
	Type      string          `json:"type"`
	RequestID string          `json:"request_id"` // chosen by the client, echoed; at most 128 bytes
	Command   string          `json:"command,omitempty"`
	Dir       string          `json:"cwd,omitempty"` // where the command would run
	ToolName  string          `json:"tool_name,omitempty"`
	ToolInput json.RawMessage `json:"tool_input,omitempty"`
	// PublicSource: the tool's description says that anybody can write what it reads.
	PublicSource bool `json:"public_source,omitempty"`

	// What the agent's own event says of the call (P5, P6), each at most 128 bytes.
	SessionID      string `json:"session_id,omitempty"`
	PromptID       string `json:"prompt_id,omitempty"` // of the turn
	ToolUseID      string `json:"tool_use_id,omitempty"`
	AgentID        string `json:"agent_id,omitempty"`        // of a sub-agent or a fork; empty: the main agent calls
	PermissionMode string `json:"permission_mode,omitempty"` // default, plan, bypassPermissions, dontAsk, …
}

// Answer is the answer to one request. Only "allow" allows.
type Answer struct {
	RequestID string `json:"request_id"`
	Decision  string `json:"decision"`
	Reason    string `json:"reason"` // for the model that acts in the container; empty when it is allowed
}

// CallAnswer is one line of the answer to a ToolCall: what it waits for, any number of times, and then its end.
type CallAnswer struct {
	Answer
	Progress  string         `json:"progress,omitempty"`   // what the call waits for: this line is not the end
	Text      string         `json:"text,omitempty"`       // what the model reads, of a call that was made
	Meta      map[string]any `json:"meta,omitempty"`       // more, for machines
	SessionID string         `json:"session_id,omitempty"` // the agent's, whose hook announced the call: later calls of the same client are to name it
}
