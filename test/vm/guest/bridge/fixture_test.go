//go:build vmguest

// Package bridge follows commands that are asked about before they run: the hook's answer, what the kernel then lets through without
// another question, and who may ask about whom. The receiver says what arrived.
package bridge

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

// late is how long something may take that must happen.
const late = 20 * time.Second

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

// target is a place in the world that only one test uses, and a text that only it sends there.
type target struct {
	f    *fixture
	port int
	text string
}

// web serves HTTP at a new place, for as long as t runs.
func (f *fixture) web(t *testing.T) target {
	t.Helper()
	port := f.world.Port()
	to := target{f, port, fmt.Sprintf("text.%d.end", port)}
	listener, err := listenIn("world", fmt.Sprintf("%s:%d", rig.World4, port))
	if err != nil {
		t.Fatalf("listen in the world: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			fmt.Fprint(w, "answer")
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends when it is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return to
}

// listenIn listens in a named network namespace: a socket stays where it was made.
func listenIn(netns, at string) (net.Listener, error) {
	type result struct {
		l   net.Listener
		err error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		there, err := os.Open("/run/netns/" + netns)
		if err == nil {
			defer there.Close()
			err = unix.Setns(int(there.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			made <- result{err: err}
			return
		}
		l, err := net.Listen("tcp", at)
		made <- result{l, err}
	}()
	r := <-made
	return r.l, r.err
}

func (to target) curl() string {
	return fmt.Sprintf("curl -sS -m 60 http://%s:%d/%s", rig.World4, to.port, to.text)
}

func (to target) arrived(t *testing.T) {
	t.Helper()
	if !to.f.world.WaitGot(to.text, late) {
		t.Errorf("%s did not arrive", to.text)
	}
}

func (to target) nothing(t *testing.T) {
	t.Helper()
	to.f.world.Nothing(t, rig.Marks{}, to.text, to.port)
}

// unasked fails t if a question about this place was ever put.
func (to target) unasked(t *testing.T) {
	t.Helper()
	for _, e := range to.f.sensor.Events(t, event.Hold) {
		if e.Destination != nil && int(e.Destination.Port) == to.port {
			t.Errorf("it was asked about: %+v", e)
		}
	}
}

// about is the connect's own question.
func (to target) about(q gate.Question) bool { return int(q.Destination.Port) == to.port }

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
