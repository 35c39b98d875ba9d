//go:build vmguest

package bridge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

const (
	fetchTool  = "VaultHttpFetch"
	recallTool = "LocalMemoryRecall"
)

// client speaks MCP through a relay in the container.
type client struct {
	relay *rig.Proc
	id    int
}

func connect(t *testing.T, s *rig.Session) *client {
	t.Helper()
	c := &client{relay: s.Start(t, "weir-hook", "mcp")}
	t.Cleanup(func() { c.relay.Close(t) })
	c.ask(t, "initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	c.relay.Input(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return c
}

// send begins a request.
func (c *client) send(t *testing.T, method string, params any) {
	t.Helper()
	c.id++
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	c.relay.Input(t, string(data)+"\n")
}

func (c *client) answer(t *testing.T) string {
	t.Helper()
	line := c.relay.WaitLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, c.id), 2*rig.Late)
	if line == "" {
		r, _ := c.relay.WaitFor(0)
		t.Fatalf("no answer to request %d: %s", c.id, r)
	}
	return line
}

func (c *client) ask(t *testing.T, method string, params any) string {
	t.Helper()
	c.send(t, method, params)
	return c.answer(t)
}

func (c *client) begin(t *testing.T, tool string, input any) {
	t.Helper()
	c.send(t, "tools/call", map[string]any{"name": tool, "arguments": input})
}

// result is what a call came to.
func (c *client) result(t *testing.T) (text string, failed bool) {
	t.Helper()
	line := c.answer(t)
	var out struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal([]byte(line), &out); err != nil || len(out.Result.Content) != 1 {
		t.Fatalf("the answer is %s", line)
	}
	return out.Result.Content[0].Text, out.Result.IsError
}

func (c *client) call(t *testing.T, tool string, input any) (text string, failed bool) {
	t.Helper()
	c.begin(t, tool, input)
	return c.result(t)
}

// announce tells of a call with the agent's hook, as the main agent does.
func announce(t *testing.T, s *rig.Session, tool string, input any) {
	t.Helper()
	passes(t, hook(t, s, "claude", "mcp__weir__"+tool, input))
}

// recall announces and makes a call.
func recall(t *testing.T, s *rig.Session, c *client, input any) (string, bool) {
	t.Helper()
	announce(t, s, recallTool, input)
	return c.call(t, recallTool, input)
}

// memory: M1, M2, M6, P6.
func (f *fixture) memory(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"todo.md": "buy bread\n", "wages.md": "wages: 12345\n", "plan.md": strings.Repeat("line of the plan\n", 400) + "the end of it\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.sensor.Must(t, "memory", "import", "notes", dir+"/todo.md", dir+"/plan.md")
	f.sensor.Must(t, "memory", "import", "--secret", "accounts", dir+"/wages.md")
	f.sensor.Must(t, "memory", "import", "hr", dir+"/wages.md")
	s, to := f.guard(t), f.web(t)
	c := connect(t, s)
	if list := c.ask(t, "tools/list", map[string]any{}); !strings.Contains(list, fetchTool) || !strings.Contains(list, recallTool) {
		t.Errorf("tools: %s", list)
	}
	stores := map[string]any{"action": "list_stores"}
	if text, failed := c.call(t, recallTool, stores); !failed || !strings.Contains(text, "not announced") {
		t.Errorf("not announced: %s", text)
	}
	if text, failed := recall(t, s, c, stores); failed || !strings.Contains(text, "notes") || !strings.Contains(text, "accounts") {
		t.Errorf("stores: %s", text)
	}
	if text, failed := c.call(t, recallTool, stores); !failed {
		t.Errorf("announced once, made twice: %s", text)
	}
	if text, failed := recall(t, s, c, map[string]any{"action": "list_entries", "store": "notes"}); failed || !strings.Contains(text, "todo") || !strings.Contains(text, "plan") {
		t.Errorf("entries: %s", text)
	}
	plan := map[string]any{"action": "fetch", "store": "notes", "key": "plan"}
	if text, failed := recall(t, s, c, plan); failed || !strings.Contains(text, "line of the plan") || strings.Contains(text, "the end of it") {
		t.Errorf("preview: %s", text)
	}
	// all of it is a person's to allow (M2)
	plan["preview_only"] = false
	announce(t, s, recallTool, plan)
	c.begin(t, recallTool, plan)
	q := f.sensor.Asked(t, func(q gate.Question) bool { return strings.Contains(q.Text, "notes/plan") })
	f.sensor.Must(t, "approve", q.ID)
	if text, failed := c.result(t); failed || !strings.Contains(text, "the end of it") {
		t.Errorf("approved: %s", text)
	}
	denies(t, hook(t, s, "claude", "mcp__weir__"+recallTool, map[string]string{"action": "fetch", "store": "hr", "key": "wages"}), "LocalMemoryRecall(fetch:hr/*)")

	// What a secret store holds must not leave any more (M6).
	send := func(text string) rig.Result { return s.Run(t, "sh", "-c", to.curl()+"."+text+" -d @/etc/hostname") }
	if r := send("before"); r.Exit != 0 || !f.world.WaitGot(to.Text+".before", rig.Late) {
		t.Fatalf("clean: %s", r)
	}
	mark := f.world.Mark(t)
	if text, failed := recall(t, s, c, map[string]any{"action": "fetch", "store": "accounts", "key": "wages"}); failed || !strings.Contains(text, "12345") {
		t.Errorf("secret store: %s", text)
	}
	e := f.sensor.Event(t, func(e event.Event) bool { return e.Kind == event.Taint && e.Container.Name == s.Name })
	if e.Change.Source != "tool" || len(e.Change.Set) != 1 || e.Change.Set[0] != "secret" || !strings.Contains(e.Change.Why, "accounts") {
		t.Errorf("taint %+v", e.Change)
	}
	if r := send("after"); r.Exit == 0 {
		t.Errorf("tainted: %s", r)
	}
	f.world.Nothing(t, mark, to.Text+".after", 0)
	f.world.Quiet(t, mark, to.Port) // the end of the first connection may come now
}

