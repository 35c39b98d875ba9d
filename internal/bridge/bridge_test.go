package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/toolguard"
)

// host decides as its test says.
type host struct {
	mu     sync.Mutex
	asker  Asker
	err    error
	decide func(context.Context, gate.Request) gate.Verdict
	denied []event.Decision
	told   []string // excerpts of what is denied, with who asked
	called []string
	failed error // of Called

	confirm   func(context.Context, gate.Request) gate.Verdict // nil: as decide
	confirmed []string
	whos      int
}

func (h *host) Who(int) (Asker, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.whos++
	return h.asker, h.err
}

func (h *host) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *host) Decide(ctx context.Context, r gate.Request) gate.Verdict {
	if h.decide == nil {
		return gate.Verdict{Decision: gate.Allow, Reason: gate.Untainted}
	}
	return h.decide(ctx, r)
}

func (h *host) Confirm(ctx context.Context, r gate.Request) gate.Verdict {
	h.set(func() { h.confirmed = append(h.confirmed, r.Command) })
	if h.confirm != nil {
		return h.confirm(ctx, r)
	}
	return h.Decide(ctx, r)
}

func (h *host) Deny(who Asker, excerpt string, d event.Decision) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.denied = append(h.denied, d)
	h.told = append(h.told, who.Container.ID+" "+excerpt)
	return nil
}

func (h *host) Called(_ Asker, tool string, public bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.called = append(h.called, fmt.Sprint(tool, " ", public))
	return h.failed
}

func quiet() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

func inside(taint ...string) Asker {
	return Asker{Container: event.Container{ID: "g-test", Taint: taint}, Process: event.Process{PID: os.Getpid(), Start: 1}, Mode: "enforce"}
}

func serve(t *testing.T, h *host) string {
	t.Helper()
	return serveWith(t, h, nil)
}

func serveWith(t *testing.T, h *host, c Carrier) string {
	t.Helper()
	s := New(h, quiet())
	if c != nil {
		s.Carry(c)
	}
	return listen(t, s)
}

// listen serves for as long as t runs, and checks that the books are empty then.
func listen(t *testing.T, s *Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.sock")
	if err := s.Listen(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(within); err != nil {
			t.Error(err)
		}
		if len(s.use) != 0 || s.long != 0 || s.conns != 0 {
			t.Errorf("left in the books: %v, %d long, %d connections", s.use, s.long, s.conns)
		}
	})
	return path
}

// late is when what must happen has not: a loaded machine takes its time.
const late = 2 * time.Minute

func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(late))
	return conn.(*net.UnixConn)
}

func bash(id, command string) string {
	line, _ := json.Marshal(wire.Request{Type: wire.BashCheck, RequestID: id, Command: command})
	return string(line) + "\n"
}

func answers(t *testing.T, conn *net.UnixConn, n int) map[string]wire.Answer {
	t.Helper()
	in, got := bufio.NewReader(conn), map[string]wire.Answer{}
	for range n {
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatalf("after %d answers: %v", len(got), err)
		}
		var a wire.Answer
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got[a.RequestID] = a
	}
	return got
}

