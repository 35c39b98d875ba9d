//go:build vmguest

package bridge

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/rig"
)

// permissions is beside the rig's policy.
const permissions = "/run/permissions.yaml"

// TestTools: the guard, the kill switch and the rules, and the tools that the sensor serves, in sessions of one sensor.
func TestTools(t *testing.T) {
	rig.Must(t, "mkdir -p /run/weir-hooks; rm -f /run/weir-hooks/*")
	if err := os.WriteFile(permissions, []byte("deny: [\"LocalMemoryRecall(fetch:hr/*)\", mcp__mail__send]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rig.Must(t, "rm -f "+permissions) })
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, policy)
	for _, test := range []struct {
		name string
		run  func(*fixture, *testing.T)
	}{
		{"K1_K6_K7_K13_guard", (*fixture).guardRules},
		{"K9_wire", (*fixture).wireCodes},
		{"K10_kill_switch", (*fixture).killSwitch},
		{"P2_P4_rules", (*fixture).permissionRules},
		{"M1_M2_M6_P6_memory", (*fixture).memory},
		{"V1_V2_V6_V7_V8_V10_P6_vault", (*fixture).vault},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(f, t) })
	}
}

// generic asks with the hook that any agent can use, and returns the reason of a denial; empty: it is allowed.
func generic(t *testing.T, s *rig.Session, tool string, input map[string]string) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"tool_name": tool, "tool_input": input, "cwd": "/"})
	if err != nil {
		t.Fatal(err)
	}
	p := s.Start(t, "weir-hook", "generic")
	p.Input(t, string(data))
	p.Close(t)
	r := p.Wait(t)
	var out struct {
		Allowed bool
		Reason  string
	}
	if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil || r.Exit != 0 || out.Allowed != (out.Reason == "") {
		t.Fatalf("%s %v: %s", tool, input, r)
	}
	return out.Reason
}

// guardRules: K1, K6, K7, K13. A refusal names its rule, is in the log, and is counted.
func (f *fixture) guardRules(t *testing.T) {
	s := f.guard(t)
	if r := s.Run(t, "sh", "-c", "cd /tmp && mkdir "+s.Name+" && ln -s /etc/shadow harmless-"+s.Name+" && ln -s ../harmless-"+s.Name+" "+s.Name+"/link"); r.Exit != 0 {
		t.Fatalf("make links: %s", r)
	}
	for _, call := range []struct{ rule, tool, name, value string }{
		{"linux-delete", "Bash", "command", "cd /tmp && rm -rf /"},
		{"sensor-service", "Bash", "command", "systemctl stop weir"},
		{"sensor-files", "Bash", "command", "echo on > /var/lib/weir/kill-switch"},
		{"sensor-vault", "Read", "file_path", "/var/lib/weir/vault.age"},
		{"shadow-file", "Read", "file_path", "/tmp/harmless-" + s.Name},
		{"shadow-file", "Read", "file_path", "/tmp/" + s.Name + "/link"},
	} {
		counted := f.sensor.Counter(t, "guard_"+call.rule)
		if reason := generic(t, s, call.tool, map[string]string{call.name: call.value}); !strings.Contains(reason, "rule "+call.rule+":") {
			t.Errorf("%s %s: want the rule %s, got %q", call.tool, call.value, call.rule, reason)
			continue
		}
		e := f.sensor.Event(t, func(e event.Event) bool {
			return e.Kind == event.Verdict && e.Container.Name == s.Name && e.Verdict.Rule == call.rule
		})
		if e.Verdict.Decision != "deny" || e.Verdict.Reason != "guard" || e.Verdict.Tool != call.tool || e.Process == nil || e.Process.PID == 0 {
			t.Errorf("event %+v of %+v", e.Verdict, e.Process)
		}
		want := fmt.Sprintf("guard_%s %d", call.rule, counted+1)
		if status := strings.Join(strings.Fields(f.sensor.Must(t, "status")), " "); !strings.Contains(status+" ", want+" ") {
			t.Errorf("weir status has no %q: %s", want, status)
		}
	}
	for _, command := range []string{"echo 'rm -rf /'", "rm -rf /tmp/build"} {
		if reason := generic(t, s, "Bash", map[string]string{"command": command}); reason != "" {
			t.Errorf("%s: %s", command, reason)
		}
	}
}

