package agents

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"weir/internal/bridge"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/memory"
	"weir/internal/permission"
	"weir/internal/vault"
	"weir/test/agents/script"
)

const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"

// sensor is a host that serves its tools; a person allows what has "allow this" as its reason.
type sensor struct {
	*host
	tmu   sync.Mutex
	asked []string
	uses  []event.Event
}

func (s *sensor) Confirm(_ context.Context, r gate.Request) gate.Verdict {
	s.tmu.Lock()
	defer s.tmu.Unlock()
	s.asked = append(s.asked, r.Command)
	if strings.Contains(r.Command, "allow this") {
		return gate.Verdict{Decision: gate.Allow, Reason: gate.Approved, By: "alice"}
	}
	return gate.Verdict{Reason: gate.Denied, By: "alice"}
}

func (s *sensor) Consume(string) error { return nil }
func (s *sensor) Log(e event.Event) error {
	s.tmu.Lock()
	defer s.tmu.Unlock()
	s.uses = append(s.uses, e)
	return nil
}
func (s *sensor) Taint(bridge.Asker, bool, bool, string) error { return nil }
func (s *sensor) Trusts(bridge.Asker, netip.Addr) bool         { return false }
func (s *sensor) Allow(string) error                           { return nil }
func (s *sensor) Killed(string) bool                           { return false }
func (s *sensor) Check(c permission.Call, mode string) permission.Result {
	return (*permission.Set)(nil).Check(c, mode)
}
func (s *sensor) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// serve puts a bridge with the tools in place of the fixture's, and gives an URL that the vault's key is for.
func (s *sensor) serve(t *testing.T, f *fixture) (url string) {
	t.Helper()
	dir := t.TempDir()
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "the answer to "+r.URL.Path+" for "+r.Header.Get("Authorization"))
	}))
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := vault.MakeFile(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	k, err := vault.FromFile(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	v := vault.New(filepath.Join(dir, "vault.age"), k)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := v.Set("gh", "", []byte(secret), vault.Binding{Hosts: []string{"example.com:" + port}, Networks: []string{"127.0.0.1"}, CA: string(ca)}); err != nil {
		t.Fatal(err)
	}
	notes := memory.New(filepath.Join(dir, "memory"))
	if err := notes.Import("notes", "todo", "buy bread"); err != nil {
		t.Fatal(err)
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	b := bridge.New(s, quiet)
	fetcher := &vault.Fetcher{Vault: v, Resolver: s}
	b.Offer(bridge.NewToolServer(bridge.ToolOptions{Gate: s, Rules: s, Host: s, Vault: func() *vault.Fetcher { return fetcher }, Memory: notes, Logger: quiet}))
	f.socket += ".tools"
	if err := b.Listen(f.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(time.Minute) })
	return "https://example.com:" + port
}

// TestClaudeCallsTheSensorsToolsP6: Claude Code lists and calls the tools over weir-hook mcp; a person allows and denies; its sub-agent gets nothing (P6).
func TestClaudeCallsTheSensorsToolsP6(t *testing.T) {
	program := agent(t, "claude-*/package/claude")
	if program == "" {
		return
	}
	f := newFixture(t)
	s := &sensor{host: f.host}
	url := s.serve(t, f)
	f.install(t, "claude")
	fetch := func(path, reason string) call {
		return call{Tool: "mcp__weir__VaultHttpFetch", Input: input(obj{"url": url + path, "vault_auth_key": "gh", "auth_scheme": "bearer", "reason": reason})}
	}
	calls := []call{
		{Tool: "mcp__weir__LocalMemoryRecall", Input: input(obj{"action": "fetch", "store": "notes", "key": "todo"})},
		fetch("/one", "allow this"),
		fetch("/two", "refuse it"),
		{Tool: "Agent", Input: input(obj{"description": "look", "prompt": "do it", "subagent_type": "general-purpose"})},
		fetch("/three", "allow this"), // the sub-agent's
	}
	servers := string(input(obj{"mcpServers": obj{"weir": obj{"type": "stdio", "command": f.hook, "args": []string{"mcp"}}}}))
	argv := []string{program, "-p", "go", "--mcp-config", servers, "--allowedTools", "Agent", "Task", "mcp__weir__VaultHttpFetch", "mcp__weir__LocalMemoryRecall"}
	r := f.play(t, argv, claudeEnv, calls)
	told(t, r, 0, "buy bread")
	told(t, r, 1, "the answer to /one for Bearer [removed]")
	told(t, r, 2, "a person looked at this call and refused it")
	told(t, r, 4, "sub-agents cannot use this tool")
	for _, c := range r.Calls {
		if strings.Contains(c.Result, secret) {
			t.Errorf("the model was told the secret: %s", c.Result)
		}
	}
	if strings.Contains(r.Said, secret) {
		t.Errorf("it said %q", r.Said)
	}
	s.tmu.Lock()
	defer s.tmu.Unlock()
	if len(s.asked) != 2 {
		t.Errorf("asked: %q", s.asked)
	}
	// What the agent keeps in its home, transcripts too, has no secret.
	err := filepath.WalkDir(f.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNeverDeferredM2: where Claude Code defers the tools of MCP servers until the model searches for them, it gives the sensor's at once, for their
// metadata says so (anthropic/alwaysLoad); another server's, without it, are deferred.
func TestNeverDeferredM2(t *testing.T) {
	program := agent(t, "claude-*/package/claude")
	if program == "" {
		return
	}
	f := newFixture(t)
	s := &sensor{host: f.host}
	s.serve(t, f)
	f.install(t, "claude")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	servers := string(input(obj{"mcpServers": obj{
		"weir":    obj{"type": "stdio", "command": "sh", "args": []string{"-c", f.hook + " mcp | tee " + f.work + "/weir.said"}},
		"browser": obj{"type": "stdio", "command": "sh", "args": []string{"-c", self + " | tee " + f.work + "/browser.said"}, "env": obj{script.Env: "browser"}},
	}}))
	calls := []call{
		// Both servers have connected, and told their tools, before the model is asked again.
		{Tool: "Bash", Input: input(obj{"command": "until grep -q VaultHttpFetch weir.said && grep -q navigate browser.said; do sleep 0.2; done; sleep 6; echo local-$((40+2))-ran", "description": "x"})},
		{Tool: "ToolSearch", Input: input(obj{"query": "select:mcp__browser__navigate"})},
	}
	argv := []string{program, "-p", "go", "--model", "claude-sonnet-4-5", "--mcp-config", servers, "--allowedTools", "Bash"}
	r := f.play(t, argv, append(claudeEnv, "ENABLE_TOOL_SEARCH=true"), calls)
	told(t, r, 0, "local-42-ran")
	told(t, r, 1, "mcp__browser__navigate") // it was there to be found
	if len(r.Tools) < 2 {
		t.Fatalf("requests had the tools %q: %s", r.Tools, r.Said)
	}
	for name, want := range map[string]bool{"Bash": true, "ToolSearch": true, "mcp__weir__VaultHttpFetch": true, "mcp__weir__LocalMemoryRecall": true, "mcp__browser__navigate": false} {
		if slices.Contains(r.Tools[1], name) != want {
			t.Errorf("%s before anything was searched for: %v, of %q", name, !want, r.Tools[1])
		}
	}
}

// TestInspector: the MCP inspector's command line lists and calls the tools over weir-hook mcp.
func TestInspector(t *testing.T) {
	program := agent(t, "inspector-*/node_modules/.bin/mcp-inspector")
	if program == "" {
		return
	}
	f := newFixture(t)
	s := &sensor{host: f.host}
	url := s.serve(t, f)
	script := `set -e
announce() { printf '{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"mcp__weir__VaultHttpFetch","tool_input":{"url":"%s","vault_auth_key":"gh","auth_scheme":"bearer","reason":"%s"}}' "$URL" "$1" | weir-hook claude; }
inspect() { "$INSPECTOR" --cli -e WEIR_BRIDGE="$WEIR_BRIDGE" weir-hook mcp "$@"; }
fetch() { inspect --method tools/call --tool-name VaultHttpFetch --tool-arg url="$URL" vault_auth_key=gh auth_scheme=bearer reason="$1"; }
inspect --method tools/list
announce 'allow this'; fetch 'allow this'
announce 'refuse it'; fetch 'refuse it'
fetch 'never announced'`
	r := f.play(t, []string{"/bin/bash", "-c", script}, []string{"URL=" + url + "/one", "INSPECTOR=" + program}, nil)
	for _, want := range []string{
		`"name": "LocalMemoryRecall"`, `"name": "VaultHttpFetch"`, `"additionalProperties": false`, "the answer to /one for Bearer [removed]",
		"a person looked at this call and refused it", `"reason": "not_announced"`,
	} {
		if !strings.Contains(r.Said, want) {
			t.Errorf("it does not say %s: %s", want, r.Said)
		}
	}
	if strings.Contains(r.Said, secret) {
		t.Error("it says the secret")
	}
}