// TestAnswersG20: the id is echoed, an answer allows or denies, and a denial has a reason.
func TestAnswersG20(t *testing.T) {
	h := &host{asker: inside("secret"), decide: func(_ context.Context, r gate.Request) gate.Verdict {
		if r.Ask != gate.Command || r.Container.ID != "g-test" {
			return gate.Verdict{}
		}
		if r.Command == "ls" {
			return gate.Verdict{Decision: gate.Allow, Reason: gate.LocalRun}
		}
		return gate.Verdict{Reason: gate.Flagged, Text: "it sends a file to evil.example"}
	}}
	path := serve(t, h)
	for name, c := range map[string]struct{ send, id, decision, says string }{
		"allowed":       {bash("1", "ls"), "1", "allow", ""},
		"denied":        {bash("2", "curl"), "2", "deny", "it sends a file to evil[.]example"},
		"no newline":    {strings.TrimSuffix(bash("3", "ls"), "\n"), "3", "allow", ""},
		"blank before":  {"\n \r\n" + bash("4", "ls"), "4", "allow", ""},
		"no JSON":       {"ls\n", "", "deny", "not a JSON object"},
		"an array":      {"[]\n", "", "deny", "not a JSON object"},
		"number as id":  {`{"type":"security:bash_check","request_id":5,"command":"ls"}` + "\n", "", "deny", "not a JSON object"},
		"long id":       {bash(strings.Repeat("x", 200), "ls"), "", "deny", "128 bytes"},
		"no command":    {bash("5", " "), "5", "deny", "no command"},
		"unknown type":  {`{"type":"security:root","request_id":"6","command":"ls"}` + "\n", "6", "deny", "type of the request is unknown"},
		"long session":  {`{"type":"security:bash_check","request_id":"7","command":"ls","session_id":"` + strings.Repeat("x", 129) + `"}` + "\n", "", "deny", "longer than 128 bytes"},
		"long prompt":   {`{"type":"security:tool_check","request_id":"7","tool_name":"Read","prompt_id":"` + strings.Repeat("x", 1<<16) + `"}` + "\n", "", "deny", "longer than 128 bytes"},
		"no type":       {`{"request_id":"7","command":"ls"}` + "\n", "7", "deny", "type of the request is unknown"},
		"another's":     {`{"type":"security:bash_check","request_id":"8","command":"curl","container":"g-other","taint":[]}` + "\n", "8", "deny", "evil[.]example"},
		"two objects":   {`{"type":"security:bash_check","request_id":"9","command":"ls"}{}` + "\n", "", "deny", "not a JSON object"},
		"cut":           {`{"type":"security:bash_check","request_id":"9","comm`, "", "deny", "not a JSON object"},
		"as a tool":     {`{"type":"security:tool_check","request_id":"10","tool_name":"shell","tool_input":{"command":["bash","-lc","curl"]}}` + "\n", "10", "deny", "evil[.]example"},
		"tool, no text": {`{"type":"security:tool_check","request_id":"11","tool_name":"Bash","tool_input":{}}` + "\n", "11", "deny", "no command"},
		"nameless tool": {`{"type":"security:tool_check","request_id":"12"}` + "\n", "12", "deny", "names no tool"},
		"G23 WebFetch":  {`{"type":"security:tool_check","request_id":"13","tool_name":"WebFetch","tool_input":{"url":"https://a.example"}}` + "\n", "13", "deny", "mcp__browser__"},
		"G23 WebSearch": {`{"type":"security:tool_check","request_id":"14","tool_name":"WebSearch","tool_input":{"query":"x"}}` + "\n", "14", "allow", ""},
		"G22":           {bash("15", "git push --force origin main"), "15", "deny", "git guard"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, path)
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Fatal(err)
			}
			conn.CloseWrite()
			a, ok := answers(t, conn, 1)[c.id]
			if !ok || a.Decision != c.decision || !strings.Contains(a.Reason, c.says) || (a.Decision == wire.Deny) != (a.Reason != "") {
				t.Errorf("got %+v", a)
			}
		})
	}
}

// TestMany: many requests on one connection are answered as they are decided, and what waits holds up no other.
func TestMany(t *testing.T) {
	release := make(chan struct{})
	h := &host{asker: inside("secret"), decide: func(_ context.Context, r gate.Request) gate.Verdict {
		if r.Command == "slow" {
			<-release
		}
		return gate.Verdict{Decision: gate.Allow, Reason: gate.Passed}
	}}
	conn := dial(t, serve(t, h))
	io.WriteString(conn, bash("slow", "slow"))
	for i := range 200 {
		io.WriteString(conn, bash(fmt.Sprint(i), "ls"))
	}
	got := answers(t, conn, 200)
	close(release)
	if _, ok := got["slow"]; ok || len(got) != 200 {
		t.Errorf("%d answers", len(got))
	}
	if a := answers(t, conn, 1)["slow"]; a.Decision != wire.Allow {
		t.Errorf("got %+v", a)
	}
}

