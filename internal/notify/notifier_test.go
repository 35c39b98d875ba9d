package notify

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
	"weir/internal/gate"
)

// G15: a question is posted, signed, and so is its end; the secrets of a command
// line stay (B50), and nothing in it is live (B51).
func TestAnnouncedG15(t *testing.T) {
	r, g := newReceiver(t), &questions{}
	a, events := run(t, Options{Form: JSON, URL: r.URL, Gate: g})
	q := ask("abc234")
	g.put(q)
	events <- hold("abc234")
	events <- hold("abc234") // one that joins
	<-r.news
	got := r.all()[0]
	if want := "v1=" + signature([]byte(testKey), "v1:notify", got.header.Get("Weir-Timestamp"), got.body); got.header.Get("Weir-Signature") != want {
		t.Errorf("signature %q, want %q", got.header.Get("Weir-Signature"), want)
	}
	if h := got.header; h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "weir/v0" {
		t.Errorf("headers: %v", h)
	}
	var m Message
	if err := json.Unmarshal(got.body, &m); err != nil {
		t.Fatal(err)
	}
	text, _ := shownText(JSON, q)
	want := Message{
		Version: 1, Type: "question.asked", Time: m.Time, Host: "host1", Hidden: true, Shown: shown{text, gate.Digest(text)},
		Question: body{
			ID: "abc234", Container: "c1", Name: "web", Taint: []string{"secret"}, Program: "/usr/bin/curl",
			Command: `curl -H 'Authorization: [hidden]' $'https://example.org/\u202e<!channel>&\x1b[2J'`,
			UID:     1000, Destination: &q.Destination, Held: true, Asked: q.Asked, Deadline: q.Deadline,
		},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
	if strings.Contains(string(got.body), "s3cr3tvalue") || strings.ContainsAny(string(got.body), "\u202e\x1b") {
		t.Errorf("body: %s", got.body)
	}
	if _, err := g.Answer("abc234", gate.Reply{Allow: true, By: "root (alice)", Why: "known"}); err != nil {
		t.Fatal(err)
	}
	events <- entry("abc234")
	events <- entry("abc234") // a claim
	<-r.news
	if err := json.Unmarshal(r.all()[1].body, &m); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&answer{State: "approved", Outcome: "approved", By: "root (alice)", Why: "known"}, m.Answer); diff != "" || m.Type != "question.ended" {
		t.Error(m.Type + " (-want +got):\n" + diff)
	}
	eventually(t, "counted", func() bool { return a.Counters()["notified"] == 2 })
}

// What a bridge asks to run has no destination yet, and may hold a secret.
func TestAnnouncedCommand(t *testing.T) {
	q := ask("abc234")
	q.Text, q.Destination = "curl -u me:s3cr3tvalue x; TOKEN=s3cr3tvalue ./run\x1b", event.Destination{}
	q.Process.Argv = []string{"bridge"}
	m := jsonMessage(asked, "host1", q, time.Now())
	if m.Question.Destination != nil || m.Question.Asks == "" || strings.Contains(m.Question.Asks+m.Shown.Text, "s3cr3tvalue") || !m.Hidden {
		t.Errorf("%+v", m)
	}
}

// F02, F01: who can be let out is posted, without secrets (B50, B51), and what was chosen with the end.
func TestF02AnnouncedChain(t *testing.T) {
	q := inScript("abc234")
	m := jsonMessage(asked, "host1", q, time.Now())
	want := []link{
		{100, "/usr/bin/curl", `curl -H 'Authorization: [hidden]' $'https://example.org/\u202e<!channel>&\x1b[2J'`},
		{90, "/usr/bin/bash", `bash $'fetch.sh\n' --token '[hidden]' (more arguments were not read)`},
	}
	if diff := cmp.Diff(want, m.Question.Chain); diff != "" || !m.Hidden {
		t.Error("(-want +got):\n" + diff)
	}
	q.State, q.Outcome, q.By, q.Scope = gate.StateUsed, gate.Approved, "root", 2
	if m := jsonMessage(ended, "host1", q, time.Now()); m.Answer.Scope != 2 {
		t.Errorf("%+v", m.Answer)
	}
	if m := slackMessage(ended, "host1", q); !strings.Contains(m.Blocks[0].Text.Text, "approved with scope 2 by root") {
		t.Errorf("%+v", m)
	}
}

