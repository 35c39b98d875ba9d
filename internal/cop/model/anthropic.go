package model

import (
	"context"
	"errors"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"weir/internal/cop"
)

const (
	anthropicURL   = "https://api.anthropic.com/"
	anthropicModel = anthropic.ModelClaudeHaiku5_5
	maxTokens      = 400 // of an answer: one sentence and a bit of JSON
)

// anthropicReviewer asks a model over the Messages API.
type anthropicReviewer struct {
	messages anthropic.MessageService
	model    string
}

// newAnthropic takes nothing from the environment: the SDK's own defaults would.
func newAnthropic(client *http.Client, base, model, key string) *anthropicReviewer {
	return &anthropicReviewer{anthropic.NewMessageService(
		option.WithHTTPClient(client), option.WithBaseURL(base), option.WithAPIKey(key), option.WithMaxRetries(0),
	), model}
}

func (a *anthropicReviewer) Review(ctx context.Context, c cop.Case) (cop.Opinion, error) {
	data, err := encode(c)
	if err != nil {
		return cop.Opinion{}, err
	}
	m, err := a.messages.New(ctx, anthropic.MessageNewParams{
		Model:     a.model,
		MaxTokens: maxTokens,
		System:    []anthropic.TextBlockParam{{Text: prompt}},
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(string(data)))},
		OutputConfig: anthropic.OutputConfigParam{
			Format: anthropic.JSONOutputFormatParam{Schema: schema()},
		},
	})
	if err != nil {
		status := 0
		var e *anthropic.Error
		if errors.As(err, &e) {
			status = e.StatusCode
		}
		return cop.Opinion{}, failure(ctx, err, status)
	}
	if m == nil || m.StopReason != anthropic.StopReasonEndTurn {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: it did not end by itself")
	}
	if len(m.Content) != 1 || m.Content[0].Type != "text" {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: not one text")
	}
	return decode(m.Content[0].Text)
}
