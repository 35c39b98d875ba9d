package bridge

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/toolguard"

	"weir/internal/permission"
)

// stages notes who was asked, in order, and denies at one of them.
type stages struct {
	asked  []string
	denies string
}

func (s *stages) at(name string) bool {
	s.asked = append(s.asked, name)
	return s.denies == name
}

type guardStage struct{ *stages }

func (s guardStage) CheckIn(string, json.RawMessage, func(string) ([]string, bool)) (toolguard.Hit, bool) {
	return toolguard.Hit{Rule: &toolguard.Rule{ID: "test", Refuses: "does it", Why: "Why.", Instead: "Do not."}}, s.at("guard")
}

type permissionStage struct{ *stages }

func (s permissionStage) Check(permission.Call, string) permission.Result {
	if s.at("permission rules") {
		return permission.Result{}
	}
	return permission.Result{Decision: permission.Allowed}
}

// TestOrderK1K10K11: kill switch, guard, permission rules, hooks, gate. What denies ends it; what is behind it is not asked.
func TestOrderK1K10K11(t *testing.T) {
	order := []string{"kill switch", "guard", "permission rules", "hooks", "gate"}
	for i, denies := range append(order, "nobody") {
		t.Run(denies, func(t *testing.T) {
			st := &stages{denies: denies}
			seen := filepath.Join(t.TempDir(), "seen")
			answer := none
			if denies == "hooks" {
				answer = denying("no")
			}
			who := inside("secret")
			who.Hooks = folder(t, map[string]string{"a": "touch " + seen + "; " + answer})
			s := New(&host{decide: func(context.Context, gate.Request) gate.Verdict {
				if _, err := os.Stat(seen); err == nil {
					st.at("hooks")
				}
				if st.at("gate") {
					return gate.Verdict{Reason: gate.Flagged}
				}
				return gate.Verdict{Decision: gate.Allow, Reason: gate.Passed}
			}}, quiet())
			s.Use(Rules{Guard: guardStage{st}, Permissions: permissionStage{st}, Killed: func() bool { return st.at("kill switch") }})
			reason := ask(s, who, "curl x")
			if (reason == "") != (denies == "nobody") {
				t.Errorf("answer %q", reason)
			}
			want := order[:min(i+1, len(order))]
			if denies == "hooks" {
				if _, err := os.Stat(seen); err != nil {
					t.Error("the hook did not run")
				}
				want = order[:3]
			}
			if diff := cmp.Diff(want, st.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func call(s *Server, who Asker, tool, input string) string {
	return s.check(context.Background(), who, wire.Request{Type: wire.ToolCheck, ToolName: tool, ToolInput: json.RawMessage(input)})
}

// F06: what the policy of the container says of flagged commands reaches the gate.
func TestAskFlaggedF06(t *testing.T) {
	for _, asks := range []bool{false, true} {
		h := &host{decide: func(_ context.Context, r gate.Request) gate.Verdict {
			if r.AskFlagged != asks {
				t.Errorf("the gate is told %v, the policy says %v", r.AskFlagged, asks)
			}
			return gate.Verdict{}
		}}
		who := inside("secret")
		who.AskFlagged = asks
		ask(New(h, quiet()), who, "make")
	}
}

// TestGuardK1K13: in a clean container and in every mode, with whatever rules are used; each hit is written with tool, rule and excerpt (K13).
func TestGuardK1K13(t *testing.T) {
	for _, mode := range []string{"observe", "enforce", "seal"} {
		who := inside()
		who.Mode = mode
		h := &host{}
		s := New(h, quiet())
		s.Use(Rules{})
		s.Use(Rules{Permissions: (*permission.Set)(nil)})
		for _, c := range []struct{ tool, input, rule, excerpt string }{
			{"powershell_exec", `{"script":"vssadmin delete shadows /all"}`, "shadow-copies", "vssadmin"}, {"Bash", `{"command":"rm -rf /"}`, "linux-delete", "rm -rf /"},
			{"Read", `{"file_path":"/etc/shadow"}`, "shadow-file", "/etc/shadow"}, {"container.exec", `{"command":["bash","-lc","mkfs.ext4 /dev/sda"]}`, "linux-disk", "mkfs.ext4"},
			{"mcp__any__thing", `{"deep":[{"path":"/root/.ssh/id_rsa"}]}`, "ssh-keys", "id_rsa"},
		} {
			h.denied, h.told = nil, nil
			if reason := call(s, who, c.tool, c.input); !strings.Contains(reason, "rule "+c.rule) {
				t.Errorf("%s: %s: %q", mode, c.tool, reason)
			}
			if len(h.denied) != 1 || h.denied[0].Rule != c.rule || h.denied[0].Tool != c.tool || h.denied[0].Decision != "deny" {
				t.Errorf("%s: written %+v", mode, h.denied)
			}
			if told := strings.Join(h.told, "; "); !strings.HasPrefix(told, who.Container.ID+" ") || !strings.Contains(told, c.excerpt) {
				t.Errorf("%s: %s is told as %q, want who and %s", mode, c.tool, told, c.excerpt)
			}
		}
		if reason := ask(s, who, "dd if=/dev/zero of=/dev/sda"); !strings.Contains(reason, "linux-disk") {
			t.Errorf("%s: %q", mode, reason)
		}
	}
}

// TestKillSwitchK10: every tool that changes something is off at once and on again; reading goes on, and the guard stays.
func TestKillSwitchK10(t *testing.T) {
	on := false
	s := New(&host{}, quiet())
	s.Use(Rules{Killed: func() bool { return on }})
	for _, on = range []bool{false, true, false} {
		for tool, input := range map[string]string{"Bash": `{"command":"ls"}`, "Write": `{"file_path":"/work/a"}`, "fs_delete": `{"path":"/work/a"}`, "mcp__x__y": `{}`, "agent_update": `{"url":"https://github.com/a/b/releases/download/v1/c"}`} {
			if reason := call(s, inside(), tool, input); (reason == wire.Killed) != on {
				t.Errorf("on %v: %s: %q", on, tool, reason)
			}
		}
		if reason := call(s, inside(), "Read", `{"file_path":"/work/a"}`); reason != "" {
			t.Errorf("on %v: reading: %q", on, reason)
		}
		if reason := call(s, inside(), "Read", `{"file_path":"/etc/shadow"}`); !strings.Contains(reason, "shadow-file") {
			t.Errorf("on %v: the guard is off: %q", on, reason)
		}
	}
}

// TestKillSwitchF27 (F27): the names that agents give the sensor's own tools are theirs: recalling only reads and goes on, the vault is off and on again.
func TestKillSwitchF27(t *testing.T) {
	on := false
	s := New(&host{}, quiet())
	s.Use(Rules{Killed: func() bool { return on }})
	s.Offer(NewToolServer(ToolOptions{Rules: &rig{}, Logger: quiet()}))
	const fetch = `{"url":"https://example.com/","vault_auth_key":"gh","auth_scheme":"bearer","reason":"x"}`
	for _, on = range []bool{false, true, false} {
		for _, before := range []string{"", "mcp__weir__", "mcp__notes__", "mcp__plugin_a_weir__", "weir__", "mcp_weir_", "weir.", "weir/", "MCP__Weir__",
			"mcp.weir.", "mcp-weir-", "mcp/weir/", "mcp:weir:", "weir___", "functions.", "functions.mcp__weir__", "functions.weir.", "mcp__weir-hook__"} {
			if reason := call(s, inside(), before+"LocalMemoryRecall", `{"action":"list_stores"}`); reason != "" {
				t.Errorf("on %v: %sLocalMemoryRecall: %q", on, before, reason)
			}
			if reason := call(s, inside(), before+"VaultHttpFetch", fetch); (reason == wire.Killed) != on || !on && reason != "" {
				t.Errorf("on %v: %sVaultHttpFetch: %q", on, before, reason)
			}
		}
		for _, reads := range []string{"LSP", "ListMcpResourcesTool", "CronList", "web_search", "WebSearch", "search_file_content", "list_directory", "request_user_input"} {
			if reason := call(s, inside(), reads, `{}`); reason != "" {
				t.Errorf("on %v: %s: %q", on, reads, reason)
			}
		}
		for _, other := range []string{"mcp__weir__LocalMemoryRecallAll", "mcp__weir__xLocalMemoryRecall", "mcp__x__MyLocalMemoryRecall", "evil.LocalMemoryRecall", "mcp__LocalMemoryRecall", "weirLocalMemoryRecall", "xweir.LocalMemoryRecall",
			"weir.x.LocalMemoryRecall", "x.weir.LocalMemoryRecall", "mcpweir_LocalMemoryRecall", "-LocalMemoryRecall", "functions_LocalMemoryRecall", "xfunctions.LocalMemoryRecall", "LocalMemoryRecall ", "wéir.LocalMemoryRecall", "\xffLocalMemoryRecall"} {
			if reason := call(s, inside(), other, `{"action":"list_stores"}`); (reason == wire.Killed) != on {
				t.Errorf("on %v: %s: %q", on, other, reason)
			}
		}
	}
}

// TestPermissionsP4: a denial of the rules denies, an ask puts the call before a person, whatever the tool.
func TestPermissionsP4(t *testing.T) {
	set, warnings, err := permission.Parse(permission.File{Name: "permissions.yaml", Data: []byte("deny: [WebSearch]\nask: [Read]\n")})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	var asked []gate.Request
	h := &host{decide: func(_ context.Context, r gate.Request) gate.Verdict {
		asked = append(asked, r)
		return gate.Verdict{Reason: gate.Denied}
	}}
	s := New(h, quiet())
	s.Use(Rules{Permissions: set})
	if reason := call(s, inside(), "WebSearch", `{}`); !strings.Contains(reason, "permission rules") || len(asked) != 0 {
		t.Errorf("denied by a rule: %q, %v", reason, asked)
	}
	if reason := call(s, inside(), "Read", `{"file_path":"/work/a"}`); reason == "" || len(asked) != 1 || len(h.confirmed) != 1 {
		t.Errorf("asked by a rule: %q, %+v", reason, h.confirmed)
	}
	if i := slices.IndexFunc(h.denied, func(d event.Decision) bool { return d.Reason == "permission" }); i < 0 {
		t.Errorf("written: %+v", h.denied)
	}
}

// TestConfirmK11: in a tainted container a person is asked about every call of a tool that changes something and is not known to stay inside, unless the policy or a rule says
// otherwise; about a tool that administers a machine, or that the policy lists, in a clean one too. The guard comes first, and no mode of the agent takes it away.
func TestConfirmK11(t *testing.T) {
	set, warnings, err := permission.Parse(permission.File{Name: "permissions.yaml", Data: []byte("allow: [NotebookEdit, 'Write(/work/notes.md)']\ndeny: [MultiEdit]\n")})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	yes, no := gate.Verdict{Decision: gate.Allow, Reason: gate.Approved}, gate.Verdict{Reason: gate.Denied}
	for _, c := range []struct {
		name, tool, input, agent, mode string
		confirm, unasked               []string
		clean                          bool
		says                           gate.Verdict
		asked                          bool
		reason                         string
	}{
		{name: "allowed", tool: "mcp__x__y", input: `{}`, says: yes, asked: true},
		{name: "denied", tool: "mcp__x__y", input: `{}`, says: no, asked: true, reason: "refused"},
		{name: "no approver", tool: "mcp__x__y", input: `{}`, says: gate.Verdict{Reason: gate.NoApprover}, asked: true, reason: "nobody"},
		{name: "PowerShell", tool: "powershell_exec", input: `{"script":"Get-Date"}`, clean: true, says: yes, asked: true},
		{name: "cmd", tool: "cmd_exec", input: `{"command":"dir"}`, clean: true, says: yes, asked: true},
		{name: "deleting", tool: "fs_delete", input: `{"path":"/work/a"}`, clean: true, says: yes, asked: true},
		{name: "writing", tool: "FS_Write", input: `{"path":"/work/a"}`, says: yes, asked: true},
		{name: "an update", tool: "agent_update", input: `{"url":"https://github.com/a/b/releases/download/v1/c"}`, clean: true, says: no, asked: true, reason: "refused"},
		{name: "a patch", tool: "apply_patch", input: `{"input":"x"}`, says: no},
		{name: "an edit", tool: "Edit", input: `{"file_path":"/work/a"}`, says: no},
		{name: "a clean container", tool: "mcp__x__y", input: `{}`, clean: true, says: no},
		{name: "a clean container, sealed", tool: "mcp__x__y", input: `{}`, clean: true, mode: "seal", says: no, asked: true, reason: "refused"},
		{name: "what nobody knows", tool: "WRITE", input: `{"file_path":"/work/a"}`, says: yes, asked: true},
		{name: "bypass mode", tool: "mcp__x__y", input: `{}`, agent: permission.ModeBypass, says: no, asked: true, reason: "refused"},
		{name: "bypass mode, by a rule too", tool: "fs_write", input: `{"path":"/work/a"}`, clean: true, agent: permission.ModeBypass, says: no, asked: true, reason: "refused"},
		{name: "no-ask mode", tool: "mcp__x__y", input: `{}`, agent: permission.ModeNoAsk, says: yes, reason: "permission rules"},
		{name: "the guard first", tool: "Write", input: `{"file_path":"/usr/local/bin/weir"}`, says: yes, reason: "sensor-files"},
		{name: "a rule denies", tool: "MultiEdit", input: `{"file_path":"/work/a"}`, says: yes, reason: "permission rules"},
		{name: "a rule allows", tool: "NotebookEdit", input: `{"notebook_path":"/work/a"}`, confirm: []string{"*"}, says: no},
		{name: "a rule allows this one", tool: "Write", input: `{"file_path":"/work/notes.md"}`, confirm: []string{"Write"}, says: no},
		{name: "reading", tool: "Read", input: `{"file_path":"/work/a"}`, confirm: []string{"*"}, says: no},
		{name: "the agent's own", tool: "TodoWrite", input: `{}`, confirm: []string{"*"}, says: no},
		{name: "a sub-agent", tool: "Task", input: `{}`, says: no},
		{name: "the cascade's", tool: "Bash", input: `{"command":"touch a"}`, confirm: []string{"*"}, says: no},
		{name: "the policy", tool: "mcp__docs__add", input: `{}`, unasked: []string{"Edit", "mcp__docs__*"}, says: no},
		{name: "the policy, of others", tool: "mcp__mail__send", input: `{}`, unasked: []string{"Edit", "mcp__docs__*"}, says: no, asked: true, reason: "refused"},
		{name: "the policy, of all", tool: "fs_write", input: `{"path":"/work/a"}`, confirm: []string{"*"}, unasked: []string{"*"}, says: no},
		{name: "the policy lists edits", tool: "Edit", input: `{"file_path":"/work/a"}`, clean: true, confirm: []string{"Write", "E*"}, says: no, asked: true, reason: "refused"},
		{name: "the policy lists what reads", tool: "Read", input: `{"file_path":"/work/a"}`, clean: true, confirm: []string{"Read"}, says: no, asked: true, reason: "refused"},
		{name: "the policy lists edits, in bypass mode", tool: "Write", input: `{"file_path":"/work/a"}`, clean: true, confirm: []string{"Write"}, agent: permission.ModeBypass, says: no, asked: true, reason: "refused"},
		{name: "observing", tool: "mcp__x__y", input: `{}`, mode: "observe", says: no},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			h := &host{confirm: func(_ context.Context, r gate.Request) gate.Verdict {
				if asked++; !strings.Contains(r.Command, c.tool) || !strings.Contains(r.Command, c.input) {
					t.Errorf("asked %q", r.Command)
				}
				return c.says
			}, decide: func(context.Context, gate.Request) gate.Verdict { return yes }}
			s := New(h, quiet())
			s.Use(Rules{Permissions: set, Killed: func() bool { return false }})
			who := inside("corruption")
			if c.clean {
				who = inside()
			}
			who.Confirm, who.Unasked = c.confirm, c.unasked
			if c.mode != "" {
				who.Mode = c.mode
			}
			reason := s.check(t.Context(), who, wire.Request{Type: wire.ToolCheck, ToolName: c.tool, ToolInput: json.RawMessage(c.input), PermissionMode: c.agent})
			if (reason == "") != (c.reason == "") || !strings.Contains(reason, c.reason) || (asked == 1) != c.asked || asked > 1 {
				t.Errorf("asked %d times, %q", asked, reason)
			}
		})
	}
}

// TestSymlinkK7: a link to what may not be read is that.
func TestSymlinkK7(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "notes")
	if err := os.Symlink("/etc/shadow", link); err != nil {
		t.Fatal(err)
	}
	s := New(&host{}, quiet())
	s.Use(Rules{Guard: toolguard.New(toolguard.Options{Names: toolguard.InstalledNames()})})
	if reason := call(s, inside(), "fs_read", `{"path":"`+link+`"}`); !strings.Contains(reason, "shadow-file") {
		t.Errorf("got %q", reason)
	}
	if reason := call(s, inside(), "fs_read", `{"path":"`+dir+`/other"}`); reason != "" {
		t.Errorf("got %q", reason)
	}
}

// ownTools notes the calls that it is told of.
type ownTools struct{ announced []string }

func (o *ownTools) Owns(tool string) bool {
	return permission.Canonical(tool) == permission.VaultHTTPFetch
}

func (o *ownTools) Announce(_ Asker, r wire.Request) string {
	o.announced = append(o.announced, r.ToolName+" "+string(r.ToolInput))
	return ""
}

func (*ownTools) Denied(Asker, wire.Request, string) {}

func (*ownTools) Call(context.Context, func() (Asker, error), wire.Request, func(string)) wire.CallAnswer {
	return wire.CallAnswer{}
}

// TestAnnouncedWasSeenG18P6: what is announced is the call that guard and hooks saw: a shell command that names a tool beside it announces nothing.
func TestAnnouncedWasSeenG18P6(t *testing.T) {
	const input = `{"url":"https://example.com/","vault_auth_key":"gh","auth_scheme":"bearer","reason":"x"}`
	for _, c := range []struct {
		name, kind, command string
		guard, hook         bool // has an objection to the tool
		want                []string
	}{
		{name: "a call", kind: wire.ToolCheck, want: []string{"mcp__weir__VaultHttpFetch " + input}},
		{name: "a command beside it", kind: wire.BashCheck, command: "true"},
		{name: "a command in a check of a tool", kind: wire.ToolCheck, command: "true", want: []string{"mcp__weir__VaultHttpFetch " + input}},
		{name: "the guard", kind: wire.ToolCheck, guard: true},
		{name: "the guard, past a command", kind: wire.BashCheck, command: "true", guard: true},
		{name: "a hook", kind: wire.ToolCheck, hook: true},
		{name: "a hook, past a command", kind: wire.BashCheck, command: "true", hook: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			who, own := inside("secret"), &ownTools{}
			if c.hook {
				who.Hooks = folder(t, map[string]string{"a": `if grep -q VaultHttpFetch; then echo '{"decision":"deny"}'; else echo '{}'; fi`})
			}
			s := New(&host{}, quiet())
			s.Offer(own)
			s.Use(Rules{Guard: guardOf(func(tool string, args json.RawMessage) bool {
				return c.guard && own.Owns(tool) && string(args) == input
			})})
			s.check(t.Context(), who, wire.Request{
				Type: c.kind, RequestID: "1", Command: c.command, ToolName: "mcp__weir__VaultHttpFetch", ToolInput: json.RawMessage(input),
			})
			if diff := cmp.Diff(c.want, own.announced); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// guardOf refuses what a function says.
type guardOf func(tool string, args json.RawMessage) bool

func (g guardOf) CheckIn(tool string, args json.RawMessage, _ func(string) ([]string, bool)) (toolguard.Hit, bool) {
	return toolguard.Hit{Rule: &toolguard.Rule{ID: "test", Refuses: "does it", Why: "Why.", Instead: "Do not."}}, g(tool, args)
}

// TestRulesF30: a rule about a file is held against where the call is made, and where the file leads.
func TestRulesF30(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(".env", filepath.Join(dir, "notes")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".env"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	set, warnings, err := permission.Parse(permission.File{Name: "permissions.yaml", Data: []byte("deny: ['Read(./.env)', 'Write(/etc/*)', 'Bash(rm:*)', 'mcp__mail__*']")})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	s := New(&host{}, quiet())
	s.Use(Rules{Permissions: set, Killed: func() bool { return false }})
	for _, c := range []struct {
		tool, input string
		denied      bool
	}{
		{"Read", `{"file_path":".env"}`, true}, {"Read", `{"file_path":"` + dir + `/x/../.env"}`, true}, {"Read", `{"file_path":"notes"}`, true}, {"Grep", `{"pattern":"x","path":"notes"}`, true}, {"Read", `{"file_path":"a"}`, false},
		{"Edit", `{"file_path":"/etc/hosts"}`, true}, {"Edit", `{"file_path":"` + dir + `/a"}`, false}, {"mcp__mail__send", `{}`, true}, {"Bash", `{"command":"ls && rm -rf x"}`, true}, {"Bash", `{"command":"cat notes"}`, true}, {"Bash", `{"command":"ls"}`, false},
	} {
		reason := s.check(t.Context(), inside(), wire.Request{Type: wire.ToolCheck, ToolName: c.tool, ToolInput: json.RawMessage(c.input), Dir: dir})
		if strings.Contains(reason, "permission rules") != c.denied || !c.denied && reason != "" {
			t.Errorf("%s %s: %q", c.tool, c.input, reason)
		}
	}
}
