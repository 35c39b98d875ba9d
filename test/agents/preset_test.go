package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/agenthook"
	"weir/test/agents/script"
)

// protect makes a command line one that may change files only where a preset's session may, as weir guard --preset starts it.
func (f *fixture) protect(t *testing.T, preset string, argv []string) []string {
	t.Helper()
	weir := filepath.Join(filepath.Dir(f.hook), "weir")
	if out, err := exec.Command("go", "build", "-o", weir, "weir/cmd/sensor").CombinedOutput(); err != nil {
		t.Fatalf("build weir: %v: %s", err, out)
	}
	says, err := exec.Command(weir, "guard", "--preset", preset, "--explain").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(says), "\nWritable: ")
	list, _, _ = strings.Cut(list, "\n")
	write := []string{"--write=" + f.work, "--write=/dev", "--write=/proc"} // /tmp has the home of this test
	for dir := range strings.SplitSeq(list, ", ") {
		if below, ok := strings.CutPrefix(dir, "~/"); ok {
			flag := "--write="
			if strings.HasSuffix(below, "installation_id") { // the only one that is a file
				flag = "--write-file="
			}
			write = append(write, flag+filepath.Join(f.home, below))
		}
	}
	if len(write) < 10 {
		t.Fatalf("writable: %q", list)
	}
	// The stub waits for a byte on descriptor 3.
	stub := append([]string{"bash", "-c", `exec 3< <(printf x); exec "$@" </dev/null`, "stub", weir, "guard-init"}, write...)
	return append(append(stub, "--"), argv...)
}

// TestProtected: B52 with the agents themselves: they work where their settings and hooks are not theirs to change, and what they are told to
// write there is not written.
func TestProtected(t *testing.T) {
	t.Run("claude", func(t *testing.T) {
		program := agent(t, "claude-*/package/claude")
		if program == "" {
			return
		}
		f := newFixture(t)
		settings, err := agenthook.Settings("claude", f.hook)
		if err != nil {
			t.Fatal(err)
		}
		bash := func(command string) call {
			return call{Tool: "Bash", Input: input(obj{"command": command, "description": "x"})}
		}
		r := f.play(t, f.protect(t, "claude", []string{program, "--settings", settings, "-p", "go", "--allowedTools", "Bash", "Write"}), append(claudeEnv, "CLAUDE_CODE_TMPDIR="+f.work, "TMPDIR="+f.work), []call{
			bash("echo local-$((40+2))-ran > in-project; cat in-project"),
			bash("./tool > " + f.home + "/.claude/settings.json; echo status $?"),
			bash("curl http://192.0.2.1/deny-this"),
		})
		f.protected(t, r, ".claude/settings.json")
		told(t, r, 0, "local-42-ran")
		told(t, r, 1, "denied")
		told(t, r, 2, "this one was found suspicious")
	})
	t.Run("codex", func(t *testing.T) {
		program := agent(t, "codex-*/package/vendor/*/bin/codex")
		if program == "" {
			return
		}
		f := newFixture(t)
		run := func(command string) call {
			return call{Tool: "exec_command", Input: input(obj{"cmd": command})}
		}
		argv := []string{
			program, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "-c", `model="gpt-5"`, "-c", `model_provider="local"`,
			"-c", `model_providers.local={name="local",base_url="ADDRESS/v1",wire_api="responses"}`,
			"-c", fmt.Sprintf(`hooks.PreToolUse=[{matcher="*",hooks=[{type="command",command=%q,timeout=60}]}]`, f.hook+" codex"), "go",
		}
		r := f.play(t, f.protect(t, "codex", argv), []string{"TMPDIR=" + f.work, "CODEX_SQLITE_HOME=" + f.home + "/.codex/sqlite"}, []call{
			run("echo local-$((40+2))-ran > in-project; cat in-project"),
			run("./tool > " + f.home + "/.codex/hooks.json; echo status $?"),
			run("curl http://192.0.2.1/deny-this"),
		})
		f.protected(t, r, ".codex/hooks.json")
		told(t, r, 0, "local-42-ran")
		told(t, r, 1, "denied")
		told(t, r, 2, "this one was found suspicious")
	})
}

// protected fails t if a file below home exists.
func (f *fixture) protected(t *testing.T, r script.Run, path string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(f.home, path)); err == nil {
		t.Errorf("%s was written: %s", path, r.Said)
	}
}
