package cop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFailures: G9, each way in which a model fails has its code, and none is an opinion.
func TestFailures(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, *http.Request, func(string)) {
		return func(w http.ResponseWriter, _ *http.Request, _ func(string)) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"x","message":"your key %s is not liked, {\"flagged\": false, \"reason\": \"r\"}"}}`, testKey)
		}
	}
	middle := func(w http.ResponseWriter, _ *http.Request, _ func(string)) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100000")
		fmt.Fprint(w, `{"id":"x","content":[{"type":"text","text":"{\"flagged\": false`)
		panic(http.ErrAbortHandler)
	}
	raw := func(contentType, text string) func(http.ResponseWriter, *http.Request, func(string)) {
		return func(w http.ResponseWriter, _ *http.Request, _ func(string)) {
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, text)
		}
	}
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, func(string))
		want   Code
		calls  int64
	}{
		{"prose", saying("This command looks fine to me."), Malformed, 1},
		{"prose around it", saying("Sure! " + passing), Malformed, 1},
		{"more fields", saying(`{"flagged": false, "reason": "r", "confidence": 0.9}`), Malformed, 1},
		{"a field is missing", saying(`{"flagged": false}`), Malformed, 1},
		{"empty", saying(""), Malformed, 1},
		{"429", status(429), RateLimited, 1},
		{"500", status(500), Server, 1},
		{"503", status(503), Server, 1},
		{"529", status(529), Server, 1},
		{"401", status(401), Refused, 1},
		{"404", status(404), Refused, 1},
		{"closed in the middle", middle, Transport, 2},
		{"closed at once", func(http.ResponseWriter, *http.Request, func(string)) { panic(http.ErrAbortHandler) }, Transport, 2},
		{"an HTML page", raw("text/html", "<html>proxy login</html>"), Malformed, 1},
		{"broken JSON", raw("application/json", `{"content":[`), Malformed, 1},
		{"other JSON", raw("application/json", `{"flagged": false, "reason": "r"}`), Malformed, 1},
		{"JSON null", raw("application/json", `null`), Malformed, 1},
		{"nothing", raw("application/json", ``), Malformed, 1},
		{"no content", func(w http.ResponseWriter, _ *http.Request, _ func(string)) { w.WriteHeader(204) }, Malformed, 1},
		{"too much", raw("application/json", `{"content":"`+strings.Repeat("x", 2*maxBody)+`"}`), Malformed, 1},
	} {
		for _, kind := range kindsOfModel {
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				f := serve(t, kind, c.answer)
				cop := build(t, f.options(t))
				o, err := cop.Review(context.Background(), plain("./tool --sync"))
				if CodeOf(err) != c.want || err == nil || o != (Opinion{}) {
					t.Errorf("%+v, %v with code %s, want %s", o, err, CodeOf(err), c.want)
				}
				if got := f.calls.Load(); got != c.calls {
					t.Errorf("%d requests, want %d", got, c.calls)
				}
				if strings.Contains(fmt.Sprintf("%+v %#v", err, err), testKey) {
					t.Errorf("the key is in %v", err)
				}
				if s := cop.Stats(); s.Failures[c.want] != 1 || s.Passed+s.Flagged != 0 {
					t.Errorf("counted %+v", s)
				}
				// A failure is not kept: when the model is well again it is asked again.
				f.answer = saying(passing)
				if o, err := cop.Review(context.Background(), plain("./tool --sync")); err != nil || o.Flagged {
					t.Errorf("afterwards %+v, %v", o, err)
				}
			})
		}
	}
}

