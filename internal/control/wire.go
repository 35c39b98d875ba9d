package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"weir/internal/event"
)

// Bounds of one line, in bytes.
const (
	maxRequest = 1 << 20
	maxAnswer  = 64 << 20 // many questions with long argv
)

// head is what every request has.
type head struct {
	Op string `json:"op"`
	By string `json:"by,omitempty"` // who the client says asks
}

type (
	plainRequest struct {
		head
	}
	taintRequest struct {
		head
		Name string   `json:"name"`
		Bits []string `json:"bits"`
		Why  string   `json:"why,omitempty"`
	}
	answerRequest struct {
		head
		ID     string `json:"id"`
		Why    string `json:"why,omitempty"`
		Scope  int    `json:"scope,omitempty"`  // of an approval: the place in the question's chain of who is let out; 0 is 1
		For    string `json:"for,omitempty"`    // of an approval of a tool's call: session or key; empty: once
		Narrow bool   `json:"narrow,omitempty"` // with For: for the same request alone, where the question lists that
		Shown  string `json:"shown,omitempty"`  // the text that the operator had before them
	}
	historyRequest struct {
		head
		Most int `json:"most,omitempty"` // 0: 100
	}
	eventsRequest struct {
		head
		Kinds     []event.Kind `json:"kinds,omitempty"`
		Container string       `json:"container,omitempty"`
		Since     time.Time    `json:"since,omitzero"`
		Text      string       `json:"text,omitempty"`
		Follow    bool         `json:"follow,omitempty"`
	}
	guardRequest struct {
		head
		Name       string   `json:"name,omitempty"`
		Taint      []string `json:"taint,omitempty"`
		Policy     string   `json:"policy,omitempty"`
		PolicyName string   `json:"policy_name,omitempty"`
	}
	cgroupRequest struct {
		head
		Cgroup string   `json:"cgroup"`
		Name   string   `json:"name,omitempty"`
		Taint  []string `json:"taint,omitempty"`
	}
	sessionRequest struct {
		head
		ID string `json:"id"`
	}
	agentRequest struct {
		head
		ID  string `json:"id"`
		PID int    `json:"pid"`
	}
	modeRequest struct {
		head
		Mode string `json:"mode"`
		Why  string `json:"why"`
	}
)

// answer is one line back.
type answer struct {
	OK     bool            `json:"ok"`
	More   bool            `json:"more,omitempty"` // other lines follow
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	Code   int             `json:"code,omitempty"`
}

// readLine reads one line of at most most bytes, without its end.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, Errorf(Usage, "longer than %d bytes", most)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

// decode reads a request of one operation. Keys that it does not know, and more
// than one object, are refused.
func decode(line []byte, request any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(request); err != nil {
		return Errorf(Usage, "read request: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Errorf(Usage, "read request: more than one JSON object on the line: open a connection for each")
	}
	return nil
}

// operation reads which operation a request asks for.
func operation(line []byte) (string, error) {
	var h struct {
		Op *string `json:"op"`
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return "", Errorf(Usage, "read request: %w", err)
	}
	if h.Op == nil || *h.Op == "" {
		return "", Errorf(Usage, `read request: no operation: give "op"`)
	}
	return *h.Op, nil
}
