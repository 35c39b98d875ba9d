package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/policy"
)

// transcript is what a new user's first hour looks like: read it as one before you change it (UPDATE_TRANSCRIPT=1 writes it anew).
const transcript = "../../test/firsthour/transcript.txt"

// brokenPolicies are those of the first hour: one mistake each, of the kinds that people make.
var brokenPolicies = []string{
	"", "# nothing yet\n", "mode\n", "- mode: seal\n", "guard:\n\tparents: [/a]\n", "guard:\n  parents: [/a]\n cgroups: []\n", "guard:\n  parents: [/a\n", "guard: {parents: [/a}\n",
	"mode: \"seal\nhold: true\n", "mode: seal: now\n", "mode seal\n", "hold: true\nmode seal\n", "allow: [{prefix: ::1}]\n", "allow:\n- name: *.example.org\n", "allow_unix_sockets: [@bus]\n", "mode: seal\n---\nmode: observe\n",
	"mode: &m seal\n", "mdoe: seal\n", "Mode: seal\n", "mode: seal\nmode: seal\n", "mode: enforced\n", "mode: off\n", "mode:\n", "hold: yes\n", "version: 2\n", "guard:\n  parnets: [/a]\n",
	"guard:\n  parents: /a\n", "guard:\n  parents: [a]\n", "guard:\n  parents: [/]\n", "guard:\n  parents: [/sys/fs/cgroup/a]\n", "guard:\n  parents: [session-3.scope]\n", "allow: [10.0.0.0/8]\n",
	"allow:\n- prefix: 10.1.2.3/8\n", "allow:\n- prefix: example.org\n", "allow:\n- {prefix: 10.0.0.0/8, ports: https}\n", "grant: {seconds: 5m}\n", "grant: {bytes: 64MB}\n",
	"taint:\n  secret_files: [.env]\n", "taint:\n  initial: [secrets]\n", "events: {file: events.jsonl}\n", "cop: {reviewer: claude}\n", "cop: {reviewer: anthropic}\n",
	"metrics: {listen: 9464}\n", "metrics: {listen: [::1]:9464}\n", "metrics: {listen: '0.0.0.0:9464'}\n", "mode: seal\n# \xff\n",
}

