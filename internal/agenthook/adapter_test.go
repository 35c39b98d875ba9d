package agenthook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/bridge/wire"
)

// sensor answers on a socket as say does, and notes what it was asked.
func sensor(t testing.TB, say func(wire.Request) string) (environ []string, asked *[]wire.Request) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	asked = new([]wire.Request)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			var r wire.Request
			line, _ := bufio.NewReader(conn).ReadBytes('\n')
			if json.Unmarshal(line, &r) == nil {
				*asked = append(*asked, r)
			}
			io.WriteString(conn, say(r))
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return []string{"A=b", wire.Variable + "=" + path}, asked
}

func answer(decision, reason string) func(wire.Request) string {
	return func(r wire.Request) string {
		line, _ := json.Marshal(wire.Answer{RequestID: r.RequestID, Decision: decision, Reason: reason})
		return string(line) + "\n"
	}
}

func trusted(*net.UnixConn) error { return nil }

func run(t *testing.T, environ []string, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	w := World{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Environ: environ, Self: "weir-hook", trust: trusted}
	code = w.Main(context.Background(), append([]string{"weir-hook"}, args...))
	return code, out.String(), errs.String()
}

const claudeCall = `{"session_id":"x","transcript_path":"/t","cwd":"/w","permission_mode":"default","hook_event_name":"PreToolUse","tool_use_id":"toolu_1",`