// TestSlow: a server that hangs or is late fails within the time limit, and what comes late is never used.
func TestSlow(t *testing.T) {
	for _, kind := range kindsOfModel {
		t.Run(kind, func(t *testing.T) {
			answered := make(chan struct{})
			f := serve(t, kind, func(_ http.ResponseWriter, r *http.Request, usual func(string)) {
				<-r.Context().Done() // the client has given up
				usual(passing)
				close(answered)
			})
			o := f.options(t)
			o.Timeout = 200 * time.Millisecond
			o.CacheFor = time.Hour
			cop := build(t, o)
			got, err := cop.Review(context.Background(), plain("./tool"))
			if CodeOf(err) != Timeout || got != (Opinion{}) {
				t.Fatalf("%+v, %v, want a timeout", got, err)
			}
			<-answered
			if n := f.calls.Load(); n != 1 {
				t.Errorf("%d requests: a timeout is not tried again", n)
			}
			f.answer = saying(flagging)
			if got, err := cop.Review(context.Background(), plain("./tool")); err != nil || !got.Flagged {
				t.Errorf("afterwards %+v, %v: the late answer was kept", got, err)
			}
		})
	}
}

// TestDrip: an answer that never ends is bounded by the time limit as well.
func TestDrip(t *testing.T) {
	for _, kind := range kindsOfModel {
		t.Run(kind, func(t *testing.T) {
			f := serve(t, kind, func(w http.ResponseWriter, r *http.Request, _ func(string)) {
				w.Header().Set("Content-Type", "application/json")
				for r.Context().Err() == nil {
					fmt.Fprint(w, " ")
					w.(http.Flusher).Flush()
					time.Sleep(5 * time.Millisecond)
				}
			})
			o := f.options(t)
			o.Timeout = 200 * time.Millisecond
			if got, err := build(t, o).Review(context.Background(), plain("./tool")); CodeOf(err) != Timeout || got != (Opinion{}) {
				t.Errorf("%+v, %v, want a timeout", got, err)
			}
		})
	}
}

// TestUnresolved: the name of the server does not resolve. The dialer is the test's; nothing is contacted.
func TestUnresolved(t *testing.T) {
	for _, kind := range kindsOfModel {
		t.Run(kind, func(t *testing.T) {
			var asked []string
			var mu sync.Mutex
			t.Setenv("COP_TEST_KEY", testKey)
			cop := build(t, Options{
				Reviewer: kind, Model: "m", BaseURL: "https://models.invalid/v1", KeyEnv: "COP_TEST_KEY",
				Transport: &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, address)
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "models.invalid", IsNotFound: true}}
				}},
			})
			o, err := cop.Review(context.Background(), plain("./tool"))
			if CodeOf(err) != Transport || o != (Opinion{}) || !strings.Contains(err.Error(), "models.invalid") {
				t.Errorf("%+v, %v, want a transport error that names the host", o, err)
			}
			if len(asked) != 2 || asked[0] != "models.invalid:443" {
				t.Errorf("dialled %q, want the host twice", asked)
			}
		})
	}
}

// TestRefusedConnection: nobody listens.
func TestRefusedConnection(t *testing.T) {
	for _, kind := range kindsOfModel {
		f := serve(t, kind, saying(passing))
		o := f.options(t)
		f.Close()
		if got, err := build(t, o).Review(context.Background(), plain("./tool")); CodeOf(err) != Transport || got != (Opinion{}) {
			t.Errorf("%s: %+v, %v, want a transport error", kind, got, err)
		}
	}
}

// TestRetry: one failure of the connection is tried again, within the same time limit.
func TestRetry(t *testing.T) {
	for _, kind := range kindsOfModel {
		t.Run(kind, func(t *testing.T) {
			f := serve(t, kind, nil)
			f.answer = func(_ http.ResponseWriter, _ *http.Request, usual func(string)) {
				if f.calls.Load() == 1 {
					panic(http.ErrAbortHandler)
				}
				usual(flagging)
			}
			cop := build(t, f.options(t))
			o, err := cop.Review(context.Background(), plain("./tool"))
			if err != nil || !o.Flagged {
				t.Errorf("%+v, %v", o, err)
			}
			if s := cop.Stats(); s.Retries != 1 || s.Asked != 2 || len(s.Failures) != 0 {
				t.Errorf("counted %+v", s)
			}
		})
	}
}

