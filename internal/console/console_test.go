package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
)

// sensor has two questions, and notes what it was told.
type sensor struct {
	lock    sync.Mutex
	err     error // of every call
	looks   bool  // the caller may not answer
	log     string
	refused error // of Peer
	peers   []control.Peer
	asked   []gate.Question
	ongoing []gate.StandingApproval
	given   []string
	replies []gate.Reply
	logins  []string // of who answered and revoked
}

func (s *sensor) fails() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.err
}

func (s *sensor) Status(context.Context) (control.Status, error) {
	return control.Status{Version: "v1", Mode: "enforce"}, s.fails()
}

func (s *sensor) Containers(context.Context) ([]control.Container, error) {
	return []control.Container{{ID: "c1", Name: "<b>\u202eweb\x1b[2J", Cgroup: "/a", Live: true, Taint: []string{"secret"}, Grants: []event.GrantInfo{{ID: 1}}}}, s.fails()
}

func (s *sensor) Why(_ context.Context, name string) (control.Why, error) {
	return control.Why{Container: control.Container{ID: name}}, s.fails()
}

func (s *sensor) Metrics(context.Context) (string, error) { return "", nil }

func (s *sensor) Peer(_ context.Context, p control.Peer) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.peers = append(s.peers, p)
	return s.refused
}

func (s *sensor) Pending(context.Context) ([]gate.Question, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.asked, s.err
}

func (s *sensor) Answer(ctx context.Context, id string, r gate.Reply) (gate.Question, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.looks {
		return gate.Question{}, control.Errorf(control.Denied, "refused: %q is for root", "approve")
	}
	if id == "" {
		return gate.Question{}, gate.ErrUnknown
	}
	s.given, s.replies, s.logins = append(s.given, id), append(s.replies, r), append(s.logins, control.LoginOf(ctx))
	return gate.Question{ID: id, Outcome: gate.Approved, By: "alice"}, s.err
}

func (s *sensor) Approvals(context.Context) ([]gate.StandingApproval, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.ongoing, s.err
}

func (s *sensor) Signed(context.Context, control.Signed) (string, error) { return "", nil }

func (s *sensor) Revoke(ctx context.Context, id, _, _ string) (gate.StandingApproval, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.given, s.logins = append(s.given, "revoke "+id), append(s.logins, control.LoginOf(ctx))
	return gate.StandingApproval{Adds: "all"}, s.err
}

func (s *sensor) taken() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	given := s.given
	s.given = nil
	return given
}

func asks(id string, held bool) gate.Question {
	p := event.Process{PID: 7, UID: 1000, Comm: "curl", Argv: []string{"curl", "https://example.org/" + id}, Exe: &event.File{Path: "/usr/bin/curl", Device: 1, Inode: 2}}
	return gate.Question{
		ID: id, Container: event.Container{ID: "c1", Name: "web"}, Process: p, Held: held, Destination: event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"},
		Chain: []event.Member{{PID: 7, Argv: p.Argv}}, GrantSeconds: 30, GrantBytes: 1 << 20, State: gate.StatePending, Deadline: time.Now().Add(time.Hour),
	}
}

// served is a console, and a browser's half of it.
type served struct {
	*Console
	*sensor
	at, cookie, key string
	origin          string
	client          *http.Client
}

func serve(t *testing.T, o Options) *served {
	t.Helper()
	s := &sensor{asked: []gate.Question{asks("aaa222", true), asks("bbb222", true)}}
	o.Sensor, o.By, o.Every = s, "alice", 10*time.Millisecond
	o.Why = func(y control.Why) string { return "why " + y.Container.ID }
	o.Grant = func(event.GrantInfo) string { return "grant\x1b[2J" }
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	c, err := Listen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	v := &served{Console: c, sensor: s, at: c.hosts[0], origin: "http://" + c.hosts[0], client: http.DefaultClient}
	if len(o.Hosts) > 0 {
		v.origin = "https://" + v.at
		v.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", o.Listen) }}}
	}
	return v
}

// do sends what a page of this console would, changed by change.
func (s *served) do(t *testing.T, path, body string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.at+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", s.origin)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if s.cookie != "" {
		r.Header.Set("Cookie", s.cookie)
		r.Header.Set(keyHeader, s.key)
	}
	if change != nil {
		change(r)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err.Error()
	}
	defer answer.Body.Close()
	if answer.Header.Get("Content-Type") == "text/event-stream" { // has no end
		line, err := bufio.NewReader(answer.Body).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer, line
	}
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(data)
}