// wireCodes: K9, of the program itself; the switch that the sensor obeys is the one it looks at.
func (f *fixture) wireCodes(t *testing.T) {
	ask := `printf '{"v":"0.5","id":"a","tool":"bash","args":{"command":"%s"}}\n' 'rm -rf /' ls | weir toolcheck --jsonl`
	lines := strings.Split(strings.TrimSpace(rig.Must(t, ask)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"code":"blocked"`) || !strings.Contains(lines[0], "linux-delete") || !strings.Contains(lines[1], `"ok":true`) {
		t.Errorf("got %s", lines)
	}
	f.sensor.Must(t, "kill-switch", "on")
	defer f.sensor.Must(t, "kill-switch", "off")
	if out := rig.Must(t, ask); strings.Count(out, `"code":"disabled"`) != 2 {
		t.Errorf("switch on: %s", out)
	}
}

// killSwitch: K10. It is obeyed at the next call, also by a call that was announced before; the guard is never off.
func (f *fixture) killSwitch(t *testing.T) {
	s := f.guard(t)
	touch := map[string]string{"command": "touch /tmp/x"}
	if reason := generic(t, s, "Bash", touch); reason != "" {
		t.Errorf("before: %s", reason)
	}
	c := connect(t, s)
	fetch := map[string]any{"url": "https://example.com/", "vault_auth_key": "none", "auth_scheme": "bearer", "reason": "x"}
	announce(t, s, fetchTool, fetch)
	f.sensor.Must(t, "kill-switch", "on")
	defer f.sensor.Must(t, "kill-switch", "off")
	for tool, input := range map[string]map[string]string{"Bash": touch, "Write": {"file_path": "/tmp/x", "content": "x"}, "mcp__any__thing": {}} {
		if reason := generic(t, s, tool, input); !strings.Contains(reason, "turned off every tool") {
			t.Errorf("%s: %q", tool, reason)
		}
	}
	if text, failed := c.call(t, fetchTool, fetch); !failed || !strings.Contains(text, "turned off every tool") {
		t.Errorf("announced before: %s", text)
	}
	if reason := generic(t, s, "Read", map[string]string{"file_path": "/etc/hosts"}); reason != "" {
		t.Errorf("reading: %s", reason)
	}
	if reason := generic(t, s, "Read", map[string]string{"file_path": "/etc/shadow"}); !strings.Contains(reason, "rule shadow-file:") {
		t.Errorf("the guard is off: %q", reason)
	}
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Verdict != nil && e.Verdict.Reason == "kill_switch" && e.Verdict.Tool == "Bash" && e.Container.Name == s.Name
	})
	f.sensor.Must(t, "kill-switch", "off")
	if reason := generic(t, s, "Bash", touch); reason != "" {
		t.Errorf("after: %s", reason)
	}
}

// permissionRules: P2, P4. The file beside the policy is in force, and read again on SIGHUP; a person is asked where it says so.
func (f *fixture) permissionRules(t *testing.T) {
	s := f.guard(t)
	if reason := generic(t, s, "mcp__mail__send", nil); !strings.Contains(reason, "permission rules") {
		t.Errorf("denied tool: %q", reason)
	}
	before, err := os.ReadFile(permissions)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(permissions, append(before, "ask: [\"Bash(touch /tmp/asked)\"]\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	f.sensor.Policy(t, strings.Replace(policy, "120", "119", 1))
	asks := bash(t, s, "touch /tmp/asked")
	q := f.sensor.Asked(t, func(q gate.Question) bool { return q.Container.Name == s.Name })
	if !strings.Contains(q.Text, "touch /tmp/asked") {
		t.Errorf("the question is %q", q.Text)
	}
	f.sensor.Must(t, "approve", q.ID)
	passes(t, asks)
}