// brokenPolicies2 are of further kinds (F43): what an editor or another system leaves in a file, what YAML can do and a policy cannot, numbers and
// networks that are nearly right, and secrets that were written where their file's name belongs.
var brokenPolicies2 = []string{
	"allow:\n  -\tprefix: 10.0.0.0/8\n", "hold: true\n\t# later\nmode: seal\n", "guard: &g\n  parents: [/a]\n", "mode: *m\n", "guard:\n  <<: {parents: [/a]}\n", "guard:\n  parents: [/a]\n  parents: [/b]\n",
	"mode: seal\n\"mode\": seal\n", "mode: {a: b}\n", "hold: 1\n", "hold: \"true\"\n", "version: \"1\"\n", "version: 1.0\n", "approval_timeout: 99999999999999999999999999\n", "approval_timeout: 5.5\n", "approval_timeout: 0x10\n",
	"approval_timeout: -5\n", "approval_timeout: \"5\"\n", "grant: {seconds: .nan}\n", "grant: {bytes: -1MiB}\n", "grant: {bytes: 99999999999GiB}\n", "mode: se\x00al\n", "mode: seal\n\ufeffhold: true\n", "\xff\xfem\x00o\x00d\x00e\x00",
	"mode: sael\r\nhold: tru\r\n", "guard:\r\n  parents: [/a\r\n", "notify:\n  callback:\n    lisen: 127.0.0.1:1\n", "taint:\n  tools:\n  - name: x\n    tainted: [secret]\n",
	"allow:\n- prefix: '::ffff:10.1.2.3/104'\n", "allow:\n- prefix: 'fe80::1%eth0'\n", "allow:\n- prefix: 10.0.0.0/33\n", "allow:\n- prefix: 010.0.0.0/8\n", "allow:\n- prefix: 10.0.0.0/255.0.0.0\n", "allow:\n- ports: 443\n",
	"allow:\n- {prefix: 10.0.0.0/8, ports: 9-5}\n", "allow:\n- \n", "allow:\n- {prefix: 10.0.0.0/8, ports: [1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33]}\n", "allow:\n- name: 'ex ample.org'\n",
	"allow:\n- name: 10.0.0.1\n", "allow:\n- name: https://example.org/\n", "taint:\n  trusted_networks: [example.org]\n", "taint:\n  trusted_networks: [10.0.0.1/8]\n", "guard:\n  parents: [/a/../b]\n", "guard:\n  parents: [/a, /a/]\n",
	"guard:\n  parents: [/a]\n  cgroups: [/a/b]\n", "guard:\n  parents: [/a/b]\n  cgroups: [/a]\n", "guard:\n  cgroups: [/a/b, /a]\n", "guard:\n  parents: [a-b.slice]\n  cgroups: [/a.slice/a-b.slice/c]\n",
	"guard:\n  parents: [\"/a\\q\"]\n", "mode: seal\n...\nhold: true\n", "%FOO bar\n---\nmode: seal\n", "guard: !include other.yaml\n", "include: other.yaml\n", "~\n", "mode: " + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "\n",
	"? [a, b]\n: seal\n", ": seal\n", "mode = seal\n", "{\"mode\": \"seal\",, \"hold\": true}", "{\"mode\": \"seal\"} x\n", "mode: |\n  seal\n", "mode: \"seal\" now\n", "mode: 'se'al'\n", "mode: - seal\n", "mode: “seal”\n", "guard:\n\u00a0\u00a0parents: [/a]\n",
	"cop: {reviewer: openai, model: m, key: sk-proj-1234567890abcdefghij}\n", "cop: {reviewer: anthropic, key_file: hunter2-hunter2}\n", "cop: {reviewer: anthropic, key_env: hunter2-hunter2}\n", "cop: sk-proj-1234567890abcdefghij\n",
	"vault: {proxy: 'http://user:hunter2-hunter2@10.0.0.1:3128'}\n", "metrics: {listen: '0.0.0.0:9464', token_file: hunter2-hunter2}\n", "notify: {url: 'https://x.example/', key_file: hunter2-hunter2}\n", "notify: {form: slack, url_file: hunter2-hunter2}\n",
	"allow_unix_sockets: ['Bearer sk-proj-1234567890abcdefghij']\n", "mode: `sk-proj-1234567890abcdefghij`\n",
}

