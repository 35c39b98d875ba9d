package model

import (
	"context"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"weir/internal/cop"
)

const openaiURL = "https://api.openai.com/v1/"

// openaiReviewer asks a model over the Chat Completions API, which compatible servers have too.
type openaiReviewer struct {
	chat  openai.ChatCompletionService
	model string
}

// newOpenAI takes nothing from the environment: the SDK's own defaults would. Without a key none is sent.
func newOpenAI(client *http.Client, base, model, key string) *openaiReviewer {
	options := []option.RequestOption{option.WithHTTPClient(client), option.WithBaseURL(base), option.WithMaxRetries(0)}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	return &openaiReviewer{openai.NewChatCompletionService(options...), model}
}

func (o *openaiReviewer) Review(ctx context.Context, c cop.Case) (cop.Opinion, error) {
	data, err := encode(c)
	if err != nil {
		return cop.Opinion{}, err
	}
	got, err := o.chat.New(ctx, openai.ChatCompletionNewParams{
		Model:    o.model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(prompt), openai.UserMessage(string(data))},
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{
			OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: "opinion", Strict: openai.Bool(true), Schema: schema(),
			}},
		},
	})
	if err != nil {
		status := 0
		var e *openai.Error
		if errors.As(err, &e) {
			status = e.StatusCode
		}
		return cop.Opinion{}, failure(ctx, err, status)
	}
	if got == nil || len(got.Choices) != 1 {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: not one choice")
	}
	choice := got.Choices[0]
	if choice.FinishReason != "stop" || choice.Message.Refusal != "" || len(choice.Message.ToolCalls) > 0 {
		return cop.Opinion{}, cop.Fail(cop.Malformed, "read answer: it did not end by itself")
	}
	return decode(choice.Message.Content)
}
