package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
	"weir/internal/gate"
)

var _ Backend = (*Client)(nil)

// start serves b in a directory of its own, to whoever runs the test.
func start(t *testing.T, b Backend, refuse func(int) error) (dir string, s *Server) {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err = Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.uid = uint32(os.Geteuid())
	serve(t, s, b, refuse)
	return dir, s
}

func serve(t *testing.T, s *Server, b Backend, refuse func(int) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, b, refuse) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("serve:", err)
		}
	})
}

func TestCalls(t *testing.T) {
	b := new(fake)
	dir, _ := start(t, b, nil)
	c := NewClient(dir)
	ctx := t.Context()
	me := peer{pid: os.Getpid(), uid: uint32(os.Geteuid())}.name("alice")

	status, err := c.Status(ctx)
	check(t, err, status, Status{Version: "v1", PID: 7, Mode: "enforce"})
	list, err := c.Containers(ctx)
	check(t, err, list, []Container{{ID: "c1", Cgroup: "/a", Taint: []string{"secret"}}})
	k, err := c.Taint(ctx, "web", []string{"secret"}, "alice", "")
	check(t, err, k, Container{ID: "web", Taint: []string{"secret"}, By: me})
	k, err = c.Untaint(ctx, "web", []string{"secret"}, "alice", "rebuilt")
	check(t, err, k, Container{ID: "web", By: me})
	questions, err := c.Pending(ctx)
	check(t, err, questions, []gate.Question{{ID: "abc234", State: "pending"}})
	q, err := c.Answer(ctx, "abc234", gate.Reply{Allow: true, By: "alice", Why: "ok", Shown: "text"})
	uid := uint32(os.Geteuid())
	exe, _ := os.Executable()
	if q.From == nil {
		t.Fatal("the answer has no origin")
	}
	q.From.Terminal, q.From.SSH = "", "" // of who runs the test
	check(t, err, q, gate.Question{
		ID: "abc234", By: me, From: &event.Origin{Via: "control", UID: &uid, PID: os.Getpid(), Exe: exe}, Shown: &event.Shown{Text: "text"},
	})
	list2, err := c.History(ctx, 7)
	check(t, err, list2, []gate.Question{{ID: "abc233", State: "used"}})
	_, err = c.Answer(ctx, "abc234", gate.Reply{By: "alice"})
	check(t, err, 0, 0)
	q, err = c.Answer(ctx, "abc234", gate.Reply{Allow: true, By: "alice", Scope: 2})
	check(t, err, q.Scope, 2)
	_, err = c.Answer(ctx, "abc234", gate.Reply{Allow: true, By: "alice", For: "30m", Who: gate.WhoProgram, Bytes: 7, Keeps: true, Adds: "all"})
	check(t, err, 0, 0)
	why, err := c.Why(ctx, "web")
	check(t, err, why, Why{Container: Container{ID: "web"}, Older: true})
	standing, err := c.Approvals(ctx)
	check(t, err, standing, []gate.StandingApproval{{ID: "abc234", Who: gate.WhoContainer, Adds: "all"}})
	ended, err := c.Revoke(ctx, "abc234", "alice", "enough")
	check(t, err, ended, gate.StandingApproval{ID: "abc234"})
	_, err = c.Answer(WithLogin(ctx, "bob"), "abc234", gate.Reply{By: "alice"})
	check(t, err, 0, 0)
	_, err = c.Revoke(WithLogin(ctx, "bob"), "abc234", "alice", "enough")
	check(t, err, 0, 0)
	reply, err := c.Guard(ctx, GuardRequest{Name: "n", Taint: []string{"secret"}, Policy: "mode: seal\n", PolicyName: "p.yaml", By: "alice"})
	check(t, err, reply, GuardReply{ID: "s1", Cgroup: "/sys/fs/cgroup/weir/s1"})
	k, err = c.GuardCgroup(ctx, CgroupRequest{Cgroup: "agent-1.scope", Name: "n", Taint: []string{"secret"}, By: "alice"})
	check(t, err, k, Container{ID: "agent-1.scope", Taint: []string{"secret"}})
	check(t, c.GuardAgent(ctx, "s1", 42), 0, 0)
	sum, err := c.GuardEnd(ctx, "s1")
	check(t, err, sum, Summary{Denied: 3})
	check(t, c.Mode(ctx, "seal", "alice", "panic"), 0, 0)
	check(t, c.ModelRefused(ctx, ModelRefusal{Code: "model_path", PID: 9}), 0, 0)
	check(t, c.Reload(ctx), 0, 0)
	text, err := c.Metrics(ctx)
	check(t, err, text, "weir_goroutines 1\n")
	check(t, c.Peer(ctx, Peer{PID: 9}), 0, 0)
	check(t, c.Peer(ctx, Peer{Local: netip.MustParseAddrPort("127.0.0.1:5"), Remote: netip.MustParseAddrPort("127.0.0.1:6")}), 0, 0)

	want := []string{
		"status", "containers",
		"taint web [secret] " + me + " ", "untaint web [secret] " + me + " rebuilt",
		"pending", "answer abc234 true " + me + " ok", "history 7", "answer abc234 false " + me + " ", "answer abc234 true " + me + " scope 2",
		"answer abc234 true " + me + " for 30m program 7 true all", "why web", "approvals", `revoke abc234 "` + me + `" "enough"`,
		"answer abc234 false bob (through the console of " + me + ") ", `revoke abc234 "bob (through the console of ` + me + `)" "enough"`,
		`guard {"name":"n","taint":["secret"],"policy":"mode: seal\n","policy_name":"p.yaml","by":"` + me + `"}`,
		"guard-cgroup agent-1.scope n [secret] " + me, "agent s1 42", "end s1", "mode seal " + me + " panic", "model model_path 9", "reload", "metrics",
		"peer 9 invalid AddrPort invalid AddrPort", "peer 0 127.0.0.1:5 127.0.0.1:6",
	}
	if diff := cmp.Diff(want, b.taken()); diff != "" {
		t.Error("calls (-want +got):\n" + diff)
	}
}