// api is an HTTPS server in the world that gives back what it was sent.
type api struct {
	host, ca string
	mu       sync.Mutex
	got      []string // of each request, its authorization
}

// nonce stands in each of its answers.
const nonce = "nonce-of-the-answer-5f1d"

func (f *fixture) api(t *testing.T) *api {
	t.Helper()
	a := &api{host: fmt.Sprintf("example.com:%d", f.world.Port())} // what httptest's certificate is for
	rig.Must(t, "grep -q example.com /etc/hosts || echo "+rig.World4+" example.com >> /etc/hosts")
	listener, err := rig.ListenIn("world", rig.World4+strings.TrimPrefix(a.host, "example.com"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		a.mu.Lock()
		a.got = append(a.got, auth)
		a.mu.Unlock()
		w.Header().Set("X-Echo", auth)
		fmt.Fprintf(w, "%s %s: %s, %s", nonce, r.URL.Path, auth, base64.StdEncoding.EncodeToString([]byte(auth)))
	}))
	server.Listener.Close()
	server.Listener, server.Config.ErrorLog = listener, log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	a.ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(a.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *api) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.got...)
}

// secret is random, so that nothing has it but what was given it.
func secret(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		t.Fatal(err)
	}
	return "tok_" + strings.ReplaceAll(strings.TrimSpace(string(b)), "-", "")
}