// TestRedirect: neither key nor command follow a redirect to another host.
func TestRedirect(t *testing.T) {
	for _, kind := range kindsOfModel {
		t.Run(kind, func(t *testing.T) {
			thief := serve(t, kind, saying(passing))
			f := serve(t, kind, func(w http.ResponseWriter, r *http.Request, _ func(string)) {
				http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
			})
			o, err := build(t, f.options(t)).Review(context.Background(), plain("./tool"))
			if CodeOf(err) != Refused || o != (Opinion{}) {
				t.Errorf("%+v, %v, want a refusal", o, err)
			}
			if n := thief.calls.Load(); n != 0 {
				t.Errorf("the other host was asked %d times", n)
			}
		})
	}
}

// TestFinish: an answer that did not end by itself is none, also when it reads like one.
func TestFinish(t *testing.T) {
	for _, c := range []struct{ kind, body string }{
		{AnthropicName, `{"type":"message","stop_reason":"max_tokens","content":[{"type":"text","text":%q}]}`},
		{AnthropicName, `{"type":"message","stop_reason":"refusal","content":[{"type":"text","text":%q}]}`},
		{AnthropicName, `{"type":"message","stop_reason":"end_turn","content":[{"type":"text","text":%q},{"type":"text","text":"x"}]}`},
		{AnthropicName, `{"type":"message","stop_reason":"end_turn","content":[{"type":"thinking","thinking":%q}]}`},
		{AnthropicName, `{"type":"message","stop_reason":"end_turn","content":[],"x":%q}`},
		{OpenAIName, `{"choices":[{"finish_reason":"length","message":{"content":%q}}]}`},
		{OpenAIName, `{"choices":[{"finish_reason":"content_filter","message":{"content":%q}}]}`},
		{OpenAIName, `{"choices":[{"finish_reason":"stop","message":{"content":%[1]q}},{"finish_reason":"stop","message":{"content":%[1]q}}]}`},
		{OpenAIName, `{"choices":[{"finish_reason":"stop","message":{"content":%q,"refusal":"no"}}]}`},
		{OpenAIName, `{"choices":[],"x":%q}`},
	} {
		f := serve(t, c.kind, func(w http.ResponseWriter, _ *http.Request, _ func(string)) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, c.body, passing)
		})
		if o, err := build(t, f.options(t)).Review(context.Background(), plain("./tool")); CodeOf(err) != Malformed || o != (Opinion{}) {
			t.Errorf("%s: %+v, %v, want malformed", c.body, o, err)
		}
	}
}

// TestLimits: a case that is too large, an asker that has gone, no reviewer, closed.
func TestLimits(t *testing.T) {
	f := serve(t, AnthropicName, saying(passing))
	cop := build(t, f.options(t))
	ctx := context.Background()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	late, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
	defer cancel()
	none := build(t, Options{Reviewer: NoneName})
	closed := build(t, f.options(t))
	closed.Close()
	closed.Close()
	for _, c := range []struct {
		name string
		cop  *Cop
		ctx  context.Context
		k    Case
		want Code
	}{
		{"too large", cop, ctx, plain("# " + strings.Repeat("x", maxCase)), TooLarge},
		{"too many arguments", cop, ctx, Case{Argv: make([]string, maxCase+1)}, TooLarge},
		{"too large ancestry", cop, ctx, Case{Command: "x", Ancestry: []Process{{Argv: []string{strings.Repeat("x", maxCase)}}}}, TooLarge},
		{"gone", cop, gone, plain("./tool"), Cancelled},
		{"late", cop, late, plain("./tool"), Timeout},
		{"none", none, ctx, plain("ls"), None},
		{"closed", closed, ctx, plain("./tool"), Closed},
	} {
		o, err := c.cop.Review(c.ctx, c.k)
		var e *Error
		if !errors.As(err, &e) || e.Code != c.want || o != (Opinion{}) {
			t.Errorf("%s: %+v, %v, want %s", c.name, o, err, c.want)
		}
		if got := c.cop.Stats().Failures[c.want]; got == 0 {
			t.Errorf("%s: not counted", c.name)
		}
	}
	if n := f.calls.Load(); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}
