package agents

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"

	"weir/deploy/policies"
	"weir/internal/agenthook"
	"weir/internal/bridge"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/policy"
	"weir/test/agents/script"
)

// clean is a sensor's gate for a container that nothing tainted, with a policy. It notes what a person was asked and what was denied.
type clean struct {
	*gate.Gate
	policy policy.Policy

	mu      sync.Mutex
	checked int
	not     []string // that nothing should be in
}

func (c *clean) note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.not = append(c.not, text)
}

func (c *clean) Who(pid int) (bridge.Asker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checked++
	return bridge.Asker{
		Container: event.Container{ID: "g-clean"}, Process: event.Process{PID: pid, Start: 1}, Mode: string(c.policy.Mode), AskFlagged: c.policy.Cop.AskFlagged(),
		Confirm: c.policy.Confirm.Tools, Unasked: c.policy.Confirm.ApprovalExemptTools,
	}, nil
}

func (c *clean) Confirm(_ context.Context, r gate.Request) gate.Verdict {
	c.note("asked: " + r.Command)
	return gate.Verdict{Reason: gate.Denied}
}

func (c *clean) Deny(_ bridge.Asker, command string, d event.Decision) error {
	c.note("denied: " + command + ": " + d.Reason)
	return nil
}

func (c *clean) Called(bridge.Asker, string, bool) error { return nil }

func (c *clean) Write(e event.Event) error {
	if e.Kind == event.Hold || e.Verdict != nil && e.Verdict.Decision != "allow" {
		c.note(fmt.Sprintf("event %s: %s %+v", e.Kind, e.Command, e.Verdict))
	}
	return nil
}

