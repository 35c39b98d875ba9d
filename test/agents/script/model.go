package script

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// Call is what the model asks for, and what it was told in the next request.
type Call struct {
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Result string          `json:"result"` // as JSON
}

// model answers with one call after the other, then with a text.
type model struct {
	mu    sync.Mutex
	calls []Call
	next  int
	seen  map[string]bool
	tools [][]string
	over  chan struct{} // closed when it has been told the result of its last call
	once  sync.Once
}

// serve listens on loopback and returns the address. Behind a proxy it speaks TLS, and knows one key.
func (m *model) serve(p *Proxy) (string, error) {
	m.seen = map[string]bool{}
	if p != nil {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.note(r)
			m.answer(w, r)
		}))
		p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		return s.URL, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go http.Serve(l, http.HandlerFunc(m.answer))
	return "http://" + l.Addr().String(), nil
}

// Serve answers on l, until it is closed, as the model of a script. told are its calls, with what the model was told.
func Serve(l net.Listener, calls []Call) (told func() []Call) {
	m := &model{calls: calls, seen: map[string]bool{}, over: make(chan struct{})}
	go http.Serve(l, http.HandlerFunc(m.answer))
	return func() []Call {
		m.mu.Lock()
		defer m.mu.Unlock()
		return slices.Clone(m.calls)
	}
}

// note keeps the result of the call that was asked for last.
func (m *model) note(id string, result any) {
	data, err := json.Marshal(result)
	if err != nil || m.seen[id] {
		return
	}
	var n int
	if _, err := fmt.Sscanf(id, "call_%d", &n); err == nil && n < len(m.calls) {
		m.seen[id] = true
		m.calls[n].Result = string(data)
	}
}

func (m *model) answer(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, err := io.ReadAll(r.Body)
	var body struct {
		Model    string           `json:"model"`
		Stream   bool             `json:"stream"`
		Tools    []map[string]any `json:"tools"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Input []map[string]any `json:"input"`
	}
	if r.Method != http.MethodPost || err != nil || json.Unmarshal(data, &body) != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var events []map[string]any
	switch {
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		io.WriteString(w, `{"input_tokens":1}`)
		return
	case strings.HasSuffix(r.URL.Path, "/messages"):
		for _, message := range body.Messages {
			var parts []map[string]any
			if json.Unmarshal(message.Content, &parts) != nil {
				continue // a text
			}
			for _, p := range parts {
				if p["type"] == "tool_result" {
					m.note(fmt.Sprint(p["tool_use_id"]), p)
				}
			}
		}
		if !body.Stream {
			fmt.Fprintf(w, `{"id":"m","type":"message","role":"assistant","model":%q,"content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`, body.Model)
			return
		}
		m.given(body.Tools)
		events = m.claude(body.Model, len(body.Tools) > 0)
	case strings.HasSuffix(r.URL.Path, "/responses"):
		for _, item := range body.Input {
			if item["type"] == "function_call_output" || item["type"] == "custom_tool_call_output" {
				m.note(fmt.Sprint(item["call_id"]), item)
			}
		}
		events = m.codex()
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], data)
	}
}

// given notes which tools a request has in full.
func (m *model) given(tools []map[string]any) {
	var names []string
	for _, t := range tools {
		if name, ok := t["name"].(string); ok && t["defer_loading"] != true {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		m.tools = append(m.tools, names)
	}
}

// turn is the next call; false: all were made.
func (m *model) turn() (Call, string, bool) {
	if m.next >= len(m.calls) {
		m.once.Do(func() { close(m.over) })
		return Call{}, "", false
	}
	m.next++
	return m.calls[m.next-1], fmt.Sprintf("call_%d", m.next-1), true
}

// Obj is a JSON object.
type Obj = map[string]any

// claude is an answer of the Messages API.
func (m *model) claude(name string, tools bool) []Obj {
	block, delta, stop := Obj{"type": "text", "text": ""}, Obj{"type": "text_delta", "text": "done"}, "end_turn"
	if tools { // side questions of the agent's own have none
		if c, id, ok := m.turn(); ok {
			block, stop = Obj{"type": "tool_use", "id": id, "name": c.Tool, "input": Obj{}}, "tool_use"
			delta = Obj{"type": "input_json_delta", "partial_json": string(c.Input)}
		}
	}
	return []Obj{
		{"type": "message_start", "message": Obj{
			"id": fmt.Sprint("m", m.next), "type": "message", "role": "assistant", "model": name, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
			"usage": Obj{"input_tokens": 1, "output_tokens": 1},
		}},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": Obj{"stop_reason": stop, "stop_sequence": nil}, "usage": Obj{"output_tokens": 1}},
		{"type": "message_stop"},
	}
}

// codex is an answer of the Responses API.
func (m *model) codex() []Obj {
	item := Obj{"type": "message", "id": "m", "role": "assistant", "content": []any{Obj{"type": "output_text", "text": "done"}}}
	if c, id, ok := m.turn(); ok {
		item = Obj{"type": "function_call", "id": "f" + id, "call_id": id, "name": c.Tool, "arguments": string(c.Input)}
		if text := ""; json.Unmarshal(c.Input, &text) == nil { // a tool that takes a text as it is
			item = Obj{"type": "custom_tool_call", "id": "f" + id, "call_id": id, "name": c.Tool, "input": text}
		}
	}
	return []Obj{
		{"type": "response.created", "response": Obj{"id": fmt.Sprint("r", m.next)}},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": Obj{"id": "r", "usage": Obj{
			"input_tokens": 1, "input_tokens_details": nil, "output_tokens": 1, "output_tokens_details": nil, "total_tokens": 2,
		}}},
	}
}