// enter lets the browser in.
func (s *served) enter(t *testing.T) *http.Response {
	t.Helper()
	_, token, _ := strings.Cut(s.URL(), "#")
	answer, body := s.do(t, "/enter", `{"token":"`+token+`"}`, nil)
	var k struct{ Key string }
	if err := json.Unmarshal([]byte(body), &k); err != nil || k.Key == "" || answer.StatusCode != http.StatusOK {
		t.Fatal(body, err)
	}
	s.cookie, _, _ = strings.Cut(answer.Header.Get("Set-Cookie"), ";")
	s.key = k.Key
	return answer
}

func (s *served) answerTo(id string) string {
	for _, q := range s.asked {
		if q.ID == id {
			return mustJSON(request{ID: id, Allow: true, Shown: question(q).Shown})
		}
	}
	return ""
}

// The token counts once, for whoever has it, and nobody gets in without.
func TestTokenOnce(t *testing.T) {
	s := serve(t, Options{})
	for name, body := range map[string]string{"none": `{}`, "empty": `{"token":""}`, "another": `{"token":"AAAA"}`, "no JSON": `x`} {
		if answer, body := s.do(t, "/enter", body, nil); answer.StatusCode < 400 || answer.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body)
		}
	}
	url := s.URL()
	answer := s.enter(t)
	for _, want := range []string{"; HttpOnly", "; SameSite=Strict", "; Path=/"} {
		if !strings.Contains(answer.Header.Get("Set-Cookie"), want) {
			t.Errorf("the cookie lacks %q: %s", want, answer.Header.Get("Set-Cookie"))
		}
	}
	if strings.Contains(answer.Header.Get("Set-Cookie"), s.key) {
		t.Error("the key is in the cookie")
	}
	_, token, _ := strings.Cut(url, "#")
	if answer, body := s.do(t, "/enter", `{"token":"`+token+`"}`, nil); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a second time: %d %s", answer.StatusCode, body)
	}
	if answer, body := s.do(t, "/enter", `{"token":""}`, nil); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("empty, after the token was used: %d %s", answer.StatusCode, body)
	}
	if answer, body := s.do(t, "/answer", s.answerTo("aaa222"), nil); answer.StatusCode != http.StatusOK {
		t.Errorf("who was let in: %d %s", answer.StatusCode, body)
	}
}

// Each attack is refused, reaches no question, and is told nothing; the same request without the change is carried out (G17, issue of other users and pages).
func TestAttacksG17(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	for name, attack := range map[string]func(*http.Request){
		"another user, with nothing": func(r *http.Request) { r.Header.Del("Cookie"); r.Header.Del(keyHeader) },
		"another user, with a guess": func(r *http.Request) {
			r.Header.Set("Cookie", s.Console.cookie+"=AAAA")
			r.Header.Set(keyHeader, "AAAA")
		},
		"another user, with an empty cookie":     func(r *http.Request) { r.Header.Set("Cookie", s.Console.cookie+"="); r.Header.Set(keyHeader, "") },
		"the cookie, which another port is sent": func(r *http.Request) { r.Header.Del(keyHeader) },
		"the key alone":                          func(r *http.Request) { r.Header.Del("Cookie") },
		"a page of another site":                 func(r *http.Request) { r.Header.Set("Origin", "https://example.org") },
		"a page of another port":                 func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
		"a page of a longer name":                func(r *http.Request) { r.Header.Set("Origin", "http://"+s.at+".example.org") },
		"a file":                                 func(r *http.Request) { r.Header.Set("Origin", "null") },
		"another scheme":                         func(r *http.Request) { r.Header.Set("Origin", "https://"+s.at) },
		"no origin":                              func(r *http.Request) { r.Header.Del("Origin") },
		"what the browser calls another site":    func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"what the browser calls the same site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"a name that leads here": func(r *http.Request) {
			r.Host = "evil.example.org"
			r.Header.Set("Origin", "http://evil.example.org")
		},
		"such a name with the port": func(r *http.Request) {
			_, port, _ := net.SplitHostPort(s.at)
			r.Host = "evil.example.org:" + port
			r.Header.Set("Origin", "http://"+r.Host)
		},
		"a form":      func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		"a plain get": func(r *http.Request) { r.Method = http.MethodGet },
	} {
		for _, path := range []string{"/answer", "/preview", "/why", "/revoke", "/live"} {
			if path == "/live" && name == "a form" {
				continue // it reads nothing, and a form cannot send the key
			}
			answer, body := s.do(t, path, s.answerTo("aaa222"), attack)
			if answer.StatusCode < 400 {
				t.Errorf("%s: %s: %d %s", name, path, answer.StatusCode, body)
			}
			if strings.Contains(body, "curl") || strings.Contains(body, "web") && !strings.Contains(body, "weir") {
				t.Errorf("%s: %s: it is told %s", name, path, body)
			}
		}
		if given := s.taken(); len(given) > 0 {
			t.Errorf("%s: reached the sensor: %q", name, given)
		}
	}
	for path, body := range map[string]string{"/answer": s.answerTo("aaa222"), "/why": `{"id":"c1"}`, "/revoke": `{"id":"x"}`} {
		if answer, body := s.do(t, path, body, nil); answer.StatusCode != http.StatusOK {
			t.Errorf("the page itself: %s: %d %s", path, answer.StatusCode, body)
		}
	}
	if got := len(s.taken()); got != 2 {
		t.Errorf("the page itself reached the sensor %d times, want an answer and a revocation", got)
	}
}