// calm puts a bridge with such a gate in place of the fixture's.
func (f *fixture) calm(t *testing.T, preset string) *clean {
	t.Helper()
	c := &clean{policy: policy.Default()}
	if preset != "" {
		text, err := policies.Text(preset)
		if err == nil {
			c.policy, err = policy.Parse(preset, []byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "state.db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	if c.Gate, err = gate.Open(gate.Options{DB: db, Log: c, Approver: true, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Gate.Close)
	b := bridge.New(c, quiet)
	f.socket += ".calm"
	if err := b.Listen(f.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(time.Minute) })
	return c
}

// quiet fails t if anybody was asked, or anything was denied; calls is how many the hook has to have told of.
func (c *clean) quiet(t *testing.T, r []call, calls int) {
	t.Helper()
	for i, one := range r {
		if one.Result == "" || strings.Contains(one.Result, "Denied") || strings.Contains(one.Result, "hook error") {
			t.Errorf("call %d, %s %s: the model was told %q", i, one.Tool, one.Input, one.Result)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.not) > 0 || len(c.Gate.Pending()) > 0 {
		t.Errorf("in a clean container: %q, and %d questions", c.not, len(c.Gate.Pending()))
	}
	if c.checked < calls {
		t.Errorf("the bridge was asked %d times, for %d calls", c.checked, calls)
	}
}

// steps are the commands of a day's work: they build, test and commit, and say so.
func steps() []string {
	return []string{
		"git init -q -b main . && git config user.name dev && git config user.email dev@example.org && git add -A && git commit -qm 'first' && echo committed-$((40+2))",
		"sh ./build.sh && echo built-$((40+2))",
		"set -e; for i in 1 2 3; do test -f out/$i.txt; done; grep -q 3 out/3.txt && echo tested-$((40+2))",
		"mkdir -p docs && echo notes > docs/notes.md && sed -i 's/notes/more notes/' docs/notes.md && cat docs/notes.md",
		"rm -rf out && git status --short && git diff | head -20; git add -A && git commit -qm 'mend it: rm -rf / is only a text' && git log --oneline | wc -l",
		"git checkout -q -b feature && git stash list && git branch --list && echo branched-$((40+2))",
	}
}

const buildScript = "mkdir -p out\nfor i in 1 2; do echo $i > out/$i.txt; done\n"

// wrote fails t if a file of the project is not as the session should have left it.
func (f *fixture) wrote(t *testing.T, name, want string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.work, name))
	if err != nil || !strings.Contains(string(data), want) {
		t.Errorf("%s: %q, %v", name, data, err)
	}
}

// TestDayF28: Claude Code and Codex edit, build, test and commit in a clean container, with the default policy and with each preset: nobody is asked
// and nothing is denied.
func TestDayF28(t *testing.T) {
	for _, preset := range []string{"", "claude", "codex", "strict"} {
		t.Run("claude, "+cmp.Or(preset, "default"), func(t *testing.T) {
			program := agent(t, "claude-*/package/claude")
			if program == "" {
				return
			}
			f := newFixture(t)
			c := f.calm(t, preset)
			if preset == "claude" {
				f.behindProxy(t, "anthropic")
			}
			settings, err := agenthook.Settings("claude", f.hook)
			if err != nil {
				t.Fatal(err)
			}
			file := func(name string) string { return filepath.Join(f.work, name) }
			calls := []call{
				{Tool: "Write", Input: input(obj{"file_path": file("build.sh"), "content": buildScript})},
				{Tool: "Read", Input: input(obj{"file_path": file("build.sh")})},
				{Tool: "Edit", Input: input(obj{"file_path": file("build.sh"), "old_string": "1 2;", "new_string": "1 2 3;"})},
				{Tool: "Write", Input: input(obj{"file_path": file("a.ipynb"), "content": `{"cells":[{"cell_type":"code","id":"c1","metadata":{},"outputs":[],"execution_count":null,"source":"x"}],"metadata":{},"nbformat":4,"nbformat_minor":5}`})},
				{Tool: "Read", Input: input(obj{"file_path": file("a.ipynb")})},
				{Tool: "NotebookEdit", Input: input(obj{"notebook_path": file("a.ipynb"), "cell_id": "c1", "new_source": "print(42)"})},
			}
			for _, s := range steps() {
				calls = append(calls, call{Tool: "Bash", Input: input(obj{"command": s, "description": "x"})})
			}
			r := f.play(t, []string{program, "--settings", settings, "-p", "go", "--permission-mode", "acceptEdits", "--allowedTools", "Bash", "Write", "Edit", "NotebookEdit", "Read"}, append(claudeEnv, "ANTHROPIC_AUTH_TOKEN="+script.Key, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN="), calls)
			c.quiet(t, r.Calls, len(calls))
			passed(t, r, len(calls))
			f.wrote(t, "build.sh", "1 2 3;")
			f.wrote(t, "a.ipynb", "print(42)")
			f.done(t, r.Calls[6:])
		})
		t.Run("codex, "+cmp.Or(preset, "default"), func(t *testing.T) {
			program := agent(t, "codex-*/package/vendor/*/bin/codex")
			if program == "" {
				return
			}
			f := newFixture(t)
			c := f.calm(t, preset)
			if preset == "codex" {
				f.behindProxy(t, "openai")
			}
			patch := func(text string) call {
				return call{Tool: "apply_patch", Input: input("*** Begin Patch\n" + text + "*** End Patch\n")}
			}
			calls := []call{
				patch("*** Add File: build.sh\n+" + strings.ReplaceAll(strings.TrimSpace(buildScript), "\n", "\n+") + "\n"),
				patch("*** Update File: build.sh\n@@\n-for i in 1 2; do echo $i > out/$i.txt; done\n+for i in 1 2 3; do echo $i > out/$i.txt; done\n"),
			}
			for _, s := range steps() {
				calls = append(calls, call{Tool: "exec_command", Input: input(obj{"cmd": s})})
			}
			argv := []string{
				program, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "-c", `model="gpt-5.5"`, "-c", `model_provider="local"`,
				"-c", `model_providers.local={name="local",base_url="ADDRESS/v1",wire_api="responses",env_key="WEIR_MODEL_KEY"}`, "-c", `web_search="disabled"`,
				"-c", fmt.Sprintf(`hooks.PreToolUse=[{matcher="*",hooks=[{type="command",command=%q,timeout=60}]}]`, f.hook+" codex"), "go",
			}
			r := f.play(t, argv, []string{"WEIR_MODEL_KEY=" + script.Key, "OPENAI_API_KEY=", "CODEX_API_KEY="}, calls)
			c.quiet(t, r.Calls, len(calls))
			passed(t, r, len(calls))
			f.wrote(t, "build.sh", "1 2 3;")
			f.done(t, r.Calls[2:])
		})
	}
}

// behindProxy puts the model behind weir model-proxy, where it speaks TLS.
func (f *fixture) behindProxy(t *testing.T, api string) {
	t.Helper()
	f.behind = &script.Proxy{Weir: filepath.Join(filepath.Dir(f.hook), "weir"), API: api}
	if out, err := exec.Command("go", "build", "-o", f.behind.Weir, "weir/cmd/sensor").CombinedOutput(); err != nil {
		t.Fatalf("build weir: %v: %s", err, out)
	}
}

// passed fails t unless all that reached a model behind a proxy had the key, and all that the agent needs did (B43).
func passed(t *testing.T, r script.Run, least int) {
	t.Helper()
	if r.Behind == nil {
		return
	}
	if r.Behind.Came <= least || r.Behind.Foreign > 0 {
		t.Errorf("%d requests reached the model with the key, %d with another", r.Behind.Came, r.Behind.Foreign)
	}
	for _, line := range r.Behind.Refused {
		if line != "" {
			t.Errorf("the proxy says: %s", line)
		}
	}
}

// done fails t if a step of the day was not carried out.
func (f *fixture) done(t *testing.T, r []call) {
	t.Helper()
	for i, want := range []string{"committed-42", "built-42", "tested-42", "more notes", "2", "branched-42"} {
		if !strings.Contains(r[i].Result, want) {
			t.Errorf("step %d: the model was told %q", i, r[i].Result)
		}
	}
	f.wrote(t, "docs/notes.md", "more notes")
}