// Questions that waited before the start are posted, and those that an event was
// lost for.
func TestCatchUp(t *testing.T) {
	r, g := newReceiver(t), &questions{}
	g.put(ask("aaaaaa"))
	_, events := run(t, Options{Form: JSON, URL: r.URL, Gate: g})
	<-r.news
	g.put(ask("bbbbbb"))
	if _, err := g.Answer("aaaaaa", gate.Reply{By: "x"}); err != nil {
		t.Fatal(err)
	}
	events <- event.Event{Kind: event.Lost, Loss: &event.Loss{Stage: "queue", What: "hold", Count: 2}}
	<-r.news
	<-r.news
	all := fmt.Sprintf("%s %s", r.all()[1].body, r.all()[2].body)
	for _, want := range []string{`"type":"question.asked"`, `"id":"bbbbbb"`, `"type":"question.ended"`, `"id":"aaaaaa"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
}

// G15: an asker that leaves, or is one too many, has a verdict of its own: the question waits on, and so does what is told of it.
func TestAskerLeavesG15(t *testing.T) {
	r, g := newReceiver(t), &questions{}
	_, events := run(t, Options{Form: JSON, URL: r.URL, Gate: g})
	g.put(ask("abc234"))
	events <- hold("abc234")
	<-r.news
	left := entry("abc234")
	left.Verdict = &event.Decision{Decision: "deny", Reason: string(gate.Cancelled)}
	events <- left
	g.put(ask("abc235"))
	events <- hold("abc235")
	<-r.news // the first was seen
	if _, err := g.Answer("abc234", gate.Reply{Allow: true, By: "root (alice)"}); err != nil {
		t.Fatal(err)
	}
	events <- entry("abc234")
	<-r.news
	for i, want := range []string{`"type":"question.asked"`, `"type":"question.asked"`, `"type":"question.ended"`} {
		if body := string(r.all()[i].body); !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if body := string(r.all()[2].body); !strings.Contains(body, `"outcome":"approved"`) {
		t.Errorf("the end is %s", body)
	}
}

// What the event tells of but the gate does not know, or knows as ended, is not
// posted.
func TestNothingToTell(t *testing.T) {
	r, g := newReceiver(t), &questions{}
	_, events := run(t, Options{Form: JSON, URL: r.URL, Gate: g})
	over := ask("over22")
	over.State = gate.StateDenied
	g.put(over)
	events <- hold("nosuch")
	events <- hold("over22")
	events <- entry("never2")
	g.put(ask("abc234"))
	events <- hold("abc234")
	<-r.news
	if got := r.all(); len(got) != 1 || !strings.Contains(string(got[0].body), "abc234") {
		t.Errorf("%d notifications: %s", len(got), got[0].body)
	}
}

// transport answers in the bubble's time.
type transport struct {
	mu  sync.Mutex
	at  []time.Time
	say func(n int, r *http.Request) (*http.Response, error)
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	n := len(t.at)
	t.at = append(t.at, time.Now())
	t.mu.Unlock()
	return t.say(n, r)
}

func (t *transport) times() []time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]time.Time{}, t.at...)
}

func code(n int) *http.Response {
	return &http.Response{StatusCode: n, Body: http.NoBody, Header: http.Header{}}
}

// bubble runs f with an notifier whose receiver is say.
func bubble(t *testing.T, say func(n int, r *http.Request) (*http.Response, error), f func(t *testing.T, tr *transport, a *Notifier, g *questions, events chan event.Event, told *telling)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tr, g, told := &transport{say: say}, &questions{}, &telling{}
		a, err := New(Options{
			Form: JSON, URL: "https://chat.example.com/secret-path", Key: testKey, Gate: g, Logger: quiet(),
			Tell: told.tell,
		})
		if err != nil {
			t.Fatal(err)
		}
		a.client.Transport = tr
		events := make(chan event.Event, 10000)
		done := make(chan error)
		go func() { done <- a.Run(t.Context(), events) }()
		defer func() {
			close(events)
			if err := <-done; err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}()
		synctest.Wait() // it has seen that nothing waits
		f(t, tr, a, g, events, told)
	})
}

// A receiver that fails is tried again, ever more slowly, until the question's
// deadline; that it fails is told once, without its URL.
func TestRetry(t *testing.T) {
	for name, say := range map[string]func(int, *http.Request) (*http.Response, error){
		"500": func(int, *http.Request) (*http.Response, error) { return code(500), nil },
		"429": func(int, *http.Request) (*http.Response, error) { return code(429), nil },
		"down": func(int, *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("refused")}
		},
		"hangs": func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, say, func(t *testing.T, tr *transport, a *Notifier, g *questions, events chan event.Event, told *telling) {
				begun := time.Now()
				g.put(ask("abc234"))
				events <- hold("abc234")
				time.Sleep(time.Hour)
				at := tr.times()
				if len(at) < 8 || len(at) > 20 {
					t.Errorf("%d attempts in 300 s", len(at))
				}
				if last := at[len(at)-1].Sub(begun); last > 5*time.Minute {
					t.Errorf("the last attempt was after %v", last)
				}
				if c := a.Counters(); c["lost_notification"] != 1 || c["notify_failed"] != uint64(len(at)) || c["notified"] != 0 {
					t.Errorf("counters: %v of %d attempts", c, len(at))
				}
				if told := told.texts(); len(told) != 1 || strings.Contains(told[0], "secret-path") || !strings.Contains(told[0], "fails") {
					t.Errorf("told: %q", told)
				}
			})
		})
	}
}

func TestWorksAgain(t *testing.T) {
	say := func(n int, _ *http.Request) (*http.Response, error) {
		if n < 3 {
			return code(503), nil
		}
		return code(204), nil
	}
	bubble(t, say, func(t *testing.T, tr *transport, a *Notifier, g *questions, events chan event.Event, told *telling) {
		g.put(ask("abc234"))
		events <- hold("abc234")
		time.Sleep(time.Minute)
		if c := a.Counters(); c["notified"] != 1 || c["lost_notification"] != 0 || len(told.texts()) != 2 || told.texts()[1] != "posting works again" {
			t.Errorf("counters %v, told %q", c, told.texts())
		}
	})
}

// What no retry mends is given up at once: also a redirect, since a question goes
// nowhere else.
func TestGivenUp(t *testing.T) {
	for _, n := range []int{301, 302, 307, 308, 400, 401, 403, 404, 410} {
		say := func(int, *http.Request) (*http.Response, error) {
			r := code(n)
			r.Header.Set("Location", "https://evil.example/")
			return r, nil
		}
		bubble(t, say, func(t *testing.T, tr *transport, a *Notifier, g *questions, events chan event.Event, _ *telling) {
			g.put(ask("abc234"))
			events <- hold("abc234")
			time.Sleep(time.Hour)
			if len(tr.times()) != 1 || a.Counters()["lost_notification"] != 1 {
				t.Errorf("%d: %d attempts, %v", n, len(tr.times()), a.Counters())
			}
		})
	}
}

// Retry-After is heeded, in bounds.
func TestRetryAfter(t *testing.T) {
	say := func(n int, _ *http.Request) (*http.Response, error) {
		r := code(429)
		r.Header.Set("Retry-After", "60")
		if n > 0 {
			r = code(200)
		}
		return r, nil
	}
	bubble(t, say, func(t *testing.T, tr *transport, a *Notifier, g *questions, events chan event.Event, _ *telling) {
		g.put(ask("abc234"))
		events <- hold("abc234")
		time.Sleep(time.Hour)
		if at := tr.times(); len(at) != 2 || at[1].Sub(at[0]) < time.Minute {
			t.Errorf("attempts at %v", at)
		}
	})
}

// A slow receiver and a flood: the queue is bounded, what finds no room is counted,
// and events are read on.
func TestQueueIsBounded(t *testing.T) {
	hang := func(_ int, r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	bubble(t, hang, func(t *testing.T, tr *transport, a *Notifier, g *questions, events chan event.Event, _ *telling) {
		for n := range 2 * maxQueue {
			id := fmt.Sprintf("q%05d", n)
			g.put(ask(id))
			events <- hold(id)
		}
		synctest.Wait()
		if len(events) > 0 {
			t.Error("events are not read while the receiver hangs")
		}
		if n := len(tr.times()); n != maxFlying {
			t.Errorf("%d requests at once", n)
		}
		if n := a.Counters()["lost_notification"]; n != maxQueue-maxFlying {
			t.Errorf("%d are counted as lost", n)
		}
	})
}

// The end of a question that was not told of yet is not told either.
func TestEndedBeforeAnnounced(t *testing.T) {
	hang := func(n int, r *http.Request) (*http.Response, error) {
		if n < maxFlying {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return code(200), nil
	}
	bubble(t, hang, func(t *testing.T, tr *transport, a *Notifier, g *questions, events chan event.Event, _ *telling) {
		for n := range maxFlying {
			g.put(ask(fmt.Sprint("busy", n)))
			events <- hold(fmt.Sprint("busy", n))
		}
		g.put(ask("quick2"))
		events <- hold("quick2")
		synctest.Wait()
		if _, err := g.Answer("quick2", gate.Reply{By: "x"}); err != nil {
			t.Fatal(err)
		}
		events <- entry("quick2")
		time.Sleep(time.Hour)
		if n := len(tr.times()); n != 2*maxFlying {
			t.Errorf("%d requests, want each of %d and one retry", n, maxFlying)
		}
	})
}

// Proxies of the environment are not used: a guarded command line must not go to
// whoever they name.
func TestProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:9")
	t.Setenv("HTTPS_PROXY", "http://192.0.2.1:9")
	t.Setenv("ALL_PROXY", "http://192.0.2.1:9")
	r, g := newReceiver(t), &questions{}
	g.put(ask("abc234"))
	run(t, Options{Form: JSON, URL: r.URL, Gate: g})
	<-r.news
	named, g2 := newReceiver(t), &questions{}
	g2.put(ask("abc235"))
	run(t, Options{Form: JSON, URL: "http://192.0.2.1/x", Proxy: named.URL, Gate: g2})
	<-named.news
}

// B50: real redirects and garbage of a real server.
func TestRealReceiver(t *testing.T) {
	r, other, g := newReceiver(t), newReceiver(t), &questions{}
	r.answer = func(n int, w http.ResponseWriter, req *http.Request) {
		switch n {
		case 0:
			http.Redirect(w, req, other.URL, http.StatusTemporaryRedirect)
		case 1:
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Write([]byte("\x00garbage\r\n\r\n"))
				conn.Close()
			}
		default:
			w.Write([]byte(strings.Repeat("x", 1<<20)))
		}
	}
	a, events := run(t, Options{Form: JSON, URL: r.URL, Gate: g})
	for _, id := range []string{"aaaaaa", "bbbbbb"} {
		g.put(ask(id))
		events <- hold(id)
		<-r.news
	}
	eventually(t, "notified", func() bool { return a.Counters()["notified"] == 1 })
	if n := len(other.all()); n != 0 {
		t.Errorf("%d requests followed the redirect", n)
	}
	if c := a.Counters(); c["lost_notification"] != 1 || c["notify_failed"] != 2 {
		t.Errorf("counters: %v", c)
	}
}

func TestNewMistakes(t *testing.T) {
	for want, o := range map[string]Options{
		"not an http or https URL": {Form: JSON, URL: "file:///secret-path", Key: testKey},
		"unknown form":             {Form: "x", URL: "https://a.example.com", Key: testKey},
		"at least 16":              {Form: JSON, URL: "https://a.example.com", Key: "short"},
		"proxy is not a URL":       {Form: JSON, URL: "https://a.example.com", Key: testKey, Proxy: "http://\x7f"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-path") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
