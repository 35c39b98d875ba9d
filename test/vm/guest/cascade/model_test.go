//go:build vmguest

package cascade

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// model is a server that answers as a reviewing model does, by what it is shown.
type model struct {
	server *httptest.Server
	asked  atomic.Int64
}

func startModel(t *testing.T) *model {
	m := &model{}
	m.server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.server.Close)
	return m
}

// policy names it as the reviewer, with more time than a busy machine needs.
func (m *model) policy() string { return m.within(60) }

func (m *model) within(seconds int) string {
	return fmt.Sprintf("cop:\n  reviewer: openai\n  model: test\n  base_url: %s/v1\n  seconds: %d\n", m.server.URL, seconds)
}

func (m *model) answer(w http.ResponseWriter, r *http.Request) {
	m.asked.Add(1)
	var got struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil || len(got.Messages) != 2 {
		http.Error(w, "not as a reviewer asks", http.StatusBadRequest)
		return
	}
	shown := got.Messages[1].Content
	text := `{"flagged": false, "reason": "it says nothing bad"}`
	switch {
	case strings.Contains(shown, flagged):
		text = `{"flagged": true, "reason": "it says so itself"}`
	case strings.Contains(shown, garbled):
		text = "I think that this is fine."
	case strings.Contains(shown, hanging):
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "c", "object": "chat.completion", "created": 1, "model": "test",
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text}}},
	})
}