func check(t *testing.T, err error, got, want any) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestEvents(t *testing.T) {
	b := &fake{log: []event.Event{{Kind: event.Start}, {Kind: event.Stop}}, live: make(chan event.Event, 1)}
	dir, _ := start(t, b, nil)
	c := NewClient(dir)
	var got []event.Kind
	note := func(e event.Event) error { got = append(got, e.Kind); return nil }

	if err := c.Events(t.Context(), event.Filter{Kinds: []event.Kind{event.Start}, Container: "web"}, false, note); err != nil {
		t.Fatal(err)
	}
	check(t, nil, got, []event.Kind{event.Start, event.Stop})

	got = nil
	b.live <- event.Event{Kind: event.Exec}
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Events(ctx, event.Filter{}, true, func(e event.Event) error {
		if e.Kind == event.Exec {
			cancel()
		}
		return note(e)
	})
	if !errors.Is(err, context.Canceled) {
		t.Error("following ended with", err)
	}
	check(t, nil, got, []event.Kind{event.Start, event.Stop, event.Exec})
	calls := ended(t, b, 1) // a client that goes ends the stream, though nothing is written to it
	stopped := errors.New("enough")
	b.live <- event.Event{Kind: event.Exec}
	err = c.Events(t.Context(), event.Filter{}, true, func(e event.Event) error {
		if e.Kind == event.Exec {
			return stopped
		}
		return nil
	})
	if err != stopped {
		t.Error("the callback's error came back as", err)
	}
	calls = append(calls, ended(t, b, 1)...)
	want := []string{`events [start] "web" follow=false`, `events [] "" follow=true`, "events end", `events [] "" follow=true`, "events end"}
	check(t, nil, calls, want)
}

