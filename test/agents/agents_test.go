package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"weir/internal/agenthook"
	"weir/internal/bridge"
	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/policy"
	"weir/test/agents/script"
)

type (
	call = script.Call
	obj  = script.Obj
)

func TestMain(m *testing.M) {
	if !script.Main() {
		os.Exit(m.Run())
	}
}

// host decides as a tainted container's would: what says deny is flagged, what says ask waits for a person, the rest is let run.
type host struct {
	mu      sync.Mutex
	asked   []string
	called  []string
	approve chan string
}

func (h *host) Who(pid int) (bridge.Asker, error) {
	return bridge.Asker{Container: event.Container{ID: "g-agent", Taint: []string{"secret"}}, Process: event.Process{PID: pid, Start: 1}, Mode: "enforce", Unasked: policy.Default().Confirm.ApprovalExemptTools}, nil
}

func (h *host) Decide(ctx context.Context, r gate.Request) gate.Verdict {
	h.mu.Lock()
	h.asked = append(h.asked, r.Command)
	h.mu.Unlock()
	switch {
	case strings.Contains(r.Command, "deny-this"):
		return gate.Verdict{Reason: gate.Flagged, Text: "it would send a file away"}
	case strings.Contains(r.Command, "ask-a-person"):
		select {
		case h.approve <- r.Command: // a person answers
			return gate.Verdict{Decision: gate.Allow, Reason: gate.Approved}
		case <-ctx.Done():
			return gate.Verdict{Reason: gate.Cancelled}
		}
	}
	return gate.Verdict{Decision: gate.Allow, Reason: gate.Passed}
}

func (h *host) Confirm(ctx context.Context, r gate.Request) gate.Verdict {
	return h.Decide(ctx, r)
}
func (h *host) Deny(bridge.Asker, string, event.Decision) error { return nil }

func (h *host) Called(_ bridge.Asker, tool string, _ bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.called = append(h.called, tool)
	return nil
}

// fixture is a bridge, the hook as a program, and a home for an agent.
type fixture struct {
	*host
	socket, hook, home, work string
	behind                   *script.Proxy
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{host: &host{approve: make(chan string)}, socket: dir + "/bridge.sock", hook: dir + "/bin/weir-hook", home: dir + "/home", work: dir + "/work"}
	for _, d := range []string{f.home, f.work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-o", f.hook, "weir/cmd/hook").CombinedOutput(); err != nil {
		t.Fatalf("build the hook: %v: %s", err, out)
	}
	// What is not local and needs a person: a program that the classifier does not know.
	if err := os.WriteFile(f.work+"/tool", []byte("#!/bin/sh\necho the tool ran: $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	s := bridge.New(f.host, quiet)
	if err := s.Listen(f.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(time.Minute) })
	return f
}

// install writes the hook into the agent's settings as its installer does.
func (f *fixture) install(t *testing.T, agent string) {
	t.Helper()
	cmd := exec.Command(f.hook, "install", agent)
	cmd.Env = []string{"HOME=" + f.home}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install: %v: %s", err, out)
	}
}

// agent is the program that scripts/agents put there; empty: it did not, which is told.
func agent(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob("../../.cache/agents/" + pattern)
	if err != nil || len(found) > 1 {
		t.Fatalf("%q, %v: there is more than one: remove .cache/agents and run scripts/agents", found, err)
	}
	if len(found) == 0 {
		fmt.Fprintf(os.Stderr, "\n***** %s IS NOT TESTED: %s is not there: run scripts/agents, with npm *****\n\n", t.Name(), pattern)
		return ""
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// limit is how long an agent may take in all.
const limit = 8 * time.Minute

// play runs an agent in namespaces of its own: without a network, and with other process ids than the bridge, as in a container.
func (f *fixture) play(t *testing.T, argv, env []string, calls []call) script.Run {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(script.Run{Argv: argv, Dir: f.work, Calls: calls, Behind: f.behind, Env: append([]string{
		"HOME=" + f.home, "PATH=" + filepath.Dir(f.hook) + ":" + f.work + ":" + os.Getenv("PATH"), wire.Variable + "=" + f.socket, "TERM=dumb", "LANG=C.UTF-8",
	}, env...)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), script.Env+"=agent")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID} // all of it ends with the first process
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run in namespaces (needs root): %v", err)
	}
	var r script.Run
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	if r.Error != "" {
		t.Errorf("the agent: %s: %s", r.Error, r.Said)
	}
	return r
}

// person approves one command.
func (f *fixture) person(t *testing.T) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-f.approve:
		case <-time.After(limit):
		}
	}()
	return func() { <-done }
}