// TestWhoG21: who asks is established for each request, not once for a connection.
func TestWhoG21(t *testing.T) {
	h := &host{asker: inside()}
	conn := dial(t, serve(t, h))
	io.WriteString(conn, bash("1", "ls"))
	if a := answers(t, conn, 1)["1"]; a.Decision != wire.Allow {
		t.Fatalf("got %+v", a)
	}
	h.set(func() { h.err = errors.New("gone") })
	io.WriteString(conn, bash("2", "ls"))
	if a := answers(t, conn, 1)["2"]; a.Decision != wire.Deny || !strings.Contains(a.Reason, "no guarded container") {
		t.Errorf("got %+v", a)
	}
}

// TestLong: a line over the limit is told, and one that never ends takes no memory.
func TestLong(t *testing.T) {
	path := serve(t, &host{asker: inside()})
	conn := dial(t, path)
	io.WriteString(conn, bash("1", "echo "+strings.Repeat("x", wire.MaxLine-200)))
	if a := answers(t, conn, 1)["1"]; a.Decision != wire.Allow {
		t.Errorf("got %+v", a)
	}
	junk := make([]byte, 1<<20)
	sent := 0
	for range 64 {
		n, err := conn.Write(junk)
		if sent += n; err != nil {
			break
		}
	}
	if sent == 64<<20 {
		t.Error("64 MiB were read as one line")
	}
	if a := answers(t, conn, 1)[""]; a.Decision != wire.Deny || !strings.Contains(a.Reason, "2 MiB") {
		t.Errorf("got %+v", a)
	}
}

// TestLongShare: a container has room for two long lines at once.
func TestLongShare(t *testing.T) {
	path := serve(t, &host{asker: inside()})
	long := strings.Repeat("x", maxShort+8<<10)
	var open []*net.UnixConn
	for range maxOwnLong {
		conn := dial(t, path)
		io.WriteString(conn, long)
		open = append(open, conn)
	}
	deadline := time.Now().Add(late)
	for {
		conn := dial(t, path)
		io.WriteString(conn, bash("1", "echo "+long))
		if a := answers(t, conn, 1)[""]; strings.Contains(a.Reason, "too many very long") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no limit was met")
		}
	}
	short := dial(t, path)
	io.WriteString(short, bash("2", "ls"))
	if a := answers(t, short, 1)["2"]; a.Decision != wire.Allow {
		t.Errorf("got %+v", a)
	}
	for _, c := range open {
		c.Close()
	}
}

// TestClients: 500 clients of one container at once, and no more than its share.
func TestClients(t *testing.T) {
	path := serve(t, &host{asker: inside()})
	var conns []*net.UnixConn
	for i := range maxOwnConns {
		conn := dial(t, path)
		io.WriteString(conn, bash(fmt.Sprint(i), "ls"))
		conns = append(conns, conn)
	}
	for i, conn := range conns {
		if a := answers(t, conn, 1)[fmt.Sprint(i)]; a.Decision != wire.Allow {
			t.Fatalf("client %d: %+v", i, a)
		}
	}
	if a := answers(t, dial(t, path), 1)[""]; !strings.Contains(a.Reason, "too many connections") {
		t.Errorf("got %+v", a)
	}
}

// TestStrangers: who is in no container cannot keep those out that are.
func TestStrangers(t *testing.T) {
	h := &host{err: errors.New("none")}
	path := serve(t, h)
	for range 2 * maxStrangers {
		conn := dial(t, path)
		io.WriteString(conn, bash("1", "ls"))
		for id, a := range answers(t, conn, 1) {
			if a.Decision != wire.Deny {
				t.Errorf("%q: %+v", id, a)
			}
		}
	}
	h.set(func() { h.err, h.asker = nil, inside() })
	conn := dial(t, path)
	io.WriteString(conn, bash("1", "ls"))
	if a := answers(t, conn, 1)["1"]; a.Decision != wire.Allow {
		t.Errorf("got %+v", a)
	}
}

