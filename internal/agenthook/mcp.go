package agenthook

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"weir/internal/bridge/wire"
	"weir/internal/linux"
)

// lastWords is how long answers are waited for after the agent has closed its end.
const lastWords = 5 * time.Second

// Codes of errors, as JSON-RPC has them.
const (
	notJSON   = -32700
	noRequest = -32600
	noMethod  = -32601
	badParams = -32602
)

// The texts are read by a model.
const instructions = "Tools of the machine's sensor. VaultHttpFetch makes an authenticated HTTPS request without showing you the secret, " +
	"also where this container has no network. LocalMemoryRecall reads the operator's notes. A person may be asked first, which can take minutes."

// toolList is what tools/list answers: names, descriptions and schemas. What a call may have the host checks.
//
//go:embed tools.json
var toolList []byte

// versions of MCP that are spoken, the newest first.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// fields has the fields of a JSON object by their exact names.
type fields map[string]json.RawMessage

// text is a field that is a string; ok also tells that it is there.
func (o fields) text(name string) (s string, ok bool) {
	ok = json.Unmarshal(o[name], &s) == nil && bytes.HasPrefix(o[name], []byte(`"`))
	return s, ok
}

func (o fields) object(name string) fields {
	var in fields
	_ = json.Unmarshal(o[name], &in) // what is none has no fields
	return in
}

// mcpServer speaks MCP with one agent. It holds no secret: each call is the host's, over a connection of its own, so that closing it cancels the call.
type mcpServer struct {
	asker
	ctx context.Context

	mu      sync.Mutex // writing is done under it, too
	out     io.Writer
	failed  error
	session string // the agent's, once the host has told it
	open    map[string]context.CancelFunc
	calls   sync.WaitGroup
}

// MCP serves the sensor's tools to an agent that starts servers of tools as programs, until its standard input ends. What is no message is answered
// with an error of JSON-RPC, and the next line is read (F39).
func (w World) MCP(ctx context.Context) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &mcpServer{asker: w.asker(), ctx: ctx, out: w.Stdout, open: map[string]context.CancelFunc{}}
	conn, err := s.dial(ctx)
	if err != nil {
		w.say("weir mcp: the sensor cannot be reached (%v): is the agent started with weir guard, or the socket mounted into the container?", err)
		return 1
	}
	conn.Close()
	in := bufio.NewReaderSize(w.Stdin, 64<<10)
	for {
		line, long, err := linux.ReadLine(in, wire.MaxLine)
		switch {
		case long:
			s.fail(nil, noRequest, "the message is longer than 2 MiB")
		case len(bytes.TrimSpace(line)) > 0:
			s.take(line)
		}
		s.mu.Lock()
		failed := s.failed
		s.mu.Unlock()
		if err == nil && failed == nil {
			continue
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.calls.Wait()
		}()
		select {
		case <-done:
		case <-time.After(lastWords):
		}
		if failed = cmp.Or(failed, err); !errors.Is(failed, io.EOF) {
			w.say("weir mcp: the agent's end failed: %v", plain(failed))
			return 1
		}
		return ok
	}
}

// take handles one message.
func (s *mcpServer) take(line []byte) {
	var m fields
	switch {
	case !utf8.Valid(line):
		s.fail(nil, notJSON, "the message is not UTF-8")
		return
	case !json.Valid(line):
		s.fail(nil, notJSON, "the message is not JSON")
		return
	case json.Unmarshal(line, &m) != nil || m == nil:
		s.fail(nil, noRequest, "the message is not a JSON object; batches are not taken")
		return
	}
	id, called := m["id"], m["id"] != nil
	var number json.Number
	if called && (bytes.Equal(id, []byte("null")) || json.Unmarshal(id, &number) != nil && id[0] != '"') || len(id) > 128 {
		s.fail(nil, noRequest, "the id is neither a text nor a number, or longer than 128 bytes")
		return
	}
	version, _ := m.text("jsonrpc")
	method, known := m.text("method")
	switch {
	case version != "2.0":
		s.fail(id, noRequest, `the message has no "jsonrpc":"2.0"`)
	case !known && m["method"] == nil && called && (m["result"] != nil || m["error"] != nil): // an answer, though nothing was asked
	case !known:
		s.fail(id, noRequest, "the message has no method")
	case !called:
		if method == "notifications/cancelled" {
			s.cancel(m.object("params")["requestId"])
		}
	case m["params"] != nil && m.object("params") == nil:
		s.fail(id, badParams, "params is not a JSON object")
	default:
		s.request(id, method, m.object("params"))
	}
}

func (s *mcpServer) request(id json.RawMessage, method string, params fields) {
	switch method {
	case "initialize":
		version, _ := params.text("protocolVersion")
		if !slices.Contains(versions, version) {
			version = versions[0]
		}
		s.result(id, map[string]any{
			"protocolVersion": version, "capabilities": map[string]any{"tools": struct{}{}}, "serverInfo": map[string]string{"name": "weir", "version": "1"},
			"instructions": instructions,
		})
	case "ping":
		s.result(id, struct{}{})
	case "tools/list":
		s.result(id, map[string]any{"tools": json.RawMessage(toolList)})
	case "tools/call":
		s.call(id, params)
	default:
		s.fail(id, noMethod, "the method is unknown: known are initialize, ping, tools/list and tools/call")
	}
}