// TestFirstHour compares what a new user sees who follows README and start.md without a sensor, mistypes each command, writes broken policies, is not
// root and has no disk.
func TestFirstHour(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"garbage": "this is no event\n", "empty": "", "good.yaml": "guard: {parents: [/no-such-agents]}\nallow:\n- prefix: 10.0.0.0/8\n- prefix: 10.1.0.0/16\n", "note.md": "milk\n",
		"rules.yaml": "permissions:\n  allow: [VaultHttpFetch]\n", "token": "aaaa", "tab.yaml": "deny:\n\t- Bash\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	quoted := regexp.MustCompile(`"[^"]*"|\S+`)
	versions := regexp.MustCompile(`weir \S+ \(commit [^)]*\)|"abi":\d+,"commit":"[^"]*","go":"[^"]*","version":"[^"]*"`)
	say := func(c caller, shown string, args ...string) {
		out, errs, code := c.says(t, args...)
		who := "$"
		if c.euid == 0 {
			who = "#"
		}
		fmt.Fprintf(&b, "%s %s\n", who, strings.ReplaceAll(shown, dir, "$DIR"))
		text := out
		for line := range strings.Lines(errs) {
			text += "! " + line
		}
		b.WriteString(versions.ReplaceAllString(strings.ReplaceAll(text, dir, "$DIR"), "VERSION"))
		fmt.Fprintf(&b, "exit %d\n\n", code)
	}
	part := func(text string) { fmt.Fprintf(&b, "== %s\n\n", text) }
	lines := func(euid int, lines ...string) {
		for _, line := range lines {
			line = strings.ReplaceAll(line, "DIR", dir)
			say(caller{euid: euid, runDir: dir + "/run"}, "weir "+line, strings.Fields(line)...)
		}
	}

	b.WriteString("# A new user's first hour, without a sensor. $ is a plain user, # is root; ! begins what is on standard error. The test TestFirstHour writes and compares it.\n\n")
	part("the commands of the README and of docs/start.md, without root and without a sensor")
	var documents []byte
	for _, file := range []string{"../../README.md", "../../docs/start.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, text...)
	}
	for _, block := range strings.Split(string(documents), "\n```")[1:] {
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "sudo "), "  ")
			words := quoted.FindAllString(line, -1)
			for i := range words {
				words[i] = strings.Trim(words[i], `"`)
			}
			if len(words) < 2 || words[0] != "weir" || words[1] == "doctor" { // which says what this machine has
				continue
			}
			say(caller{euid: 1000, runDir: dir + "/run"}, line, words[1:]...)
		}
	}

	part("looking around")
	lines(1000, "--version", "version --json", "nonsense", "stauts", "grants --help", "help grants", "policy nonsense --help", "--nonsense", "status --help")

	part("each command with a flag that there is none of")
	for _, c := range everyCommand(new(system).root()) {
		lines(0, strings.Join(c, " ")+" --zz")
	}

	part("wrong arguments, and nothing there")
	lines(0,
		"status x", "status --json", "health", "health --live x", "containers x", "containers", "events x", "events --kind execs", "events --since yesterday", "events -f --file x", "events --file DIR/none",
		"events --file DIR/garbage", "events --file DIR", "taint", "taint web", "taint web secrt", "taint web secret", "taint --cgroup agents/one secret", "untaint web secret", "untaint web secret --why x",
		"pending x", "pending --most 3", "pending --ended --most 0", "pending", "approve", "approve ID --scope x", "approve ID --scope 0", "approve ID", "deny", "deny ID", "mode", "mode seall --why x", "mode seal", "mode seal --why x",
		"guard", "guard --taint secrets -- true", "guard --policy DIR/none -- true", "guard --policy DIR/garbage -- true", "guard --preset vim -- true", "guard --user no-such-user -- true", "guard -- no-such-program",
		"guard --cgroup no-such.scope", "guard --cgroup no-such.scope -- true", "guard --explain", "run now", "watch now", "detach now",
		"policy", "policy validate", "policy validate DIR/none", "policy validate DIR", "policy validate DIR/good.yaml", "policy validate DIR/good.yaml --json", "policy validate DIR/garbage --json", "policy validate a b",
		"policy replay", "policy replay DIR/garbage", "policy replay DIR/garbage --policy DIR/good.yaml", "policy replay DIR/empty --policy DIR/good.yaml", "policy replay DIR/none --policy DIR/good.yaml", "policy replay DIR --policy DIR/good.yaml", "policy suggest DIR/garbage", "policy suggest DIR/empty",
		"permissions lint", "permissions lint DIR/none", "permissions lint DIR", "permissions lint DIR/garbage", "permissions lint DIR/tab.yaml", "permissions lint DIR/tab.yaml --json",
		"vault list --vault DIR/none", "vault set", "vault set k --vault DIR/v --key-file DIR/token", "vault set k --vault DIR/v --ca DIR/none --key-file DIR/token", "vault bind k --vault DIR/none", "vault rm --vault DIR/none", "vault test k --vault DIR/none", "vault test k nonsense --vault DIR/none",
		"memory import", "memory import s", "memory import s DIR/none --dir DIR/m", "memory import a/b DIR/note.md --dir DIR/m", "memory import s DIR --dir DIR/m", "memory list none --dir DIR/m", "memory show s --dir DIR/m", "memory show s k --dir DIR/m", "memory rm s --dir DIR/m",
		"explain", "explain ls", "explain --table x", "classify", "classify --jsonl x", "toolcheck", "toolcheck --jsonl --rules DIR/none", "kill-switch maybe", "kill-switch on x", "kill-switch status --file DIR/none", "kill-switch status --file DIR/garbage/x", "guard --policy= -- true", "guard --cgroup=", "guard --taint= -- true", "taint --cgroup= secret", "events --file=", "events --kind=", "run --policy=", "kill-switch on --file=", "completion bash zsh", "--json=maybe status",
		"run --degraded=maybe", "approve ID --for forever", "approve ID --for 25h", "approve ID --for 5m --who host", "top x", "top", "console --listen 0.0.0.0:1", "console", "why", "why web", "approvals", "revoke", "revoke ID", "mcp --json",
		"hook", "hook nonsense", "hook install", "hook install vim", "shell", "shell --zz", "mcp", "node-ready", "detach --daemonset x", "completion tcsh",
	)
	say(caller{stdin: "nonsense\n{\"id\":1}\n{\"id\":2,\"command\":7}\n"}, "weir classify --jsonl < lines", "classify", "--jsonl")
	say(caller{stdin: "mode: sael\n"}, "weir policy validate - < policy", "policy", "validate", "-")
	say(caller{stdin: "control: {answer: [no-such-group]}\n"}, "weir policy validate - < policy", "policy", "validate", "-")
	say(caller{stdin: "mode: sael\n"}, "weir policy validate - --json < policy", "policy", "validate", "-", "--json")
	say(caller{stdin: "deny: ['Bash(rm:*)', 'Raed(x)']\n"}, "weir permissions lint - < rules", "permissions", "lint", "-")
	say(caller{stdin: "denied: [Bash]\n"}, "weir permissions lint - < rules", "permissions", "lint", "-")

	part("no rights")
	lines(1000, "run", "run --json", "watch", "guard -- true", "guard --cgroup web.scope", "detach", "kill-switch on", "kill-switch on --json")

	part("no disk")
	for _, line := range []string{"version", "version --json", "policy validate DIR/good.yaml"} {
		line = strings.ReplaceAll(line, "DIR", dir)
		say(caller{stdout: "/dev/full"}, "weir "+line+" > /dev/full", strings.Fields(line)...)
	}
	lines(0, "memory import s DIR/note.md --dir DIR/token/m", "vault set k --vault DIR/token/v --key-file DIR/token/k", "kill-switch on --file DIR/token/k")

	part("broken policies")
	for _, text := range append(brokenPolicies, brokenPolicies2...) {
		for line := range strings.Lines(text) {
			b.WriteString("| " + event.Visible(strings.TrimSuffix(line, "\n")) + "\n")
		}
		say(caller{stdin: text}, "weir policy validate -", "policy", "validate", "-")
	}

	part("files of other kinds")
	for name, make := range map[string]func(string) error{
		"fifo": func(p string) error { return unix.Mkfifo(p, 0o600) }, "link": func(p string) error { return os.Symlink(filepath.Join(dir, "bad.yaml"), p) }, "loop": func(p string) error { return os.Symlink(p, p) },
		"bad.yaml": func(p string) error { return os.WriteFile(p, []byte("mode: sael\n"), 0o600) }, "large": func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte("#"), policy.MaxFile+1), 0o600) },
		"socket": func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o600, 0) }, "two\nlines": func(p string) error { return os.WriteFile(p, []byte("mode: sael\n"), 0o600) },
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	lines(0, "policy validate DIR/link", "policy validate DIR/loop", "policy validate DIR/large", "policy validate DIR/garbage/x", "policy validate /dev/null")
	for _, odd := range []string{"fifo", "socket", "/dev/zero"} {
		file := odd
		if odd[0] != '/' {
			file = "DIR/" + odd
		}
		lines(0, "policy validate "+file, "guard --policy "+file+" -- true", "policy replay "+file+" --policy DIR/good.yaml", "policy replay DIR/garbage --policy "+file, "events --file "+file,
			"permissions lint "+file, "toolcheck --jsonl --rules "+file, "memory import s "+file+" --dir DIR/m", "vault set k --vault DIR/v --key-file DIR/k --ca "+file)
	}
	for _, name := range []string{"", dir + "/two\nlines", dir + "/no\nfile"} {
		say(caller{}, "weir policy validate "+strconv.Quote(name), "policy", "validate", name)
	}

	got := b.String()
	said := regexp.MustCompile(`(?m)^\| .*$`).ReplaceAllString(got, "") // without what was written
	for _, raw := range []string{"no such file or directory", "permission denied", "is a directory\n", "invalid character", "unexpected end of JSON", "yaml: ", "strconv", "invalid Prefix", "hunter2", "sk-proj", "dial unix", "json:", "%!", "panic", "<nil>", "goroutine"} {
		if i := strings.Index(said, raw); i >= 0 {
			t.Errorf("the user sees %q: …%s…", raw, said[max(0, i-200):min(len(said), i+100)])
		}
	}
	if os.Getenv("UPDATE_TRANSCRIPT") != "" {
		if err := os.WriteFile(transcript, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("want - got +; UPDATE_TRANSCRIPT=1 writes it anew:\n%s", diff)
	}
}