// Every answer, also a refusal, says what the browser is to keep to, and no page is loaded for another name.
func TestHeaders(t *testing.T) {
	s := serve(t, Options{})
	for _, path := range []string{"/", "/app.js", "/app.css", "/nothing", "/enter", "/assets/index.html"} {
		answer, err := http.Get("http://" + s.at + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"X-Content-Type-Options":  "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	r, _ := http.NewRequest(http.MethodGet, "http://"+s.at+"/", nil)
	r.Host = "evil.example.org"
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMisdirectedRequest {
		t.Error("a page for another name:", answer.Status)
	}
	page, err := files.ReadFile("assets/index.html")
	if err != nil || bytes.Contains(page, []byte("style=")) || bytes.Contains(page, []byte("<script>")) || bytes.Contains(page, []byte("://")) {
		t.Error("the page has a script or style of its own, or something from outside", err)
	}
}

// A guarded process is not answered at all: neither over the port nor over the socket, whatever it knows.
func TestGuardedIsNotServed(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	s.lock.Lock()
	peers := s.peers
	s.refused = control.Errorf(control.Denied, "refused: the peer is guarded")
	s.lock.Unlock()
	if len(peers) == 0 || peers[0].Remote.String() != s.at || !peers[0].Local.Addr().IsLoopback() {
		t.Errorf("the sensor was asked about %v", peers)
	}
	for _, refused := range []error{s.refused, control.ErrNotRunning} { // without a sensor nobody is known
		s.lock.Lock()
		s.refused = refused
		s.lock.Unlock()
		for _, path := range []string{"/answer", "/live", "/enter"} {
			if answer, text := s.do(t, path, s.answerTo("aaa222"), nil); answer != nil {
				t.Errorf("%v: %s: %s %s", refused, path, answer.Status, text)
			}
		}
	}
	if given := s.taken(); len(given) > 0 {
		t.Errorf("it reached the sensor: %q", given)
	}

	socket := filepath.Join(t.TempDir(), "s")
	u := serve(t, Options{Listen: socket, Hosts: []string{"weir.example.org"}})
	get := func() (*http.Response, error) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
		return client.Get("http://weir.example.org/")
	}
	answer, err := get()
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	answer.Body.Close()
	if c, err := Listen(t.Context(), Options{Sensor: u.sensor, Listen: socket, Hosts: u.hosts}); control.Code(err) != control.Usage {
		t.Error("a socket in use is taken:", c, err)
	}
	u.lock.Lock()
	if len(u.peers) == 0 || u.peers[0].PID <= 0 {
		t.Errorf("the sensor was asked about %v", u.peers)
	}
	u.refused = errors.New("guarded")
	u.lock.Unlock()
	if answer, err := get(); err == nil {
		answer.Body.Close()
		t.Error("over the socket:", answer.Status)
	}
}

// An answer is for the question that was shown, as it was shown.
func TestAnswerIsForWhatWasShown(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	before := s.answerTo("aaa222")
	s.lock.Lock()
	s.asked[0].Gone = true
	s.lock.Unlock()
	if answer, body := s.do(t, "/answer", before, nil); answer.StatusCode != http.StatusConflict {
		t.Error("the question has changed:", answer.StatusCode, body)
	}
	mixed := mustJSON(request{ID: "bbb222", Allow: true, Shown: question(s.asked[0]).Shown})
	if answer, body := s.do(t, "/answer", mixed, nil); answer.StatusCode != http.StatusConflict {
		t.Error("another question's text:", answer.StatusCode, body)
	}
	after := s.answerTo("aaa222")
	s.lock.Lock()
	s.asked = s.asked[1:]
	s.lock.Unlock()
	if answer, body := s.do(t, "/answer", after, nil); answer.StatusCode != http.StatusConflict {
		t.Error("the question has ended:", answer.StatusCode, body)
	}
	if given := s.taken(); len(given) > 0 {
		t.Errorf("reached the sensor: %q", given)
	}
	if answer, body := s.do(t, "/answer", s.answerTo("bbb222"), nil); answer.StatusCode != http.StatusOK {
		t.Error(answer.StatusCode, body)
	}
	if r := s.replies[0]; s.given[0] != "bbb222" || !r.Allow || r.By != "alice" || !strings.Contains(r.Shown, "https://example.org/bbb222") {
		t.Errorf("%q %+v", s.given, r)
	}
}

// What goes on is given only as it was shown that it adds.
func TestLastingIsShownFirst(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	q := request{ID: "aaa222", Allow: true, Shown: question(s.asked[0]).Shown, For: "30m", Who: gate.WhoProgram, Bytes: "1MiB"}
	if answer, body := s.do(t, "/answer", mustJSON(q), nil); answer.StatusCode != http.StatusConflict || len(s.taken()) > 0 {
		t.Error("what it adds was not shown:", answer.StatusCode, body)
	}
	answer, body := s.do(t, "/preview", mustJSON(q), nil)
	var p struct{ Text string }
	if err := json.Unmarshal([]byte(body), &p); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(p.Text, "so far       nothing") {
		t.Fatal(answer.StatusCode, body, err)
	}
	other := q
	other.Adds, other.For = p.Text, "24h"
	if answer, body := s.do(t, "/answer", mustJSON(other), nil); answer.StatusCode != http.StatusConflict || len(s.taken()) > 0 {
		t.Error("another time than was shown:", answer.StatusCode, body)
	}
	q.Adds = p.Text
	s.lock.Lock()
	s.ongoing = []gate.StandingApproval{{Container: s.asked[0].Container, Destination: s.asked[0].Destination, Adds: "all"}}
	s.lock.Unlock()
	if answer, body := s.do(t, "/answer", mustJSON(q), nil); answer.StatusCode != http.StatusConflict || len(s.taken()) > 0 {
		t.Error("there is another one than was shown:", answer.StatusCode, body)
	}
	s.lock.Lock()
	s.ongoing = nil
	s.lock.Unlock()
	if answer, body := s.do(t, "/answer", mustJSON(q), nil); answer.StatusCode != http.StatusOK {
		t.Fatal(answer.StatusCode, body)
	}
	if r := s.replies[0]; r.Adds == "" || !strings.Contains(p.Text, r.Adds) || r.For != "30m" || r.Who != gate.WhoProgram || r.Bytes != 1<<20 || !strings.HasSuffix(r.Shown, p.Text) {
		t.Errorf("%+v", r)
	}
	for does, bad := range map[string]request{"give a number": {For: "30m", Bytes: "many"}, "give session, or a time": {For: "soon"}, "choose a process": {For: "30m", Who: "all"}} {
		bad.ID, bad.Allow, bad.Shown = q.ID, true, q.Shown
		if answer, body := s.do(t, "/preview", mustJSON(bad), nil); answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, does) {
			t.Errorf("%s: %d %s", does, answer.StatusCode, body)
		}
	}
}