// call begins a call of a tool. Its id is taken until it is answered.
func (s *mcpServer) call(id json.RawMessage, params fields) {
	name, ok := params.text("name")
	if !ok || !known(name) {
		s.fail(id, badParams, "name is none of the tools that tools/list names")
		return
	}
	input := params["arguments"]
	if input == nil {
		input = json.RawMessage("{}")
	}
	if params.object("arguments") == nil && params["arguments"] != nil {
		s.fail(id, badParams, "arguments is not a JSON object")
		return
	}
	meta := params.object("_meta")
	toolUse, _ := meta.text("claudecode/toolUseId")
	ctx, cancel := context.WithCancel(s.ctx)
	key := compact(id)
	s.mu.Lock()
	_, twice := s.open[key]
	if !twice {
		s.open[key] = cancel
	}
	r := wire.Request{Type: wire.ToolCall, RequestID: rand.Text(), ToolName: name, ToolInput: input, ToolUseID: toolUse, SessionID: s.session}
	s.mu.Unlock()
	if twice {
		cancel()
		s.fail(id, noRequest, "another request with this id is not answered yet")
		return
	}
	s.calls.Go(func() {
		n := 0
		end, err := s.ask(ctx, r, func(waits string) {
			if token := meta["progressToken"]; token != nil {
				n++
				s.write(message{Method: "notifications/progress", Params: map[string]any{"progressToken": token, "progress": n, "message": waits}})
			}
		})
		s.mu.Lock()
		delete(s.open, key)
		s.session = cmp.Or(s.session, end.SessionID)
		s.mu.Unlock()
		if ctx.Err() != nil {
			return // nobody waits for it
		}
		cancel()
		if err != nil {
			end.Reason = fmt.Sprintf("Denied: the sensor cannot be asked (%v), and without it no call is made. Tell the user.", err)
			end.Meta = map[string]any{"weir/reason": map[string]string{"type": "other", "reason": "unreachable"}}
		}
		made := err == nil && end.Decision == wire.Allow
		text := end.Text
		if !made {
			text = reasonOf(end.Answer)
		}
		res := map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}, "isError": !made}
		if len(end.Meta) > 0 {
			res["_meta"] = end.Meta
		}
		s.result(id, res)
	})
}

// known says whether a tool is on the list.
func known(name string) bool {
	var list []struct{ Name string }
	return json.Unmarshal(toolList, &list) == nil && slices.ContainsFunc(list, func(t struct{ Name string }) bool { return t.Name == name })
}

// cancel ends a call that is not answered yet.
func (s *mcpServer) cancel(id json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop := s.open[compact(id)]; stop != nil {
		stop()
	}
}

// compact is the same for ids that say the same.
func compact(id json.RawMessage) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(id))
	d.UseNumber()
	_ = d.Decode(&v) // it is JSON
	return fmt.Sprintf("%T %v", v, v)
}

// ask has the host make a call; tell is given what it waits for.
func (s *mcpServer) ask(ctx context.Context, r wire.Request, tell func(string)) (wire.CallAnswer, error) {
	line, err := json.Marshal(r)
	if err != nil || len(line) >= wire.MaxLine {
		return wire.CallAnswer{}, errors.New("the call is longer than 2 MiB")
	}
	conn, err := s.put(ctx, line)
	if err != nil {
		return wire.CallAnswer{}, err
	}
	defer conn.Close() // the host gives up a call whose connection is gone
	in := bufio.NewReader(conn)
	for {
		line, long, err := linux.ReadLine(in, wire.MaxLine)
		var a wire.CallAnswer
		switch {
		case err != nil:
			return wire.CallAnswer{}, plain(err)
		case long || json.Unmarshal(line, &a) != nil:
			return wire.CallAnswer{}, errors.New("its answer cannot be read")
		case a.RequestID != r.RequestID && (a.RequestID != "" || a.Decision == wire.Allow):
			return wire.CallAnswer{}, errors.New("its answer is for another question")
		case a.Progress != "":
			tell(a.Progress)
		default:
			return a, nil
		}
	}
}

func (s *mcpServer) result(id json.RawMessage, result any) {
	s.write(message{ID: id, Result: result})
}

// fail answers with an error; of a message whose id cannot be read, with none.
func (s *mcpServer) fail(id json.RawMessage, code int, text string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	s.write(message{ID: id, Error: map[string]any{"code": code, "message": strings.ToUpper(text[:1]) + text[1:] + "."}})
}

// message is what the agent is sent.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   any             `json:"error,omitempty"`
}

func (s *mcpServer) write(m message) {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.failed == nil {
		_, err = s.out.Write(append(line, '\n'))
	}
	s.failed = cmp.Or(s.failed, err)
}
