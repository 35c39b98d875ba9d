package modelproxy

import (
	"net/http"
	"slices"
	"strings"
)

// API is what one kind of upstream serves.
type API struct {
	Name     string
	Upstream string // where it is, unless another is named
	header   string // that a key of the vault goes up in
	bearer   bool   // after "Bearer "
	paths    []endpoint
	files    []endpoint // what stores something in the account
	schemas  []string   // fields whose values are the client's own data, and ask nothing of the upstream
	tools    []string   // kinds of tools that fetch nothing from an address of the request's choice; one that ends in _ stands for all that begin so
}

// uploads is where a body is a file, which may be anything.
const uploads = "/v1/files"

// endpoint is a path, in which {} stands for one name.
type endpoint struct{ method, path string }

var apis = []API{
	{
		Name: "anthropic", Upstream: "https://api.anthropic.com", header: "X-Api-Key",
		paths: []endpoint{
			{"POST", "/v1/messages"}, {"POST", "/v1/messages/count_tokens"}, {"GET", "/v1/models"}, {"GET", "/v1/models/{}"},
		},
		files: []endpoint{
			{"GET", uploads}, {"POST", uploads}, {"GET", "/v1/files/{}"}, {"GET", "/v1/files/{}/content"}, {"DELETE", "/v1/files/{}"},
			{"GET", "/v1/messages/batches"}, {"POST", "/v1/messages/batches"}, {"GET", "/v1/messages/batches/{}"}, {"GET", "/v1/messages/batches/{}/results"},
			{"POST", "/v1/messages/batches/{}/cancel"}, {"DELETE", "/v1/messages/batches/{}"},
		},
		schemas: []string{"input", "input_schema"},
		tools:   []string{"custom", "bash_", "text_editor_", "computer_", "memory_", "code_execution_", "tool_search_tool_", "web_search_"},
	},
	{
		Name: "openai", Upstream: "https://api.openai.com", header: "Authorization", bearer: true,
		paths: []endpoint{
			{"POST", "/v1/responses"}, {"POST", "/v1/responses/compact"}, {"POST", "/v1/chat/completions"}, {"GET", "/v1/models"}, {"GET", "/v1/models/{}"},
		},
		files: []endpoint{
			{"GET", uploads}, {"POST", uploads}, {"GET", "/v1/files/{}"}, {"GET", "/v1/files/{}/content"}, {"DELETE", "/v1/files/{}"},
			{"GET", "/v1/batches"}, {"POST", "/v1/batches"}, {"GET", "/v1/batches/{}"}, {"POST", "/v1/batches/{}/cancel"},
		},
		schemas: openaiSchemas, tools: openaiTools,
	},
	{
		Name: "codex", Upstream: "https://chatgpt.com/backend-api/codex", header: "Authorization", bearer: true,
		paths:   []endpoint{{"POST", "/responses"}, {"POST", "/responses/compact"}, {"GET", "/models"}},
		schemas: openaiSchemas, tools: openaiTools,
	},
}

var (
	openaiSchemas = []string{"parameters", "schema", "metadata"}
	openaiTools   = []string{"function", "custom", "namespace", "tool_search", "local_shell", "apply_patch", "image_generation"}
)

// Find returns the API of a name.
func Find(name string) (API, bool) {
	for _, a := range apis {
		if a.Name == name {
			return a, true
		}
	}
	return API{}, false
}

// Names lists all APIs.
func Names() []string {
	var names []string
	for _, a := range apis {
		names = append(names, a.Name)
	}
	return names
}

// fits says whether a path, as it was sent, is the endpoint's. A name in it has no sign that anybody could take for more.
func (e endpoint) fits(path string) bool {
	want, got := strings.Split(e.path, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(want, got string) bool { return want == got || want == "{}" && isName(got) })
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func isName(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, letters+"._:-") == "" && strings.Trim(s, ".") != ""
}

// questions are the parameters that a path may have.
var questions = []string{"beta", "client_version", "limit", "after_id", "before_id", "after", "order"}

func plainQuery(query string) bool {
	if query == "" {
		return true
	}
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		if !slices.Contains(questions, name) || value != "" && !isName(value) {
			return false
		}
	}
	return true
}

// credentials are the headers in which some upstream takes a key.
var credentials = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Proxy-Authorization"}

// Headers that are passed on, by their name or its beginning; all others are not. No upstream takes a key in one of them.
var (
	up = []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "Anthropic-Version", "Chatgpt-Account-Id", "Content-Type", "Conversation_id",
		"Idempotency-Key", "Openai-Beta", "Originator", "Session-Id", "Session_id", "Thread-Id", "Thread_id", "User-Agent", "Version", "X-App", "X-Client-Request-Id",
		"X-Claude-Code-*", "X-Codex-*", "X-Openai-Subagent", "X-Stainless-*",
	}
	down = []string{
		"Cache-Control", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Request-Id", "Retry-After", "Retry-After-Ms", "X-Request-Id", "X-Should-Retry",
		"Anthropic-Ratelimit-*", "Openai-Model", "Openai-Processing-Ms", "Openai-Version", "X-Codex-*", "X-Ratelimit-*",
	}
)

// pick keeps what the list has, and no value that has the secret in it.
func pick(h http.Header, list []string, secret string) http.Header {
	kept := http.Header{}
	for name, values := range h {
		listed := slices.ContainsFunc(list, func(l string) bool {
			begin, many := strings.CutSuffix(l, "*")
			return name == l || many && strings.HasPrefix(name, begin)
		})
		if listed && !slices.ContainsFunc(values, func(v string) bool { return secret != "" && strings.Contains(v, secret) }) {
			kept[name] = values
		}
	}
	return kept
}