// What containers chose leaves as visible text (B51); when the sensor is gone or somebody may not, one line says so.
func TestLive(t *testing.T) {
	s := serve(t, Options{})
	s.enter(t)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.at+"/live", strings.NewReader("{}"))
	r.Header = http.Header{"Origin": {"http://" + s.at}, "Cookie": {s.cookie}, keyHeader: {s.key}}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	in := bufio.NewReader(answer.Body)
	next := func() (st state) {
		t.Helper()
		line, err := in.ReadString('\n')
		if err == nil {
			_, err = in.ReadString('\n')
		}
		if err == nil {
			err = json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &st)
		}
		if err != nil {
			t.Fatal(line, err)
		}
		return st
	}
	st := next()
	if len(st.Containers) != 1 || st.Containers[0].Name != `$'<b>\u202eweb\x1b[2J'` || st.Containers[0].Grants[0] != `grant\x1b[2J` || st.Containers[0].Questions != 2 {
		t.Errorf("%+v", st.Containers)
	}
	if len(st.Groups) != 1 || len(st.Groups[0]) != 2 {
		t.Errorf("questions of one program to one destination are not together: %+v", st.Groups)
	}
	s.lock.Lock()
	s.asked = nil
	s.lock.Unlock()
	for len(st.Groups) > 0 {
		st = next()
	}
	s.lock.Lock()
	s.err = control.ErrNotRunning
	s.lock.Unlock()
	for st.Error == "" {
		st = next()
	}
	if !strings.HasPrefix(st.Error, "no sensor is running") {
		t.Error(st.Error)
	}
	if _, err := in.ReadByte(); err == nil {
		t.Error("it goes on without a sensor")
	}
	s.lock.Lock()
	s.err = control.Errorf(control.Denied, "refused: it is for root")
	s.lock.Unlock()
	if answer, body := s.do(t, "/why", `{"id":"c1"}`, nil); answer.StatusCode != http.StatusForbidden || body != `{"error":"refused: it is for root"}`+"\n" {
		t.Error(answer.StatusCode, body)
	}
}