// TestClaudeG19: what passes prints nothing; what does not is the documented JSON; nothing else has another exit code than 2.
func TestClaudeG19(t *testing.T) {
	yes, no := answer(wire.Allow, ""), answer(wire.Deny, "Denied: because.")
	for name, c := range map[string]struct {
		say    func(wire.Request) string
		in     string
		asked  bool
		code   int
		denied string
	}{
		"local":             {yes, claudeCall + `"tool_name":"Bash","tool_input":{"command":"ls | wc -l"}}`, true, 0, ""},
		"local, denied":     {no, claudeCall + `"tool_name":"Bash","tool_input":{"command":"ls | wc -l"}}`, true, 0, "Denied: because."},
		"local, no answer":  {func(wire.Request) string { return "" }, claudeCall + `"tool_name":"Bash","tool_input":{"command":"ls | wc -l"}}`, true, 0, ""},
		"allowed":           {yes, claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl a.example"}}`, true, 0, ""},
		"denied":            {no, claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl a.example"}}`, true, 0, "Denied: because."},
		"guarded, local":    {no, claudeCall + `"tool_name":"Bash","tool_input":{"command":"echo x > .git/hooks/y"}}`, true, 0, "Denied: because."},
		"other tool":        {no, claudeCall + `"tool_name":"mcp__browser__open","tool_input":{"url":"x"}}`, true, 0, "Denied: because."},
		"other tool, yes":   {yes, claudeCall + `"tool_name":"Read","tool_input":{"file_path":"x"}}`, true, 0, ""},
		"no command":        {yes, claudeCall + `"tool_name":"Bash","tool_input":{}}`, false, 0, "no command"},
		"no reason":         {answer(wire.Deny, ""), claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl x"}}`, true, 0, "without a reason"},
		"no decision":       {answer("", ""), claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl x"}}`, true, 0, "without a reason"},
		"garbage":           {func(wire.Request) string { return "allow\n" }, claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl x"}}`, true, 0, "cannot be read"},
		"another's answer":  {func(wire.Request) string { return `{"request_id":"7","decision":"allow"}` + "\n" }, claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl x"}}`, true, 0, "another question"},
		"an answer to none": {func(wire.Request) string { return `{"decision":"allow"}` + "\n" }, claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl x"}}`, true, 0, "another question"},
		"no answer":         {func(wire.Request) string { return "" }, claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl x"}}`, true, 0, "closed the connection"},
		"no answer, local":  {func(wire.Request) string { return "" }, claudeCall + `"tool_name":"Write","tool_input":{"content":"x"}}`, true, 0, ""},
		"another event":     {no, `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"curl"}}`, false, 0, ""},
		"no JSON":           {yes, `ls`, false, 2, ""},
		"empty":             {yes, ``, false, 2, ""},
		"no tool":           {yes, `{"hook_event_name":"PreToolUse"}`, false, 2, ""},
	} {
		for _, agent := range []string{"claude", "codex"} {
			t.Run(name+"/"+agent, func(t *testing.T) {
				environ, asked := sensor(t, c.say)
				code, stdout, stderr := run(t, environ, c.in, agent)
				if code != c.code || (code == 2) != strings.HasPrefix(stderr, "Denied: ") {
					t.Errorf("exit %d: %s", code, stderr)
				}
				if c.asked != (len(*asked) == 1) {
					t.Errorf("asked %+v", *asked)
				}
				if c.denied == "" {
					if stdout != "" {
						t.Errorf("printed %s", stdout)
					}
					return
				}
				var got hookOutput
				if err := json.Unmarshal([]byte(stdout), &got); err != nil {
					t.Fatalf("%q: %v", stdout, err)
				}
				if s := got.Specific; s.Event != "PreToolUse" || s.Decision != "deny" || !strings.Contains(s.Reason, c.denied) {
					t.Errorf("got %+v", s)
				}
			})
		}
	}
}

func TestRequest(t *testing.T) {
	environ, asked := sensor(t, answer(wire.Allow, ""))
	run(t, environ, claudeCall+`"tool_name":"Bash","tool_input":{"command":"curl x"}}`, "claude")
	run(t, environ, claudeCall+`"tool_name":"shell","tool_input":{"command":["bash","-lc","curl y"]}}`, "codex")
	run(t, environ, claudeCall+`"tool_name":"WebFetch","tool_input":{"url":"x"}}`, "claude")
	if len(*asked) != 3 {
		t.Fatalf("asked %+v", *asked)
	}
	a, b, c := (*asked)[0], (*asked)[1], (*asked)[2]
	if a.Type != wire.BashCheck || a.Command != "curl x" || a.PermissionMode != "default" || a.Dir != "/w" || a.RequestID == "" || a.RequestID == b.RequestID {
		t.Errorf("got %+v", a)
	}
	if b.Command != "curl y" || c.Type != wire.ToolCheck || c.ToolName != "WebFetch" || string(c.ToolInput) != `{"url":"x"}` {
		t.Errorf("got %+v, %+v", b, c)
	}
}

func TestGeneric(t *testing.T) {
	for in, want := range map[string]string{
		`{"tool_name":"Bash","tool_input":{"command":"ls"}}`:     `{"allowed":false,"reason":"Denied: no."}`,
		`{"tool_name":"Bash","tool_input":{"command":"curl x"}}`: `{"allowed":false,"reason":"Denied: no."}`,
		`{"tool_input":{}}`: `{"allowed":false,"reason":"Denied: the call names no tool."}`,
		`{`:                 `{"allowed":false,"reason":"Denied: the call cannot be read: standard input is not a JSON object with \"tool_name\" and \"tool_input\"."}`,
	} {
		environ, _ := sensor(t, answer(wire.Deny, "Denied: no."))
		if code, stdout, _ := run(t, environ, in, "generic"); code != 0 || strings.TrimSpace(stdout) != want {
			t.Errorf("%s: exit %d, %s", in, code, stdout)
		}
	}
}

// TestUntrusted: a socket of this very container is not believed, whatever it says.
func TestUntrusted(t *testing.T) {
	environ, _ := sensor(t, answer(wire.Allow, ""))
	var out bytes.Buffer
	w := World{Stdin: strings.NewReader(claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl x"}}`), Stdout: &out, Stderr: io.Discard, Environ: environ}
	if code := w.Main(context.Background(), []string{"weir-hook", "claude"}); code != 0 || !strings.Contains(out.String(), "not the sensor") {
		t.Errorf("exit %d: %s", code, out.String())
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		theirs, own string
		want        bool
	}{
		{"/", "/weir/g-1", false}, {"/weir/g-1", "/weir/g-1", true}, {"/weir/g-1/a", "/weir/g-1/b/c", true}, {"/weir/g-12", "/weir/g-1", false}, {"/system.slice/weir.service", "/weir/g-1", false},
		{"/", "/", true}, {"/x", "/", true}, {"/../weir.service", "/", false}, {"/..", "/", false}, {"/kube/p/c", "/kube/p/c", true}, {"/kube/p/d", "/kube/p/c", false},
	} {
		if got := within(c.theirs, container(c.own)); got != c.want {
			t.Errorf("%s in the container of %s: %v", c.theirs, c.own, got)
		}
	}
}

func TestShell(t *testing.T) {
	yes, no := answer(wire.Allow, ""), answer(wire.Deny, "Denied: no.")
	for _, c := range []struct {
		args []string
		say  func(wire.Request) string
		code int
		out  string
		ran  string
	}{
		{[]string{"-c", "ls"}, yes, 0, "", "bash -c ls"},
		{[]string{"-lc", "curl x", "name", "arg"}, yes, 0, "", "bash -lc curl x name arg"},
		{[]string{"-c", "-l", "curl x"}, yes, 0, "", "bash -c -l curl x"},
		{[]string{"-c", "curl x"}, no, 126, "Denied: no.\n", ""},
		{[]string{"-lc"}, yes, 2, "", ""},
		{[]string{"script.sh"}, yes, 2, "", ""},
		{[]string{"--rcfile", "x", "-c", "ls"}, yes, 2, "", ""},
		{[]string{"-ic", "ls"}, yes, 2, "", ""},
		{nil, yes, 2, "", ""},
	} {
		environ, _ := sensor(t, c.say)
		var out bytes.Buffer
		w := World{Stdout: &out, Stderr: io.Discard, Environ: environ, trust: trusted}
		ran := ""
		code := w.Shell(context.Background(), c.args, func(path string, argv, env []string) error {
			ran = strings.Join(argv, " ")
			return errors.New("this is where it becomes bash")
		})
		if ran != c.ran || out.String() != c.out || ran == "" && code != c.code {
			t.Errorf("%q: exit %d, ran %q, printed %q", c.args, code, ran, out.String())
		}
	}
}

// TestInstall: merging, a backup, idempotent, and uninstall gives back what was there.
func TestInstall(t *testing.T) {
	for name, before := range map[string]string{
		"none":      "",
		"empty":     "{}",
		"others":    `{"model":"x","hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"mine","timeout":5}]}],"Stop":[]},"permissions":{"deny":["Read(.env)"],"allow":["Bash(ls)"]},"n":12345678901234567890}`,
		"has fetch": `{"permissions":{"deny":["WebFetch"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, ".claude/settings.json")
			if before != "" {
				os.MkdirAll(filepath.Dir(path), 0o755)
				os.WriteFile(path, []byte(before), 0o640)
			}
			do := func(verb string) {
				t.Helper()
				var errs bytes.Buffer
				w := World{Stdout: io.Discard, Stderr: &errs, Home: home, Self: "/usr/bin/weir-hook"}
				if code := w.Main(context.Background(), []string{"weir-hook", verb, "claude"}); code != 0 {
					t.Fatalf("%s: exit %d: %s", verb, code, errs.String())
				}
			}
			do("install")
			once, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`"/usr/bin/weir-hook claude"`, `"WebFetch"`, `"timeout": 3660`, `"matcher": "*"`} {
				if strings.Count(string(once), want) != 1 {
					t.Errorf("%s stands %d times in %s", want, strings.Count(string(once), want), once)
				}
			}
			if name == "others" {
				for _, want := range []string{`"mine"`, `"Read(.env)"`, `"Bash(ls)"`, "12345678901234567890", `"Stop"`} {
					if !strings.Contains(string(once), want) {
						t.Errorf("%s is lost in %s", want, once)
					}
				}
				if strings.Index(string(once), "weir-hook") > strings.Index(string(once), `"mine"`) {
					t.Error("the hook is not first")
				}
			}
			do("install")
			if twice, _ := os.ReadFile(path); !bytes.Equal(once, twice) {
				t.Errorf("not idempotent: %s", twice)
			}
			do("uninstall")
			after, err := os.ReadFile(path)
			if before == "" && !os.IsNotExist(err) || before != "" && string(after) != before {
				t.Errorf("left behind: %s, %v", after, err)
			}
			do("uninstall")
		})
	}
}

// TestUninstallEdited: what the user changed meanwhile stays.
func TestUninstallEdited(t *testing.T) {
	home := t.TempDir()
	w := World{Stdout: io.Discard, Stderr: io.Discard, Home: home, Self: "weir hook"}
	w.Main(context.Background(), []string{"weir-hook", "install", "claude"})
	path := filepath.Join(home, ".claude/settings.json")
	data, _ := os.ReadFile(path)
	os.WriteFile(path, bytes.Replace(data, []byte("{"), []byte(`{"model":"mine",`), 1), 0o600)
	w.Main(context.Background(), []string{"weir-hook", "uninstall", "claude"})
	if after, _ := os.ReadFile(path); strings.Contains(string(after), "weir") || strings.Contains(string(after), "WebFetch") || !strings.Contains(string(after), "mine") {
		t.Errorf("left: %s", after)
	}
}

func TestInstallBad(t *testing.T) {
	for _, bad := range []string{"{", "[]", `{"hooks":[]}`, `{"hooks":{"PreToolUse":{}}}`, `{"permissions":{"deny":"x"}}`} {
		path := filepath.Join(t.TempDir(), "s.json")
		os.WriteFile(path, []byte(bad), 0o600)
		var errs bytes.Buffer
		w := World{Stderr: &errs, Self: "weir-hook"}
		if code := w.Main(context.Background(), []string{"weir-hook", "install", "claude", "--settings", path}); code != 1 || !strings.Contains(errs.String(), "nothing was changed") {
			t.Errorf("%s: exit %d: %s", bad, code, errs.String())
		}
		if after, _ := os.ReadFile(path); string(after) != bad {
			t.Errorf("%s became %s", bad, after)
		}
	}
}
