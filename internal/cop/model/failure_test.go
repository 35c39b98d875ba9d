package model

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/cop"
)

// TestFailuresG9: each way in which a model fails has its code, and none is an opinion.
func TestFailuresG9(t *testing.T) {
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
		want   cop.Code
		calls  int64
	}{
		{"prose", saying("This command looks fine to me."), cop.Malformed, 1},
		{"prose around it", saying("Sure! " + passing), cop.Malformed, 1},
		{"more fields", saying(`{"flagged": false, "reason": "r", "confidence": 0.9}`), cop.Malformed, 1},
		{"a field is missing", saying(`{"flagged": false}`), cop.Malformed, 1},
		{"empty", saying(""), cop.Malformed, 1},
		{"429", status(429), cop.RateLimited, 1},
		{"500", status(500), cop.Server, 1},
		{"503", status(503), cop.Server, 1},
		{"529", status(529), cop.Server, 1},
		{"401", status(401), cop.Refused, 1},
		{"404", status(404), cop.Refused, 1},
		{"closed in the middle", middle, cop.Transport, 2},
		{"closed at once", func(http.ResponseWriter, *http.Request, func(string)) { panic(http.ErrAbortHandler) }, cop.Transport, 2},
		{"an HTML page", raw("text/html", "<html>proxy login</html>"), cop.Malformed, 1},
		{"broken JSON", raw("application/json", `{"content":[`), cop.Malformed, 1},
		{"other JSON", raw("application/json", `{"flagged": false, "reason": "r"}`), cop.Malformed, 1},
		{"JSON null", raw("application/json", `null`), cop.Malformed, 1},
		{"nothing", raw("application/json", ``), cop.Malformed, 1},
		{"no content", func(w http.ResponseWriter, _ *http.Request, _ func(string)) { w.WriteHeader(204) }, cop.Malformed, 1},
		{"too much", raw("application/json", `{"content":"`+strings.Repeat("x", 2*maxBody)+`"}`), cop.Malformed, 1},
	} {
		for _, kind := range kindsOfModel {
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				f := serve(t, kind, c.answer)
				reviewer := build(t, f.options(t))
				o, err := reviewer.Review(context.Background(), plain("./tool --sync"))
				if cop.CodeOf(err) != c.want || err == nil || o != (cop.Opinion{}) {
					t.Errorf("%+v, %v with code %s, want %s", o, err, cop.CodeOf(err), c.want)
				}
				if got := f.calls.Load(); got != c.calls {
					t.Errorf("%d requests, want %d", got, c.calls)
				}
				if strings.Contains(fmt.Sprintf("%+v %#v", err, err), testKey) {
					t.Errorf("the key is in %v", err)
				}
				if s := reviewer.Stats(); s.Failures[c.want] != 1 || s.Passed+s.Flagged != 0 {
					t.Errorf("counted %+v", s)
				}
				// A failure is not kept: when the model is well again it is asked again.
				f.answer = saying(passing)
				if o, err := reviewer.Review(context.Background(), plain("./tool --sync")); err != nil || o.Flagged {
					t.Errorf("afterwards %+v, %v", o, err)
				}
			})
		}
	}
}