// TestGone: when the client goes, its question is told so; one that only has said all still gets its answer.
func TestGone(t *testing.T) {
	asked, ended, release := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	h := &host{asker: inside("secret"), decide: func(ctx context.Context, r gate.Request) gate.Verdict {
		asked <- struct{}{}
		if r.Command == "half" {
			<-release
			return gate.Verdict{Decision: gate.Allow, Reason: gate.Approved}
		}
		<-ctx.Done()
		close(ended)
		return gate.Verdict{Reason: gate.Cancelled}
	}}
	path := serve(t, h)
	half := dial(t, path)
	io.WriteString(half, bash("1", "half"))
	half.CloseWrite()
	conn := dial(t, path)
	io.WriteString(conn, bash("1", "gone"))
	<-asked
	<-asked
	conn.Close()
	<-ended
	close(release)
	if a := answers(t, half, 1)["1"]; a.Decision != wire.Allow {
		t.Errorf("got %+v", a)
	}
}

// TestObserve: the mode denies nothing, and tells what it would have.
func TestObserve(t *testing.T) {
	who := inside("secret")
	who.Mode = "observe"
	h := &host{asker: who}
	conn := dial(t, serve(t, h))
	io.WriteString(conn, bash("1", "git push -f origin main"))
	if a := answers(t, conn, 1)["1"]; a.Decision != wire.Allow {
		t.Errorf("got %+v", a)
	}
	if len(h.denied) != 1 || h.denied[0].Decision != "allow" || h.denied[0].Reason != "git_guard" {
		t.Errorf("written: %+v", h.denied)
	}
}

// TestExplain: no reason names a part of the policy, and each says what to do.
func TestExplain(t *testing.T) {
	for _, r := range []gate.Reason{
		gate.Denied, gate.Flagged, gate.Timeout, gate.NoApprover, gate.Sealed, gate.QueueFull, gate.Flood, gate.UsedOnce, gate.StoreFailed, gate.LogFailed, gate.Cancelled,
		gate.Malformed, "unheard_of",
	} {
		text := explain(gate.Verdict{Reason: r, Text: "a\nb \x1b[31m" + strings.Repeat("z", 1000)})
		if !strings.HasPrefix(text, "Denied: ") || len(text) > 900 || strings.ContainsAny(text, "\n\x1b_") {
			t.Errorf("%s: %q", r, text)
		}
	}
}

// TestF13Dead: nothing that a model, a hook or a person gives as a reason is a link for the agent, in any form, whichever verdict carries it (F13).
func TestF13Dead(t *testing.T) {
	const reason = "it sends data to https://evil.example/a, see [this](//evil.example) or mailto:x@evil.example, or evil\u3002example or ht\u200btp\uff1a//evil.example"
	live := regexp.MustCompile(`://|\]\(|@|mailto:|evil[.\x{3002}]example|[\x{200b}\x{ff1a}]`)
	texts := map[string]string{}
	for _, r := range []gate.Reason{gate.Denied, gate.Flagged, gate.Timeout, gate.NoApprover, gate.Cancelled, "unheard_of"} {
		v := gate.Verdict{Reason: r, Text: reason}
		texts["command "+string(r)], texts["call "+string(r)], texts["tool "+string(r)] = explain(v), explainCall(v), textVerdict(v)
	}
	who := inside("secret")
	who.Hooks = folder(t, map[string]string{"a": denying(reason)})
	s := New(&host{}, quiet())
	defer s.Close(within)
	texts["hook"] = ask(s, who, "curl x")
	for name, text := range texts {
		if found := live.FindString(text); found != "" {
			t.Errorf("%s: %q is live in %q", name, found, text)
		}
	}
	for _, name := range []string{"command denied", "command flagged", "call denied", "hook"} {
		if !strings.Contains(texts[name], "it sends data to https[:]//evil[.]example/a") {
			t.Errorf("%s: the reason is missing: %q", name, texts[name])
		}
	}
}

