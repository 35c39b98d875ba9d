package model

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/classify"

	"weir/internal/cop"
)

const testKey = "test-key-0123456789-not-real"

// fake is a model's server: real HTTP on loopback, spoken to as the policy says.
type fake struct {
	*httptest.Server
	kind  string // AnthropicName or OpenAIName
	calls atomic.Int64
	seen  chan seen // what was asked, as much as is read
	// answer replaces the usual answer.
	answer func(w http.ResponseWriter, r *http.Request, usual func(text string))
}

// seen is one request that arrived.
type seen struct {
	path, key           string
	model, system, user string
	format              string
	raw                 string
}

func serve(t testing.TB, kind string, answer func(w http.ResponseWriter, r *http.Request, usual func(string))) *fake {
	t.Helper()
	f := &fake{kind: kind, seen: make(chan seen, 4096), answer: answer}
	f.Server = httptest.NewServer(http.HandlerFunc(f.handle))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) handle(w http.ResponseWriter, r *http.Request) {
	f.calls.Add(1)
	body, _ := io.ReadAll(r.Body)
	f.seen <- f.read(r, body)
	f.answer(w, r, func(text string) { f.usual(w, text) })
}

// read takes a request apart as the service would.
func (f *fake) read(r *http.Request, body []byte) seen {
	s := seen{path: r.URL.Path, raw: string(body)}
	if f.kind == AnthropicName {
		var m struct {
			Model    string
			System   []struct{ Text string }
			Messages []struct {
				Role    string
				Content []struct{ Type, Text string }
			}
			OutputConfig struct{ Format struct{ Type string } } `json:"output_config"`
		}
		s.key = r.Header.Get("X-Api-Key")
		if json.Unmarshal(body, &m) == nil && len(m.System) == 1 && len(m.Messages) == 1 && len(m.Messages[0].Content) == 1 && m.Messages[0].Role == "user" {
			s.model, s.system, s.user, s.format = m.Model, m.System[0].Text, m.Messages[0].Content[0].Text, m.OutputConfig.Format.Type
		}
		return s
	}
	var m struct {
		Model          string
		Messages       []struct{ Role, Content string }
		ResponseFormat struct{ Type string } `json:"response_format"`
	}
	s.key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if json.Unmarshal(body, &m) == nil && len(m.Messages) == 2 && m.Messages[0].Role == "system" && m.Messages[1].Role == "user" {
		s.model, s.system, s.user, s.format = m.Model, m.Messages[0].Content, m.Messages[1].Content, m.ResponseFormat.Type
	}
	return s
}

// usual answers as the service does, with the model's text.
func (f *fake) usual(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	var answer map[string]any
	if f.kind == AnthropicName {
		answer = map[string]any{
			"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": nil,
			"content": []any{map[string]any{"type": "text", "text": text}}, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
		}
	} else {
		answer = map[string]any{
			"id": "c1", "object": "chat.completion", "created": 1, "model": "m",
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text}}},
		}
	}
	json.NewEncoder(w).Encode(answer)
}

const (
	passing  = `{"flagged": false, "reason": "reads local files"}`
	flagging = `{"flagged": true, "reason": "sends data out"}`
)

func saying(text string) func(http.ResponseWriter, *http.Request, func(string)) {
	return func(_ http.ResponseWriter, _ *http.Request, usual func(string)) { usual(text) }
}

// options are those for a fake server.
func (f *fake) options(t testing.TB) Options {
	t.Helper()
	t.Setenv("COP_TEST_KEY", testKey)
	return Options{Reviewer: f.kind, Model: "test-model", BaseURL: f.URL, KeyEnv: "COP_TEST_KEY", Timeout: 2 * time.Minute}
}

func build(t testing.TB, o Options) *cop.Cop {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// plain is a case about which the static facts are not sure.
func plain(command string) cop.Case {
	return cop.Case{Command: command, Taint: cop.Taint{Corruption: true}, Dir: "/work", Judged: classify.Shell(command, "/workspace"), Policy: "p1"}
}

var kindsOfModel = []string{AnthropicName, OpenAIName}
