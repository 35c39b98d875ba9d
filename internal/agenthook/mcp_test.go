package agenthook_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sirupsen/logrus"

	"weir/internal/agenthook"
	"weir/internal/bridge"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/memory"
	"weir/internal/permission"
	"weir/internal/redact"
	"weir/internal/vault"
)

// TestMain is also weir-hook mcp, as the agent starts it: a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("WEIR_TEST_RELAY") != "" {
		w := agenthook.World{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Self: "weir-hook"}
		if os.Getenv("WEIR_TEST_RELAY") == "believe" {
			w = w.Believe()
		}
		os.Exit(w.Main(context.Background(), []string{"weir-hook", "mcp"}))
	}
	os.Exit(m.Run())
}

// awkward has characters that every encoding changes.
const awkward = `p@ss/w+rd="é\%41&<k> ñ'x~`

// host is a sensor that lets all be asked and allows what its rules allow.
type host struct{}

func (host) Who(int) (bridge.Asker, error) {
	return bridge.Asker{Container: event.Container{ID: "g-test"}, Process: event.Process{PID: os.Getpid(), Start: 1}, Mode: "enforce"}, nil
}
func (host) Decide(context.Context, gate.Request) gate.Verdict  { return gate.Verdict{} }
func (host) Confirm(context.Context, gate.Request) gate.Verdict { return gate.Verdict{} }
func (host) Consume(string) error                               { return nil }
func (host) Deny(bridge.Asker, string, event.Decision) error    { return nil }
func (host) Withdraw(gate.Request, gate.Verdict)                {}
func (host) Called(bridge.Asker, string, bool) error            { return nil }
func (host) Log(event.Event) error                              { return nil }
func (host) Taint(bridge.Asker, bool, bool, string) error       { return nil }
func (host) Trusts(bridge.Asker, netip.Addr) bool               { return true }
func (host) Check(permission.Call, string) permission.Result {
	return permission.Result{Decision: permission.Allowed}
}
func (host) Allow(string) error { return nil }
func (host) Killed(string) bool { return false }
func (host) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// sensor serves the bridge with a vault of two secrets, bound to a server that echoes them.
func sensor(t *testing.T) (socket, port string, secrets [][]byte) {
	t.Helper()
	dir := t.TempDir()
	if err := vault.MakeFile(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	k, err := vault.FromFile(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "you sent %s", r.Header.Get("Authorization"))
	}))
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	_, port, _ = net.SplitHostPort(web.Listener.Addr().String())
	random := make([]byte, 40)
	for i := range random {
		random[i] = byte(i*73 + 19)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	v := vault.New(filepath.Join(dir, "vault.age"), k)
	secrets = [][]byte{[]byte(awkward), random}
	for i, s := range secrets {
		b := vault.Binding{Hosts: []string{"example.com:" + port}, Networks: []string{"127.0.0.1"}, CA: string(ca)}
		if err := v.Set(fmt.Sprintf("key-%d", i), "", s, b); err != nil {
			t.Fatal(err)
		}
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	s := bridge.New(host{}, logger)
	s.Use(bridge.Rules{Permissions: host{}})
	fetcher := &vault.Fetcher{Vault: v, Resolver: host{}}
	s.Offer(bridge.NewToolServer(bridge.ToolOptions{
		Gate: host{}, Rules: host{}, Host: host{}, Vault: func() *vault.Fetcher { return fetcher }, Memory: memory.New(dir), Logger: logger,
	}))
	socket = filepath.Join(dir, "b.sock")
	if err := s.Listen(socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(time.Minute) })
	return socket, port, secrets
}