// TestSlowG14: a server that hangs or is late fails within the time limit, and what comes late is never used.
func TestSlowG14(t *testing.T) {
	for _, kind := range kindsOfModel {
		t.Run(kind, func(t *testing.T) {
			answered := make(chan struct{})
			f := serve(t, kind, func(_ http.ResponseWriter, r *http.Request, usual func(string)) {
				<-r.Context().Done() // the client has given up
				usual(passing)
				close(answered)
			})
			o := f.options(t)
			o.Timeout = 2 * time.Second // the request must arrive within it
			o.CacheFor = time.Hour
			reviewer := build(t, o)
			got, err := reviewer.Review(context.Background(), plain("./tool"))
			if cop.CodeOf(err) != cop.Timeout || got != (cop.Opinion{}) {
				t.Fatalf("%+v, %v, want a timeout", got, err)
			}
			<-answered
			if n := f.calls.Load(); n != 1 {
				t.Errorf("%d requests: a timeout is not tried again", n)
			}
			f.answer = saying(flagging)
			got, err = reviewer.Review(context.Background(), plain("./tool"))
			for cop.CodeOf(err) == cop.Timeout && t.Context().Err() == nil { // a loaded machine
				got, err = reviewer.Review(context.Background(), plain("./tool"))
			}
			if err != nil || !got.Flagged {
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
			if got, err := build(t, o).Review(context.Background(), plain("./tool")); cop.CodeOf(err) != cop.Timeout || got != (cop.Opinion{}) {
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
			reviewer := build(t, Options{
				Reviewer: kind, Model: "m", BaseURL: "https://models.invalid/v1", KeyEnv: "COP_TEST_KEY",
				Transport: &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, address)
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "models.invalid", IsNotFound: true}}
				}},
			})
			o, err := reviewer.Review(context.Background(), plain("./tool"))
			if cop.CodeOf(err) != cop.Transport || o != (cop.Opinion{}) || !strings.Contains(err.Error(), "models.invalid") {
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
		if got, err := build(t, o).Review(context.Background(), plain("./tool")); cop.CodeOf(err) != cop.Transport || got != (cop.Opinion{}) {
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
			reviewer := build(t, f.options(t))
			o, err := reviewer.Review(context.Background(), plain("./tool"))
			if err != nil || !o.Flagged {
				t.Errorf("%+v, %v", o, err)
			}
			if s := reviewer.Stats(); s.Retries != 1 || s.Asked != 2 || len(s.Failures) != 0 {
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
			if cop.CodeOf(err) != cop.Refused || o != (cop.Opinion{}) {
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
		if o, err := build(t, f.options(t)).Review(context.Background(), plain("./tool")); cop.CodeOf(err) != cop.Malformed || o != (cop.Opinion{}) {
			t.Errorf("%s: %+v, %v, want malformed", c.body, o, err)
		}
	}
}

// TestLimits: a case that is too large, an asker that has gone, no reviewer, closed.
func TestLimits(t *testing.T) {
	f := serve(t, AnthropicName, saying(passing))
	reviewer := build(t, f.options(t))
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
		cop  *cop.Cop
		ctx  context.Context
		k    cop.Case
		want cop.Code
	}{
		{"too large", reviewer, ctx, plain("# " + strings.Repeat("x", cop.MaxCase)), cop.TooLarge},
		{"too many arguments", reviewer, ctx, cop.Case{Argv: make([]string, cop.MaxCase+1)}, cop.TooLarge},
		{"too large ancestry", reviewer, ctx, cop.Case{Command: "x", Ancestry: []cop.Process{{Argv: []string{strings.Repeat("x", cop.MaxCase)}}}}, cop.TooLarge},
		{"gone", reviewer, gone, plain("./tool"), cop.Cancelled},
		{"late", reviewer, late, plain("./tool"), cop.Timeout},
		{"none", none, ctx, plain("ls"), cop.None},
		{"closed", closed, ctx, plain("./tool"), cop.Closed},
	} {
		o, err := c.cop.Review(c.ctx, c.k)
		var e *cop.Error
		if !errors.As(err, &e) || e.Code != c.want || o != (cop.Opinion{}) {
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

// TestThousand: 1,000 different requests at once: few run at the same time, some wait, the others fail, and none
// gets an opinion that is not its own.
func TestThousand(t *testing.T) {
	for _, kind := range kindsOfModel {
		t.Run(kind, func(t *testing.T) {
			f := serve(t, kind, nil)
			var running, most atomic.Int64
			full := make(chan struct{})
			f.answer = func(_ http.ResponseWriter, _ *http.Request, usual func(string)) {
				n := running.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				<-full // until all others have asked
				running.Add(-1)
				usual(flagging)
			}
			o := f.options(t)
			o.Concurrency = 4 // so 64 may wait
			reviewer := build(t, o)
			var wg sync.WaitGroup
			var flagged, refused, other atomic.Int64
			for i := range 1000 {
				wg.Go(func() {
					k := plain(fmt.Sprint("./tool ", i))
					k.ID = fmt.Sprint(i) // of as many containers: one has a share of these
					got, err := reviewer.Review(t.Context(), k)
					switch {
					case err == nil && got.Flagged:
						flagged.Add(1)
					case cop.CodeOf(err) == cop.QueueFull:
						if refused.Add(1) == 932 {
							close(full)
						}
					default:
						other.Add(1)
						t.Errorf("%+v, %v", got, err)
					}
				})
			}
			wg.Wait()
			if flagged.Load() != 68 || refused.Load() != 932 || other.Load() != 0 || most.Load() > 4 {
				t.Errorf("%d flagged, %d refused, %d else, %d at the same time; want 68, 932, 0, at most 4", flagged.Load(), refused.Load(), other.Load(), most.Load())
			}
			if s := reviewer.Stats(); s.Failures[cop.QueueFull] != 932 || s.Waiting != 0 || s.Asked != 68 {
				t.Errorf("counted %+v", s)
			}
		})
	}
}
