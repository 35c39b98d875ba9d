package model

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestNewMistakes(t *testing.T) {
	t.Setenv("COP_TEST_KEY", testKey)
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Reviewer: "claude"}, `make reviewer: unknown reviewer "claude": accepted are static, anthropic, openai, none`},
		{Options{Reviewer: AnthropicName}, "make reviewer: anthropic needs a key: name a file or an environment variable that holds it"},
		{Options{Reviewer: OpenAIName, KeyEnv: "COP_TEST_KEY"}, "make reviewer: openai needs a model"},
		{Options{Reviewer: OpenAIName, Model: "m"}, "make reviewer: openai needs a key, or the base URL of a server that asks for none"},
		{Options{Reviewer: AnthropicName, KeyEnv: "COP_TEST_KEY", BaseURL: "ftp://x"}, "make reviewer: read base URL: not an http or https URL"},
		{Options{Reviewer: AnthropicName, KeyEnv: "COP_TEST_KEY", BaseURL: "https://u:" + testKey + "@x"}, "make reviewer: read base URL: it holds a user: put the key in a file"},
		{Options{Reviewer: AnthropicName, KeyEnv: "COP_TEST_KEY", BaseURL: "https://x/?key=" + testKey}, "make reviewer: read base URL: it has a query or a fragment"},
		{Options{Reviewer: AnthropicName, KeyEnv: "COP_TEST_KEY", BaseURL: "http://x.example.com"}, "make reviewer: read base URL: a key would go to x.example.com in the clear: use https"},
		{Options{Concurrency: -1}, "make reviewer: a limit is negative"},
		{Options{Timeout: -1}, "make reviewer: a limit is negative"},
	} {
		reviewer, err := New(c.o)
		if reviewer != nil || fmt.Sprint(err) != c.want {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}

// TestRequestG13: what arrives at a service: the key in its header only, the model, the prompt, the form of the answer.
func TestRequestG13(t *testing.T) {
	// None of these may be used: a policy says where commands go.
	for _, name := range []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"} {
		t.Setenv(name, "http://192.0.2.1:9")
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_ORG_ID", "ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS"} {
		t.Setenv(name, "x: from-the-environment")
	}
	for _, c := range []struct{ kind, base, path, format string }{
		{AnthropicName, "", "/v1/messages", "json_schema"},
		{AnthropicName, "/proxy/a/", "/proxy/a/v1/messages", "json_schema"},
		{OpenAIName, "/v1", "/v1/chat/completions", "json_schema"},
		{OpenAIName, "/openai/v1/", "/openai/v1/chat/completions", "json_schema"},
	} {
		f := serve(t, c.kind, func(_ http.ResponseWriter, r *http.Request, usual func(string)) {
			for name, values := range r.Header {
				if strings.Contains(fmt.Sprint(values), "from-the-environment") {
					t.Errorf("%s: header %s is from the environment", c.kind, name)
				}
			}
			usual(passing)
		})
		o := f.options(t)
		o.BaseURL += c.base
		if _, err := build(t, o).Review(context.Background(), plain("./tool")); err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		got := <-f.seen
		if got.path != c.path || got.key != testKey || got.model != "test-model" || got.system != prompt || got.format != c.format || strings.Contains(got.raw, testKey) {
			t.Errorf("%s: asked %+v", c.kind, got)
		}
	}
}

// TestNoKey: a compatible server that asks for no key is sent none.
func TestNoKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", testKey)
	f := serve(t, OpenAIName, func(_ http.ResponseWriter, r *http.Request, usual func(string)) {
		if got := r.Header.Get("Authorization"); got != "" {
			t.Errorf("sent %q", got)
		}
		usual(passing)
	})
	if _, err := build(t, Options{Reviewer: OpenAIName, Model: "m", BaseURL: f.URL}).Review(context.Background(), plain("./tool")); err != nil {
		t.Error(err)
	}
}