// ended waits until n streams have ended and returns the calls up to then.
func ended(t *testing.T, b *fake, n int) (calls []string) {
	t.Helper()
	for range 6000 {
		calls = append(calls, b.taken()...)
		if strings.Count(strings.Join(calls, "\n"), "events end") == n {
			return calls
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the stream did not end")
	return nil
}

func TestErrorsKeepTheirCode(t *testing.T) {
	b := new(fake)
	dir, _ := start(t, b, nil)
	for _, tc := range []struct {
		err  error
		code int
	}{
		{errors.New("disk full"), Failed},
		{fmt.Errorf("find: %w", Errorf(Usage, "no such container")), Usage},
		{Errorf(Denied, "not you"), Denied},
	} {
		b.err = tc.err
		_, err := NewClient(dir).Status(t.Context())
		if err == nil || err.Error() != tc.err.Error() || Code(err) != tc.code {
			t.Errorf("%v (%d) came back as %v (%d)", tc.err, tc.code, err, Code(err))
		}
	}
}

// talk posts a raw body and returns the status and the failure of the answer.
func talk(t *testing.T, dir, op, body string) (int, Error) {
	t.Helper()
	answer, err := NewClient(dir).http.Post("http://weir/"+op, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var failed Error
	if err := json.NewDecoder(answer.Body).Decode(&failed); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, failed
}

func TestBadRequests(t *testing.T) {
	b := new(fake)
	dir, _ := start(t, b, nil)
	for _, tc := range []struct{ op, text, want string }{
		{"fly", `{}`, `unknown operation "/fly": the operations are approvals, approve, containers, deny, events, guard,`},
		{"", `{}`, `unknown operation "/"`},
		{"status/", `{}`, `unknown operation "/status/"`},
		{"status", `{"nmae":"x"}`, `unknown field "nmae"`},
		{"taint", `{"name":"x","bits":"secret"}`, `bits is a JSON string: wanted is a list`},
		{"taint", `{"name":"x"}`, "taint: no bits given"},
		{"taint", `{"bits":["secret"]}`, "taint: no name given"},
		{"untaint", `{"name":"x","bits":["secret"],"why":" "}`, "untaint: no why given"},
		{"mode", `{"mode":"seal"}`, "mode: no why given"},
		{"approve", `{}`, "approve: no id given"},
		{"approve", `{"id":"abc","scope":"session"}`, "scope is a JSON string: wanted is a whole number"},
		{"approve", `{"id":"abc","scope":1.5}`, "scope is a JSON number 1.5: wanted is a whole number"},
		{"deny", `{"id":"abc","why":"` + strings.Repeat("x", maxWhy+1) + `"}`, "deny: why has more than 4096 bytes"},
		{"taint", `{"name":"x","bits":["secret"],"why":"` + strings.Repeat("x", maxWhy+1) + `"}`, "taint: why has more than 4096 bytes"},
		{"untaint", `{"name":"x","bits":["secret"],"why":"` + strings.Repeat("x", maxWhy+1) + `"}`, "untaint: why has more than 4096 bytes"},
		{"mode", `{"mode":"seal","why":"` + strings.Repeat("x", maxWhy+1) + `"}`, "mode: why has more than 4096 bytes"},
		{"peer", `{"local":"127.0.0.1:5"}`, "peer: give a pid, or both local and remote"},
		{"history", `{"most":-1}`, "history: most is -1"},
		{"guard-agent", `{"id":"s","pid":-1}`, "the pid -1 is none"},
		{"guard-agent", `{"id":"s","pid":1e99}`, "pid is a JSON number 1e99: wanted is a whole number"},
		{"guard-end", `{}`, "guard-end: no id given"},
		{"guard-cgroup", `{}`, "guard-cgroup: no cgroup given"},
		{"events", `{"kinds":["nonsense"]}`, `unknown kind "nonsense"`},
		{"status", `{} {}`, "read request: more than one JSON object"},
		{"status", `{} x`, "read request: not JSON from byte 3 on"},
		{"taint", `{"name":7}`, "name is a JSON number: wanted is a text"},
		{"status", `[]`, "it is a JSON array: wanted is an object"},
		{"status", `nonsense`, "not JSON from byte 2 on"},
		{"status", `{"nam`, "read request: "},
		{"status", "", "read request: "},
		{"status", strings.Repeat("[", 200_000), "not JSON from byte 10001 on"},
		{"taint", `{"name":"` + strings.Repeat("x", maxRequest) + `"}`, "longer than 1048576 bytes"},
	} {
		status, failed := talk(t, dir, tc.op, tc.text)
		if status != http.StatusBadRequest || failed.Code != Usage || !strings.Contains(failed.Text, tc.want) || strings.Contains(failed.Text, "\n") {
			t.Errorf("%s %.60q: got %d %+v, want %q", tc.op, tc.text, status, failed, tc.want)
		}
	}
	answer, err := NewClient(dir).http.Get("http://weir/status")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Error("a GET gave", answer.Status)
	}
	if calls := b.taken(); len(calls) > 0 {
		t.Error("the backend was called:", calls)
	}
}

// TestBrokenOff: a failure after the first events reaches the client, and so does the end of a sensor.
func TestBrokenOff(t *testing.T) {
	b := &fake{log: []event.Event{{Kind: event.Start}}, broken: Errorf(Usage, "the log ends in the middle")}
	dir, _ := start(t, b, nil)
	n := 0
	err := NewClient(dir).Events(t.Context(), event.Filter{}, false, func(event.Event) error { n++; return nil })
	if n != 1 || Code(err) != Usage || err.Error() != "the log ends in the middle" {
		t.Errorf("%d events, then %v", n, err)
	}
}

// B27: the peer's uid is the kernel's word, and so is its pid.
func TestRefusedPeers(t *testing.T) {
	b := new(fake)
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.uid = uint32(os.Geteuid()) + 1
	serve(t, s, b, nil)
	if _, err := NewClient(dir).Status(t.Context()); Code(err) != Denied || !strings.Contains(err.Error(), "only root") {
		t.Error("a peer of another uid got", err)
	}
	var pid int
	dir, _ = start(t, b, func(p int) error { pid = p; return errors.New("the process is guarded") })
	if _, err := NewClient(dir).Status(t.Context()); Code(err) != Denied || err.Error() != "refused: the process is guarded" {
		t.Error("a peer that is objected to got", err)
	}
	if pid != os.Getpid() {
		t.Error("the peer's pid was", pid)
	}
	if calls := b.taken(); len(calls) > 0 {
		t.Error("the backend was called:", calls)
	}
}

func TestListen(t *testing.T) {
	b := new(fake)
	dir, s := start(t, b, nil)
	if _, err := Listen(dir); !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Error("a second sensor got", err)
	}
	if _, err := NewClient(dir).Status(t.Context()); err != nil {
		t.Error("after a second sensor tried:", err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o711, s.path: 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is %v, want %v (%v)", path, info.Mode(), want, err)
		}
	}
	cookie, err := s.Cookie()
	if again, _ := s.Cookie(); err != nil || cookie == 0 || cookie != again {
		t.Errorf("cookie %d, then %d, %v", cookie, again, err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := NewClient(dir).Status(t.Context()); err != ErrNotRunning {
		t.Error("a stale socket:", err)
	}
	os.WriteFile(filepath.Join(dir, lockName), []byte("99999999\n"), 0o600)
	s, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(s.path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the socket stays:", err)
	}
	s, err = Listen(dir)
	if err != nil {
		t.Fatal("after Close:", err)
	}
	s.Close()
}

func TestListenBadDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	os.WriteFile(file, nil, 0o600)
	link := file + ".link"
	os.Symlink(t.TempDir(), link)
	for _, dir := range []string{file, link, filepath.Join(file, "below")} {
		if s, err := Listen(dir); err == nil {
			s.Close()
			t.Error("listened in", dir)
		}
	}
}

func TestNobodyServes(t *testing.T) {
	c := NewClient(filepath.Join(t.TempDir(), "none"))
	if _, err := c.Status(t.Context()); err != ErrNotRunning {
		t.Error(err)
	}
	if err := c.Events(t.Context(), event.Filter{}, true, nil); err != ErrNotRunning {
		t.Error(err)
	}
}

func TestPeerName(t *testing.T) {
	for _, tc := range []struct{ said, want string }{
		{"", "uid 4294967290"},
		{"alice", "uid 4294967290 (alice)"},
		{"a) b (c\x1b\u202e", "uid 4294967290 (a? b ?c??)"},
		{strings.Repeat("é", 100), "uid 4294967290 (" + strings.Repeat("é", 32) + ")"},
	} {
		if got := (peer{pid: -1, uid: 4294967290}).name(tc.said); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.said, got, tc.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range [][2]string{
		{"status", `{}`}, {"taint", `{"name":"x","bits":["secret"],"by":"a"}`}, {"untaint", `{"name":"x","bits":["secret"],"why":"y"}`},
		{"approve", `{"id":"abc"}`}, {"events", `{"kinds":["exec"],"since":"2024-01-01T00:00:00Z","follow":false}`},
		{"guard", `{"policy":"mode: seal"}`}, {"guard-agent", `{"id":"s","pid":1}`}, {"guard-end", `{"id":"s"}`}, {"mode", `{"mode":"seal","why":"w"}`},
		{"status", `null`}, {"status", `[1]`}, {"status", `{}{}`}, {"fly", `{}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, op, body string) {
		b := new(fake)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), peerKey{}, peer{}))
		cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
		r.URL.Path = "/" + op
		w := httptest.NewRecorder()
		operationsOf(b).ServeHTTP(w, r)
		if calls := b.taken(); (w.Code == http.StatusOK) != (len(calls) > 0) {
			t.Errorf("calls %v with status %d", calls, w.Code)
		}
	})
}
