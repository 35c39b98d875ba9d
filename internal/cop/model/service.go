package model

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"weir/internal/cop"
)

// endpoint is one function of a service. Where it is and its key come from the policy alone, never from the environment.
type endpoint struct {
	client *http.Client
	url    string
	header http.Header
}

// newEndpoint joins a service's base URL and a path.
func newEndpoint(client *http.Client, base, path string) endpoint {
	return endpoint{client, strings.TrimSuffix(base, "/") + path, http.Header{"Content-Type": {"application/json"}}}
}

// post sends one request and reads one answer. It does not try again.
func (e endpoint) post(ctx context.Context, request, answer any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return cop.Fail(cop.Failed, "ask model: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(data))
	if err != nil {
		return cop.Fail(cop.Failed, "ask model: its URL cannot be used")
	}
	r.Header = e.header.Clone()
	got, err := e.client.Do(r)
	if err != nil {
		return failure(ctx, err, 0)
	}
	defer got.Body.Close()
	if got.StatusCode >= http.StatusBadRequest {
		return failure(ctx, nil, got.StatusCode)
	}
	if data, err = io.ReadAll(io.LimitReader(got.Body, maxBody+1)); err != nil {
		return failure(ctx, errBroken, 0)
	}
	if len(data) > maxBody {
		return failure(ctx, errBody, 0)
	}
	if json.Unmarshal(data, answer) != nil {
		return failure(ctx, nil, 0)
	}
	return nil
}

var errCut = cop.Fail(cop.Malformed, "read answer: it did not end by itself")

const (
	anthropicURL   = "https://api.anthropic.com/"
	anthropicModel = "claude-haiku-5-5"
	maxTokens      = 400 // of an answer: one sentence and a bit of JSON
)

// anthropicReviewer asks over the Messages API (docs.anthropic.com/en/api/messages).
type anthropicReviewer struct {
	endpoint
	model string
}

func newAnthropic(client *http.Client, base, model, key string) *anthropicReviewer {
	a := &anthropicReviewer{newEndpoint(client, base, "/v1/messages"), model}
	a.header.Set("X-Api-Key", key)
	a.header.Set("Anthropic-Version", "2023-06-01")
	return a
}

func (a *anthropicReviewer) Review(ctx context.Context, c cop.Case) (cop.Opinion, error) {
	data, err := encode(c)
	if err != nil {
		return cop.Opinion{}, err
	}
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var m struct {
		StopReason string `json:"stop_reason"`
		Content    []text `json:"content"`
	}
	if err := a.post(ctx, map[string]any{
		"model": a.model, "max_tokens": maxTokens,
		"system":        []text{{"text", prompt}},
		"messages":      []any{map[string]any{"role": "user", "content": []text{{"text", string(data)}}}},
		"output_config": map[string]any{"format": map[string]any{"type": "json_schema", "schema": schema()}},
	}, &m); err != nil {
		return cop.Opinion{}, err
	}
	if m.StopReason != "end_turn" {
		return cop.Opinion{}, errCut
	}
	if len(m.Content) != 1 || m.Content[0].Type != "text" {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: not one text")
	}
	return decode(m.Content[0].Text)
}

const openaiURL = "https://api.openai.com/v1/"

// openaiReviewer asks over the Chat Completions API (platform.openai.com/docs/api-reference/chat), which compatible servers have too.
type openaiReviewer struct {
	endpoint
	model string
}

// newOpenAI sends no key where there is none.
func newOpenAI(client *http.Client, base, model, key string) *openaiReviewer {
	o := &openaiReviewer{newEndpoint(client, base, "/chat/completions"), model}
	if key != "" {
		o.header.Set("Authorization", "Bearer "+key)
	}
	return o
}

func (o *openaiReviewer) Review(ctx context.Context, c cop.Case) (cop.Opinion, error) {
	data, err := encode(c)
	if err != nil {
		return cop.Opinion{}, err
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var m struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Message      struct {
				Content   string            `json:"content"`
				Refusal   string            `json:"refusal"`
				ToolCalls []json.RawMessage `json:"tool_calls"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := o.post(ctx, map[string]any{
		"model":    o.model,
		"messages": []message{{"system", prompt}, {"user", string(data)}},
		"response_format": map[string]any{
			"type": "json_schema", "json_schema": map[string]any{"name": "opinion", "strict": true, "schema": schema()},
		},
	}, &m); err != nil {
		return cop.Opinion{}, err
	}
	if len(m.Choices) != 1 {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: not one choice")
	}
	choice := m.Choices[0]
	if choice.FinishReason != "stop" || choice.Message.Refusal != "" || len(choice.Message.ToolCalls) > 0 {
		return cop.Opinion{}, errCut
	}
	return decode(choice.Message.Content)
}