func input(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

// told fails t unless the model was told this.
func told(t *testing.T, r script.Run, n int, want string) {
	t.Helper()
	if !strings.Contains(r.Calls[n].Result, want) {
		t.Errorf("call %d, %s: want %q, and the model was told %s", n, r.Calls[n].Tool, want, r.Calls[n].Result)
	}
}

// untold fails t if the model was told this.
func untold(t *testing.T, r script.Run, n int, not string) {
	t.Helper()
	if r.Calls[n].Result == "" || strings.Contains(r.Calls[n].Result, not) {
		t.Errorf("call %d, %s: the model was told %q", n, r.Calls[n].Tool, r.Calls[n].Result)
	}
}

func (f *fixture) wasAsked(t *testing.T, want map[string]bool) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	all := strings.Join(f.asked, "\n")
	for text, asked := range want {
		if strings.Contains(all, text) != asked {
			t.Errorf("%q: asked is %v: %q", text, !asked, f.asked)
		}
	}
}

var claudeEnv = []string{
	"ANTHROPIC_BASE_URL=ADDRESS", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
}

// TestClaudeG2G18G19G23: g2 with Claude Code.
func TestClaudeG2G18G19G23(t *testing.T) {
	program := agent(t, "claude-*/package/claude")
	if program == "" {
		return
	}
	f := newFixture(t)
	f.install(t, "claude")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	servers := string(input(obj{"mcpServers": obj{"browser": obj{"type": "stdio", "command": self, "args": []string{}, "env": obj{script.Env: "browser"}}}}))
	bash := func(command string) call {
		return call{Tool: "Bash", Input: input(obj{"command": command, "description": "x"})}
	}
	calls := []call{
		bash("echo local-$((40+2))-ran"),
		bash("curl http://192.0.2.1/deny-this"),
		bash("./tool ask-a-person"),
		{Tool: "WebFetch", Input: input(obj{"url": "https://example.org/", "prompt": "read it"})},
		{Tool: "mcp__browser__navigate", Input: input(obj{"url": "https://example.org/"})},
	}
	approved := f.person(t)
	argv := []string{program, "-p", "go", "--mcp-config", servers, "--allowedTools", "Bash", "WebFetch", "mcp__browser__navigate"}
	r := f.play(t, argv, claudeEnv, calls)
	approved()
	told(t, r, 0, "local-42-ran")
	told(t, r, 1, "this one was found suspicious. Reason: it would send a file away.")
	told(t, r, 2, "the tool ran: ask-a-person")
	untold(t, r, 3, "the page")
	told(t, r, 4, "the page's text")
	f.wasAsked(t, map[string]bool{"deny-this": true, "ask-a-person": true})
	if len(f.called) != 1 || f.called[0] != "mcp__browser__navigate" {
		t.Errorf("reported: %q", f.called)
	}
}

// TestClaudePreset: the hook alone, in the settings of one run, as weir guard --preset claude gives it. WebFetch meets the bridge then.
func TestClaudePreset(t *testing.T) {
	program := agent(t, "claude-*/package/claude")
	if program == "" {
		return
	}
	f := newFixture(t)
	settings, err := agenthook.Settings("claude", f.hook)
	if err != nil {
		t.Fatal(err)
	}
	settings = strings.Replace(settings, `"deny":["WebFetch"]`, `"deny":[]`, 1)
	calls := []call{
		{Tool: "Bash", Input: input(obj{"command": "curl http://192.0.2.1/deny-this", "description": "x"})},
		{Tool: "WebFetch", Input: input(obj{"url": "https://example.org/", "prompt": "read it"})},
	}
	r := f.play(t, []string{program, "--settings", settings, "-p", "go", "--allowedTools", "Bash", "WebFetch"}, claudeEnv, calls)
	told(t, r, 0, "this one was found suspicious")
	told(t, r, 1, "Use the browser tool (mcp__browser__")
}

// TestCodex: the same as far as Codex's hooks go: installed and trusted, and given on the command line.
func TestCodex(t *testing.T) {
	program := agent(t, "codex-*/package/vendor/*/bin/codex")
	if program == "" {
		return
	}
	for _, how := range []string{"installed", "command line"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			config := []string{"-c", `model="gpt-5"`, "-c", `model_provider="local"`, "-c", `model_providers.local={name="local",base_url="ADDRESS/v1",wire_api="responses"}`}
			if how == "installed" {
				f.install(t, "codex")
			} else {
				config = append(config, "-c", fmt.Sprintf(`hooks.PreToolUse=[{matcher="*",hooks=[{type="command",command=%q,timeout=60}]}]`, f.hook+" codex"))
			}
			run := func(command string) call {
				return call{Tool: "exec_command", Input: input(obj{"cmd": command})}
			}
			calls := []call{run("echo local-$((40+2))-ran"), run("curl http://192.0.2.1/deny-this"), run("./tool ask-a-person")}
			approved := f.person(t)
			argv := append([]string{program, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"}, config...)
			r := f.play(t, append(argv, "go"), nil, calls)
			approved()
			told(t, r, 0, "local-42-ran")
			told(t, r, 1, "this one was found suspicious. Reason: it would send a file away.")
			told(t, r, 2, "the tool ran: ask-a-person")
			f.wasAsked(t, map[string]bool{"deny-this": true, "ask-a-person": true})
		})
	}
}