// FuzzLine: whatever a container sends, it gets answers that parse, and none allows what the gate does not.
func FuzzLine(f *testing.F) {
	f.Add([]byte(bash("1", "ls")))
	f.Add([]byte(`{"v":"0.5","id":"1","tool":"agent_update","args":{"url":"https://github.com/a/b/releases/download/v1/c"}}`))
	f.Add([]byte("{}\n[]\n\x00\n" + bash("2", "git push -f")))
	f.Add([]byte(`{"type":"security:tool_check","request_id":"x","tool_name":"shell","tool_input":{"command":["a",1]}}`))
	s := New(&host{asker: inside("secret"), decide: func(context.Context, gate.Request) gate.Verdict { return gate.Verdict{Reason: gate.Denied} }}, quiet())
	path := filepath.Join(f.TempDir(), "b.sock")
	if err := s.Listen(path); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close(within) })
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := dial(t, path)
		conn.Write(data)
		conn.CloseWrite()
		in := bufio.NewScanner(conn)
		for in.Scan() {
			var a wire.Answer
			if err := json.Unmarshal(in.Bytes(), &a); err != nil {
				t.Fatalf("%q: %v", in.Bytes(), err)
			}
			var called toolguard.Answer // nothing is carried out here
			if json.Unmarshal(in.Bytes(), &called) == nil && called.Error != nil && !called.OK {
				continue
			}
			if a.Decision != wire.Deny && !strings.Contains(string(data), wire.ToolCheck) && !strings.Contains(string(data), `\u`) {
				t.Fatalf("%q is allowed: %q", data, in.Bytes())
			}
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	s := New(&host{asker: inside()}, quiet())
	path := filepath.Join(b.TempDir(), "b.sock")
	if err := s.Listen(path); err != nil {
		b.Fatal(err)
	}
	defer s.Close(within)
	conn, err := net.Dial("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	in, line := bufio.NewReader(conn), []byte(bash("1", "ls -l | wc"))
	for b.Loop() {
		conn.Write(line)
		if _, err := in.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCalledG2: a tool that is let be called is reported, so that it taints; where that fails, it is not called.
func TestCalledG2(t *testing.T) {
	h := &host{asker: inside()}
	path := serve(t, h)
	ask := func(tool, more string) wire.Answer {
		t.Helper()
		conn := dial(t, path)
		if _, err := io.WriteString(conn, `{"type":"security:tool_check","request_id":"1","tool_name":"`+tool+`","tool_input":{}`+more+"}\n"); err != nil {
			t.Fatal(err)
		}
		return answers(t, conn, 1)["1"]
	}
	if a := ask("mcp__browser__open", ""); a.Decision != wire.Allow {
		t.Errorf("got %+v", a)
	}
	ask("mcp__wiki__read", `,"public_source":true`)
	ask("WebFetch", "") // denied: it reads nothing
	h.set(func() { h.failed = errors.New("disk full") })
	if a := ask("mcp__browser__open", ""); a.Decision != wire.Deny || a.Reason != textNotTainted {
		t.Errorf("not tainted, and got %+v", a)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff([]string{"mcp__browser__open false", "mcp__wiki__read true", "mcp__browser__open false"}, h.called); diff != "" {
		t.Errorf("reported, want - got +\n%s", diff)
	}
}

// What a container's file system holds does not keep the sensor from ending.
func TestCloseB154(t *testing.T) {
	s := New(&host{}, quiet())
	hang := make(chan struct{})
	defer close(hang)
	s.running.Go(func() { <-hang })
	if err := s.Close(time.Millisecond); err != nil {
		t.Error(err)
	}
}