// vault: P6, V1, V2, V6, V7, V8, V10. A container without network makes an authorized call, and learns no secret by it.
func (f *fixture) vault(t *testing.T) {
	a, word := f.api(t), secret(t)
	set := exec.Command("weir", "vault", "set", "gh", "--host", a.host, "--network", rig.World4, "--ca", a.ca, "--key-file", "/var/lib/weir/vault.key")
	set.Stdin = strings.NewReader(word + "\n")
	if out, err := set.CombinedOutput(); err != nil {
		t.Fatalf("weir vault set: %v: %s", err, out)
	}
	s := f.guard(t, "secret")
	c := connect(t, s)
	fetch := func(path string) map[string]any {
		return map[string]any{"url": "https://" + a.host + path, "vault_auth_key": "gh", "auth_scheme": "bearer", "reason": "the test of " + path}
	}
	if text, failed := c.call(t, fetchTool, fetch("/unannounced")); !failed || !strings.Contains(text, "not announced") {
		t.Errorf("not announced: %s", text)
	}
	announce(t, s, fetchTool, fetch("/one"))
	c.begin(t, fetchTool, fetch("/one"))
	q := f.sensor.Asked(t, func(q gate.Question) bool { return q.Container.Name == s.Name })
	if !strings.Contains(q.Text, "VaultHttpFetch: GET") || !strings.Contains(q.Text, "with the key gh in the header Authorization (bearer), because") || !strings.Contains(q.Text, "the test of /one") {
		t.Errorf("the question is %q", q.Text)
	}
	if got := a.requests(); len(got) != 0 {
		t.Errorf("requests before the approval: %d", len(got))
	}
	f.sensor.Must(t, "approve", q.ID, "--for", "key")
	text, failed := c.result(t)
	if failed || !strings.Contains(text, nonce+" /one: Bearer [removed], ") {
		t.Errorf("the answer is %s", text)
	}
	if got := a.requests(); len(got) != 1 || got[0] != "Bearer "+word {
		t.Errorf("the server got %d requests, the first with the secret: %v", len(got), len(got) > 0 && got[0] == "Bearer "+word)
	}
	e := f.sensor.Event(t, func(e event.Event) bool { return e.Kind == event.Tool && e.Use.Path == "/one" && e.Use.Status != 0 })
	if e.Use.Key != "gh" || e.Use.Status != 200 || e.Use.Host != a.host || e.Verdict.Reason != "approved" {
		t.Errorf("event %+v %+v", e.Use, e.Verdict)
	}
	e = f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Taint && e.Container.Name == s.Name && e.Change.Source == "tool"
	})
	if len(e.Change.Set) != 1 || e.Change.Set[0] != "corruption" {
		t.Errorf("taint %+v", e.Change)
	}
	f.holdsNothing(t, s, word, text)

	// The approval for the key is a rule now; a place that the key is not bound to stays closed.
	announce(t, s, fetchTool, fetch("/two"))
	if text, failed := c.call(t, fetchTool, fetch("/two")); failed || !strings.Contains(text, nonce+" /two") {
		t.Errorf("approved for good: %s", text)
	}
	if rules, err := os.ReadFile(permissions); err != nil || !strings.Contains(string(rules), "VaultHttpFetch(gh@"+a.host+")") {
		t.Errorf("rules (%v): %s", err, rules)
	}
	other := fetch("/three")
	other["url"] = "https://example.com:1/three"
	announce(t, s, fetchTool, other)
	if text, failed := c.call(t, fetchTool, other); !failed || strings.Contains(text, word) {
		t.Errorf("another place: %s", text)
	}
	// An agent that is no main agent announces nothing (P6).
	p := s.Start(t, "weir-hook", "claude")
	p.Input(t, `{"hook_event_name":"PreToolUse","agent_id":"a1","session_id":"x","tool_name":"mcp__weir__`+recallTool+`","tool_input":{"action":"list_stores"}}`)
	p.Close(t)
	denies(t, p, "sub-agents cannot use this tool")
	if got := a.requests(); len(got) != 2 {
		t.Errorf("the server got %d requests, want 2", len(got))
	}
	if strings.Contains(text, word) {
		t.Error("the answer has the secret in it")
	}
}

// holdsNothing looks for the secret in all of the container, in every process's environment and command line, and in all that the sensor wrote.
func (f *fixture) holdsNothing(t *testing.T, s *rig.Session, word, answer string) {
	t.Helper()
	forms := map[string][]byte{"the secret": []byte(word)}
	for i := range 3 { // base64, wherever in a text it begins, without what its neighbours change
		e := base64.StdEncoding.EncodeToString([]byte("xxx"[:i] + word))
		forms["base64 of it, "+strconv.Itoa(i)] = []byte(e[4 : len(e)-4])
	}
	find := func(where string, data []byte) {
		for name, form := range forms {
			if bytes.Contains(data, form) {
				t.Errorf("%s is in %s", name, where)
			}
		}
	}
	find("the answer", []byte(answer))
	pids, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range pids {
		for _, file := range []string{"/environ", "/cmdline"} {
			data, err := os.ReadFile(dir + file)
			if err != nil && !gone(err) {
				t.Errorf("%v", err)
			}
			find(dir+file, data)
		}
	}
	inside, answers := strings.Fields(rig.Must(t, "find "+s.Cgroup+" -name cgroup.procs -exec cat {} +")), 0
	for _, pid := range inside {
		data := mapped(t, pid)
		find("the memory of "+pid, data)
		answers += bytes.Count(data, []byte(nonce))
	}
	if len(inside) < 2 || answers == 0 { // the agent and the relay; who reads their memory finds what is there
		t.Errorf("%d processes, and the answer %d times", len(inside), answers)
	}
	files := 0
	for _, dir := range []string{"/var/log/weir", "/var/lib/weir", "/run/weir", "/tmp"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // gone meanwhile; the others are there
				return nil
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			files++
			find(path, data)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if files < 3 { // the log, the vault, its key
		t.Errorf("%d files were read", files)
	}
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "no such process")
}

// mapped is all the memory of a process that can be read.
func mapped(t *testing.T, pid string) []byte {
	t.Helper()
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open("/proc/" + pid + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	var all bytes.Buffer
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseInt(from, 16, 64)
		end, err2 := strconv.ParseInt(to, 16, 64)
		if err1 != nil || err2 != nil || fields[1][0] != 'r' || strings.HasPrefix(fields[len(fields)-1], "[v") {
			continue // also what the kernel maps for clocks
		}
		// the rest of a map that ends within cannot be read
		_, _ = io.Copy(&all, io.NewSectionReader(mem, start, end-start))
	}
	if all.Len() == 0 {
		t.Errorf("process %s has no memory", pid)
	}
	return all.Bytes()
}