func TestListen(t *testing.T) {
	for _, at := range []string{"0.0.0.0:0", "192.0.2.1:80", "example.org:80", "80", ""} {
		if c, err := Listen(t.Context(), Options{Sensor: &sensor{}, Listen: at}); control.Code(err) != control.Usage {
			t.Errorf("%q: %v %v", at, c, err)
		}
	}
	if c, err := Listen(t.Context(), Options{Sensor: &sensor{}, Listen: filepath.Join(t.TempDir(), "s")}); control.Code(err) != control.Usage {
		t.Error("a socket without the name of its proxy:", c, err)
	}
	for host, right := range map[string]bool{
		"weir.example.org": true, "weir.example.org:8443": true, "[2001:db8::1]": true,
		"https://weir.example.org": false, "weir.example.org/": false, "weir.example.org:443": false, "Weir.example.org": false, "a@weir.example.org": false, ":8443": false, "": false,
	} {
		c, err := Listen(t.Context(), Options{Sensor: &sensor{}, Listen: filepath.Join(t.TempDir(), "s"), Hosts: []string{host}})
		if right != (err == nil) || err != nil && (control.Code(err) != control.Usage || !strings.Contains(err.Error(), "is not how browsers call a host")) {
			t.Errorf("%q: %v", host, err)
		}
		if err == nil {
			c.listener.Close()
		}
	}
	if _, err := Listen(t.Context(), Options{Sensor: &sensor{err: control.ErrNotRunning}, Listen: "127.0.0.1:0"}); !errors.Is(err, control.ErrNotRunning) {
		t.Error(err)
	}
}

// Only what can be had is offered.
func TestNarrowest(t *testing.T) {
	for _, test := range []struct {
		held      bool
		parents   int
		narrowest int
	}{{true, 0, 1}, {false, 0, 0}, {true, 1, 1}, {false, 1, 2}} {
		q := asks("aaa222", test.held)
		for range test.parents {
			q.Chain = append(q.Chain, event.Member{PID: 6, Argv: []string{"make"}})
		}
		if v := question(q); v.Narrowest != test.narrowest || !v.Lasting {
			t.Errorf("%+v: scope %d, %t", test, v.Narrowest, v.Lasting)
		}
	}
	q := asks("aaa222", true)
	q.Text = "npm install"
	if v := question(q); v.Lasting || v.Narrowest != 0 {
		t.Errorf("%+v", v)
	}
}
