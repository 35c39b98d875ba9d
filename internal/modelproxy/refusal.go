package modelproxy

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Code says why a request was refused; docs/protocol.md lists them.
type Code string

// All codes.
const (
	Malformed  Code = "model_malformed"   // it is no plain HTTP/1.1, so that two programs could read it in two ways
	Method     Code = "model_method"      // CONNECT, or one that no path of the API has
	Host       Code = "model_host"        // it names another host
	Path       Code = "model_path"        // it is none of the API's, or is not written plainly
	Upgrade    Code = "model_upgrade"     // to WebSocket or HTTP/2
	NoLength   Code = "model_no_length"   // it does not say beforehand how long it is
	TooLarge   Code = "model_too_large"   // its head or its body
	Slow       Code = "model_slow"        // its head or its body did not come in time
	Busy       Code = "model_busy"        // too many requests at once
	Rate       Code = "model_rate"        // too many in a short time
	NoKey      Code = "model_no_key"      // it carries no credential
	ForeignKey Code = "model_foreign_key" // it carries somebody else's
	Content    Code = "model_content"     // it is no JSON that can be read in one way only
	Fetches    Code = "model_fetches"     // it would have the upstream contact an address of its choice
	Stored     Code = "model_stored"      // it would have the upstream do what is stored there, which may contact any address
	Redirect   Code = "model_redirect"    // the upstream sent elsewhere, which is not followed
	Upstream   Code = "model_upstream"    // the upstream did not answer, or is not who it should be
)

// meaning is what the client is told of a code, and the status.
type meaning struct {
	status int
	text   string
}

var meanings = map[Code]meaning{
	Malformed:  {http.StatusBadRequest, "the request is not plain HTTP/1.1"},
	Method:     {http.StatusMethodNotAllowed, "this method is not taken here"},
	Host:       {http.StatusMisdirectedRequest, "the request names another host"},
	Path:       {http.StatusNotFound, "this path is not open"},
	Upgrade:    {http.StatusBadRequest, "the connection stays HTTP/1.1"},
	NoLength:   {http.StatusLengthRequired, "the request does not say how long it is"},
	TooLarge:   {http.StatusRequestEntityTooLarge, "the request is too large"},
	Slow:       {http.StatusRequestTimeout, "the request did not come in time"},
	Busy:       {http.StatusServiceUnavailable, "too many requests are under way"},
	Rate:       {http.StatusTooManyRequests, "too many requests in a short time"},
	NoKey:      {http.StatusForbidden, "the request carries no key"},
	ForeignKey: {http.StatusForbidden, "the request carries a key that is not this user's"},
	Content:    {http.StatusBadRequest, "the request is no plain JSON"},
	Fetches:    {http.StatusForbidden, "the request asks the service to contact an address of its choice"},
	Stored:     {http.StatusForbidden, "the request names a prompt, an agent or skills that the service has stored, which may contact any address"},
	Redirect:   {http.StatusBadGateway, "the service sent elsewhere, which is not followed"},
	Upstream:   {http.StatusBadGateway, "the service cannot be reached, or is not who it should be"},
}

// Known says whether there is such a code.
func (c Code) Known() bool { _, ok := meanings[c]; return ok }

// Text is one sentence for people, without its full stop.
func (c Code) Text() string { return meanings[c].text }

// answer is in the form that the clients of all APIs read.
func (c Code) answer() []byte {
	text := "Weir refused this request to the model: " + c.Text()
	data, err := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": "weir_refused", "code": string(c), "message": text}})
	if err != nil {
		panic(err) // only of texts of this file
	}
	return data
}

func (c Code) write(w http.ResponseWriter) {
	h := w.Header()
	clear(h)
	h.Set("Content-Type", "application/json")
	passes := c == Rate || c == Busy || c == Upstream
	h.Set("X-Should-Retry", strconv.FormatBool(passes))
	if passes {
		h.Set("Retry-After", "5")
	}
	w.WriteHeader(meanings[c].status)
	w.Write(c.answer()) // a client that has gone needs none
}