func announce(t *testing.T, socket string, input []byte) {
	t.Helper()
	line, err := json.Marshal(wire.Request{Type: wire.ToolCheck, RequestID: "1", ToolName: "mcp__weir__VaultHttpFetch", ToolInput: input, SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write(append(line, '\n'))
	var a wire.Answer
	if err := json.NewDecoder(conn).Decode(&a); err != nil || a.Decision != wire.Allow {
		t.Fatal(a, err)
	}
}

// V3: nothing of a secret is in the process that runs in the container: not in its memory, environment, arguments or files.
func TestRelayHoldsNoSecretV3(t *testing.T) {
	socket, port, secrets := sensor(t)
	cmd := exec.Command(os.Args[0])
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "WEIR_TEST_RELAY=believe", wire.Variable+"="+socket)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, scheme := range []string{vault.Bearer, vault.Basic, vault.Basic} {
		input := fmt.Appendf(nil, `{"url":"https://example.com:%s/","vault_auth_key":"key-%d","auth_scheme":%q,"reason":"look"}`, port, i%2, scheme)
		announce(t, socket, input)
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "VaultHttpFetch", Arguments: json.RawMessage(input)})
		if err != nil || res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "you sent B") {
			t.Fatal(res, err)
		}
	}
	scrub, err := redact.New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	read := false // what is surely there: the search sees it
	if len(memoryOf(t, cmd.Process.Pid, func(text []byte) {
		read = read || bytes.Contains(text, []byte("WEIR_TEST_RELAY=believe"))
		if out := scrub.Bytes(text); !bytes.Equal(out, text) {
			t.Error("a form of a secret is in the relay's memory")
		}
	})) == 0 || !read {
		t.Error("the memory was not read")
	}
	for _, name := range []string{"environ", "cmdline", "maps"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name))
		if err != nil || len(text) == 0 || !bytes.Equal(scrub.Bytes(text), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if files, err := os.ReadDir(cmd.Dir); err != nil || len(files) > 0 {
		t.Error(files, err)
	}
}

// memoryOf hands over what a process can write in its memory, where what it was told would be.
func memoryOf(t *testing.T, pid int, look func([]byte)) (seen []string) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") || to-from > 256<<20 {
			continue
		}
		text := make([]byte, to-from)
		n, _ := mem.ReadAt(text, from) // guard pages end a read
		if n > 0 {
			look(text[:n])
			seen = append(seen, line)
		}
	}
	return seen
}

func TestRelayErrors(t *testing.T) {
	socket, _, _ := sensor(t)
	for name, tt := range map[string]struct{ socket, believe, want string }{
		"nobody listens":                        {filepath.Join(t.TempDir(), "none"), "believe", "the sensor cannot be reached"},
		"who listens is in this very container": {socket, "doubt", "is not the sensor"},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WEIR_TEST_RELAY="+tt.believe, wire.Variable+"="+tt.socket)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %q %v", name, out, err)
		}
	}
	// An agent that hangs up ends the relay.
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "WEIR_TEST_RELAY=believe", wire.Variable+"="+socket)
	cmd.Stdin = strings.NewReader("")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%q %v", out, err)
	}
}

// connect starts weir-hook mcp, and a client of the SDK that speaks with it.
func connect(t *testing.T, socket string) *mcp.ClientSession {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "WEIR_TEST_RELAY=believe", wire.Variable+"="+socket)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// V1, M1: the list that is shown to agents says what the host accepts.
func TestToolsAreListedM1V1(t *testing.T) {
	socket, _, _ := sensor(t)
	list, err := connect(t, socket).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	enums := map[string][]any{}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		schema, _ := tool.InputSchema.(map[string]any)
		if schema["additionalProperties"] != false || len(tool.Description) < 200 || tool.Meta["anthropic/alwaysLoad"] != true {
			t.Errorf("%+v", tool)
		}
		for name, field := range schema["properties"].(map[string]any) {
			enums[name], _ = field.(map[string]any)["enum"].([]any)
		}
	}
	if diff := cmp.Diff([]string{permission.LocalMemoryRecall, permission.VaultHTTPFetch}, names); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string][]string{"method": vault.Methods(), "auth_scheme": vault.Schemes(), "action": {memory.ListStores, memory.ListEntries, memory.Fetch}} {
		if fmt.Sprint(enums[name]) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, enums[name], want)
		}
	}
}

