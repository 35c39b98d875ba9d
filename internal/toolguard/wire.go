package toolguard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"weir/internal/strict"
)

// Version is what this end speaks; Older is what it answers too.
const (
	WireVersion = "0.5"
	Older       = "0.4"
)

// Limits on a request, in bytes.
const (
	MaxLine = 8 << 20
	maxID   = 128
	maxTool = 256
)

// The codes of errors. 0.4 has all but Blocked; an end that speaks 0.4 takes it for an error like any other.
const (
	UnknownTool  = "unknown_tool"
	InvalidArgs  = "invalid_args"
	Unauthorized = "unauthorized"
	Disabled     = "disabled" // by the kill switch
	Timeout      = "timeout"
	Internal     = "internal"
	Blocked      = "blocked" // by the guard; since 0.5
)

// Request asks for one call of a tool.
type Request struct {
	V    string          `json:"v"`
	ID   string          `json:"id"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// Answer is the answer to one request: Result if OK, else Error.
type Answer struct {
	ID     string          `json:"id"`
	OK     bool            `json:"ok"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Error says why a call was not made.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// FailAnswer is an answer with an error.
func FailAnswer(id, code, message string) Answer { return Answer{ID: id, Error: &Error{code, message}} }

// DecodeRequest reads one request. What is wrong with it is an Error with the code invalid_args; the request then has the ID, if that could be read.
func DecodeRequest(line []byte) (Request, error) {
	var r Request
	invalid := func(format string, args ...any) (Request, error) {
		return Request{ID: r.ID}, &Error{InvalidArgs, fmt.Sprintf(format, args...)}
	}
	if len(line) > MaxLine {
		return invalid("the request is longer than %d bytes", MaxLine)
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	if err := dec.Decode(&r); err != nil {
		r.ID = ""
		return invalid(`the request is no JSON object of the kind {"v":"0.5","id":"…","tool":"…","args":{…}}`)
	}
	if !strict.Ended(dec) {
		return invalid("the line has more than one request")
	}
	switch {
	case len(r.ID) > maxID || !utf8.ValidString(r.ID):
		r.ID = ""
		return invalid("the id is longer than %d bytes", maxID)
	case r.V != WireVersion && r.V != Older && r.V != "":
		return invalid("the version %.20q is unknown: speak %s or %s", r.V, WireVersion, Older)
	case r.Tool == "" || len(r.Tool) > maxTool:
		return invalid("the request names no tool, or one that is longer than %d bytes", maxTool)
	}
	return r, nil
}
