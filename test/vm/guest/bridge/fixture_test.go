//go:build vmguest

// Package bridge follows commands that are asked about before they run: the hook's answer, what the kernel then lets through without
// another question, and who may ask about whom. The receiver says what arrived.
package bridge

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"weir/internal/event"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

type fixture struct {
	world  *rig.Outside
	sensor *rig.Sensor
}

// guard starts a session of a user without rights, with a name of its own.
func (f *fixture) guard(t *testing.T, bits ...string) *rig.Session {
	t.Helper()
	args := []string{"--user", "agent"}
	if len(bits) > 0 {
		args = append(args, "--taint", strings.Join(bits, ","))
	}
	return f.sensor.Guard(t, "b"+strconv.Itoa(f.world.Port()), args...)
}

// target is a place of one test, and who is asked about it.
type target struct {
	rig.Place
	f *fixture
}

func (f *fixture) web(t *testing.T) target { t.Helper(); return target{f.world.Web(t), f} }

// curl is what an agent would run, and quote.
func (to target) curl() string {
	return strings.Join(to.Curl(), " ")
}

// unasked fails t if a question about this place was ever put.
func (to target) unasked(t *testing.T) {
	t.Helper()
	for _, e := range to.f.sensor.Events(t, event.Hold) {
		if e.Destination != nil && int(e.Destination.Port) == to.Port {
			t.Errorf("it was asked about: %+v", e)
		}
	}
}

// listening waits until a socket of this path takes connections: its file is there before that.
func listening(t *testing.T, path string) {
	t.Helper()
	rig.Eventually(t, "somebody listens at "+path, func() bool {
		all, err := os.ReadFile("/proc/net/unix")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(all)) { // Num RefCount Protocol Flags Type St Inode Path
			if f := strings.Fields(line); len(f) == 8 && f[3] == "00010000" && f[7] == path {
				return true
			}
		}
		return false
	})
}

// hook gives a tool call to the agent's hook, as the agent would.
func hook(t *testing.T, s *rig.Session, agent, tool string, input any) *rig.Proc {
	t.Helper()
	data, err := json.Marshal(map[string]any{"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "cwd": "/", "session_id": "x"})
	if err != nil {
		t.Fatal(err)
	}
	p := s.Start(t, "weir-hook", agent)
	p.Input(t, string(data))
	p.Close(t)
	return p
}

func bash(t *testing.T, s *rig.Session, command string) *rig.Proc {
	t.Helper()
	return hook(t, s, "claude", "Bash", map[string]string{"command": command})
}

// passes waits for a hook that lets the call pass: it says nothing.
func passes(t *testing.T, p *rig.Proc) {
	t.Helper()
	if r := p.Wait(t); r.Exit != 0 || r.Stdout != "" {
		t.Errorf("want no objection, got %s", r)
	}
}

// denies waits for a hook that denies, and returns the reason.
func denies(t *testing.T, p *rig.Proc, want string) {
	t.Helper()
	r := p.Wait(t)
	var out struct {
		Specific struct {
			Event    string `json:"hookEventName"`
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	err := json.Unmarshal([]byte(r.Stdout), &out)
	if err != nil || r.Exit != 0 || out.Specific.Event != "PreToolUse" || out.Specific.Decision != "deny" || !strings.Contains(out.Specific.Reason, want) {
		t.Errorf("want a denial with %q, got %s", want, r)
	}
}

// snapshot writes the file that Claude Code reads before each command.
func snapshot(t *testing.T, s *rig.Session) {
	t.Helper()
	if r := s.Run(t, "sh", "-c", "mkdir -p /tmp/shell-snapshots && echo 'shopt -s expand_aliases' > /tmp/shell-snapshots/snapshot-bash-x.sh"); r.Exit != 0 {
		t.Fatalf("write snapshot: %s", r)
	}
}

// claude is what Claude Code executes for a command.
func claude(command string) []string {
	quoted := "'" + strings.ReplaceAll(command, "'", `'"'"'`) + "'"
	return []string{"/bin/bash", "-c", "source /tmp/shell-snapshots/snapshot-bash-x.sh && eval " + quoted + ` \< /dev/null && pwd -P >| /tmp/claude-x-cwd`}
}

// claudeNow is what its version 2.1.197 executes.
func claudeNow(command string) []string {
	quoted := "'" + strings.ReplaceAll(command, "'", `'"'"'`) + "'"
	return []string{"/bin/bash", "-c", "source /tmp/shell-snapshots/snapshot-bash-x.sh 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && eval " + quoted +
		" < /dev/null && pwd -P >| /tmp/claude-x-cwd"}
}

// codex is what Codex executes.
func codex(command string) []string { return []string{"bash", "-lc", command} }

// codexNow is what its version 0.169.0 executes once it has a snapshot of the shell, but for what it sets.
func codexNow(command string) []string {
	quoted := "'" + strings.ReplaceAll(command, "'", `'"'"'`) + "'"
	return []string{"/bin/bash", "-c", "if . '/tmp/shell-snapshots/snapshot-bash-x.sh' >/dev/null 2>&1; then :; fi\nexport A=\"${A-}\"\nexec '/bin/bash' -c " + quoted}
}

// recognised fails t unless the command was known when it ran.
func (f *fixture) recognised(t *testing.T, text string) {
	t.Helper()
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Exec && e.Verdict != nil && e.Verdict.Reason == "recognised" && strings.Contains(strings.Join(e.Process.Argv, " "), text)
	})
}