// F39: what is no message of MCP is answered with an error of JSON-RPC, or with nothing where nothing was asked, and the next line is read.
func TestF39BadMessages(t *testing.T) {
	socket, _, _ := sensor(t)
	ping := `{"jsonrpc":"2.0","id":"p","method":"ping"}` + "\n"
	call := func(id string, more string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"LocalMemoryRecall","arguments":{}` + more + `}}`
	}
	for line, want := range map[string]string{
		"{": "-32700 null", "no JSON": "-32700 null", `{"jsonrpc":"2.0","id":1,"method":"ping"`: "-32700 null", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}": "-32700 null",
		ping[:len(ping)-1] + "\r" + ping[:len(ping)-1]: "-32700 null", strings.Repeat("[", 20_000): "-32700 null",
		`{"jsonrpc":"2.0"}`: "-32600 null", `{}`: "-32600 null", `[]`: "-32600 null", `null`: "-32600 null", `"ping"`: "-32600 null", `7`: "-32600 null",
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`: "-32600 null",
		`{"jsonrpc":"2.0","id":1,"method":"ping","x":"` + strings.Repeat("x", 3<<20) + `"}`:   "-32600 null",
		`{"jsonrpc":"2.0","id":1}`: "-32600 1", `{"jsonrpc":"2.0","id":1,"method":7}`: "-32600 1", `{"jsonrpc":"1.0","id":1,"method":"ping"}`: "-32600 1", `{"id":"a","method":"ping"}`: `-32600 "a"`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`: "-32600 null", `{"jsonrpc":"2.0","id":{},"method":"ping"}`: "-32600 null", `{"jsonrpc":"2.0","id":true,"method":"ping"}`: "-32600 null",
		`{"jsonrpc":"2.0","id":1,"Method":"ping"}`: "-32600 1", `{"jsonrpc":"2.0","id":2,"method":"resources/list"}`: "-32601 2", `{"jsonrpc":"2.0","id":2,"method":"PING"}`: "-32601 2",
		`{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}`: "-32602 3", `{"jsonrpc":"2.0","id":3,"method":"tools/call"}`: "-32602 3",
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"VaultRead"}}`: "-32602 3", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"LocalMemoryRecall","arguments":[]}}`: "-32602 3",
		`{"jsonrpc":"2.0","method":"nothing/known","params":5}`: "", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}`: "", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`: "",
		`{"jsonrpc":"2.0","method":"tools/call","params":{}}`: "", `{"jsonrpc":"2.0","id":9,"result":{}}`: "", `{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"x"}}`: "",
		"": "", " \t": "", call("4", `,"_meta":7`): "0 4", call("4", `,"_meta":{"progressToken":{}}`): "0 4",
	} {
		var out, errs bytes.Buffer
		w := agenthook.World{Stdin: strings.NewReader(line + "\n" + ping), Stdout: &out, Stderr: &errs, Environ: []string{wire.Variable + "=" + socket}}.Believe()
		if code := w.Main(t.Context(), []string{"weir-hook", "mcp"}); code != 0 || errs.Len() > 0 {
			t.Errorf("%.60q: exit %d, %s", line, code, errs.String())
		}
		var got []string
		for answer := range strings.Lines(out.String()) {
			var a struct {
				Version string          `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
				Error   struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal([]byte(answer), &a); err != nil || a.Version != "2.0" || a.Error.Code != 0 && a.Error.Message == "" {
				t.Errorf("%.60q: %s", line, answer)
			}
			if string(a.ID) != `"p"` {
				got = append(got, fmt.Sprint(a.Error.Code, " ", string(a.ID)))
			}
		}
		if strings.Join(got, ",") != want || strings.Count(out.String(), `"id":"p"`) != 1 {
			t.Errorf("%.60q: got %q, want %q: %.300s", line, got, want, out.String())
		}
	}
}

// F39: an id that is in use is refused, whatever it is; and free again when its request is answered.
func TestF39IDTwice(t *testing.T) {
	socket, _, _ := sensor(t)
	in, feed := io.Pipe()
	got, out := io.Pipe()
	done := make(chan int)
	go func() {
		w := agenthook.World{Stdin: in, Stdout: out, Stderr: io.Discard, Environ: []string{wire.Variable + "=" + socket}}.Believe()
		done <- w.Main(t.Context(), []string{"weir-hook", "mcp"})
	}()
	answers := bufio.NewScanner(got)
	call := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"LocalMemoryRecall","arguments":{}}}` + "\n")
	for range 3 {
		feed.Write(append(append([]byte{}, call...), bytes.Replace(call, []byte("7"), []byte(" 7 "), 1)...))
		codes := ""
		for range 2 {
			if !answers.Scan() {
				t.Fatal(answers.Err())
			}
			codes += fmt.Sprintf("%d%d", strings.Count(answers.Text(), "-32600"), strings.Count(answers.Text(), `"isError":true`))
		}
		if codes != "1001" && codes != "0110" && codes != "0101" { // the first may be answered before the second is read
			t.Errorf("%s %s", codes, answers.Text())
		}
	}
	feed.Close()
	if code := <-done; code != 0 {
		t.Error(code)
	}
}

// F39, P6: a call that is made though the hook was told no is answered with what the hook was told.
func TestF39AfterADenialP6(t *testing.T) {
	socket, port, _ := sensor(t)
	input := json.RawMessage(`{"url":"https://example.com:` + port + `/","vault_auth_key":"key-0","reason":"look"}`)
	event := `{"hook_event_name":"PreToolUse","session_id":"s","agent_id":"a1","tool_name":"mcp__weir__VaultHttpFetch","tool_input":` + string(input) + `}`
	w := agenthook.World{Stdin: strings.NewReader(event), Stdout: io.Discard, Stderr: io.Discard, Environ: []string{wire.Variable + "=" + socket}, Self: "weir-hook"}.Believe()
	w.PreToolUse(t.Context())
	s := connect(t, socket)
	for range 2 {
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "VaultHttpFetch", Arguments: input})
		if err != nil {
			t.Fatal(err)
		}
		text := res.Content[0].(*mcp.TextContent).Text
		reason, _ := res.Meta["weir/reason"].(map[string]any)
		if !res.IsError || reason["reason"] != "hook_denied" || !strings.Contains(text, "sub-agents cannot use this tool") || strings.Contains(text, "not be installed") {
			t.Errorf("%s %v", text, reason)
		}
	}
	announce(t, socket, input)
	for i := range 2 { // what was allowed since is made, once
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "VaultHttpFetch", Arguments: input})
		if err != nil || res.IsError != (i == 1) {
			t.Error(i, res, err)
		}
	}
}

// P6: PreToolUse events that Claude Code 2.1.197 sent, of its main agent, a sub-agent, a fork with the parent's tools, and that fork resumed by a message
// (testdata; the port is this test's). Each then makes the very call over the one MCP connection that they share: the main agent's alone is made.
func TestEventsOfClaudeP6V12(t *testing.T) {
	socket, port, _ := sensor(t)
	data, err := os.ReadFile("testdata/claude-2.1.197.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := connect(t, socket)
	var kinds []string
	for line := range strings.Lines(strings.ReplaceAll(string(data), "PORT", port)) {
		var e struct {
			Kind  string          `json:"agent_type"`
			Use   string          `json:"tool_use_id"`
			Input json.RawMessage `json:"tool_input"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
		var out, errs bytes.Buffer
		w := agenthook.World{Stdin: strings.NewReader(line), Stdout: &out, Stderr: &errs, Environ: []string{wire.Variable + "=" + socket}, Self: "weir-hook"}.Believe()
		if code := w.PreToolUse(t.Context()); code != 0 {
			t.Errorf("%s: %d %s", e.Kind, code, errs.String())
		}
		if denied := strings.Contains(out.String(), "sub-agents cannot use this tool"); denied != (e.Kind != "") {
			t.Errorf("%q: %s", e.Kind, out.String())
		}
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "VaultHttpFetch", Arguments: e.Input, Meta: mcp.Meta{"claudecode/toolUseId": e.Use}})
		if err != nil || res.IsError != (e.Kind != "") {
			t.Errorf("%q: %v %v", e.Kind, res, err)
		}
	}
	if diff := cmp.Diff([]string{"", "general-purpose", "fork", "fork"}, kinds); diff != "" {
		t.Error(diff)
	}
}
