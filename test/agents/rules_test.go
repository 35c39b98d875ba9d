package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/permission"
)

// TestRulesF30: rules mean what they mean in the installed Claude Code. It and a Set of the same rules decide on the same calls; stricter are those
// that Weir denies and Claude Code does not.
func TestRulesF30(t *testing.T) {
	program := agent(t, "claude-*/package/claude")
	if program == "" {
		return
	}
	f := newFixture(t)
	bash := func(command string) call {
		return call{Tool: "Bash", Input: input(obj{"command": command, "description": "x"})}
	}
	read := func(path string) call { return call{Tool: "Read", Input: input(obj{"file_path": path})} }
	write := func(path string) call {
		return call{Tool: "Write", Input: input(obj{"file_path": path, "content": "x"})}
	}
	abs := filepath.Join(f.work, "abs")
	for _, file := range []string{".env", "sub/.env", "abs/a", "abs/sub/b", "a.pem", "sub/b.pem", "plain", "a/secrets/x"} {
		path := filepath.Join(f.work, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rules := map[string][]string{
		"deny": {
			"Bash(echo run test:*)", "Bash(printf *)", "Bash(basename*)", "Bash(true)",
			"Read(./.env)", "Read(/" + abs + "/**)", "Read(*.pem)", "Read(**/secrets/*)", "Edit(./src/**)",
			"WebFetch(domain:example.org)", "WebFetch(domain:*.example.com)",
		},
		"allow": {"Bash", "Read", "Write", "Edit", "WebFetch"},
	}
	data := input(rules)
	set, warnings, err := permission.Parse(permission.File{Name: "settings.json", Data: data})
	if err != nil || permission.Dropped(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	fetch := func(url string) call { return call{Tool: "WebFetch", Input: input(obj{"url": url, "prompt": "x"})} }
	stricter := map[string]bool{"echo $(printf x)": true}
	calls := []call{
		bash("echo run test"), bash("echo run test -- --watch"), bash("echo run tests"), bash("echo run test && echo more"), bash("echo first; echo run test a"),
		bash("printf x"), bash("printf"), bash("echo 'printf x'"), bash("echo a | printf x"), bash("timeout 5 printf x"), bash("LC_ALL=C printf x"), bash("echo $(printf x)"),
		bash("basename /a"), bash("dirname /a/b"), bash("true"), bash("true && echo more"),
		read(filepath.Join(f.work, ".env")), read(filepath.Join(f.work, "sub/.env")), read(filepath.Join(f.work, "sub/../.env")), read(filepath.Join(abs, "a")), read(filepath.Join(abs, "sub/b")),
		read(filepath.Join(f.work, "a.pem")), read(filepath.Join(f.work, "sub/b.pem")), read(filepath.Join(f.work, "a/secrets/x")), read(filepath.Join(f.work, "plain")),
		write(filepath.Join(f.work, "src/a/b.txt")), write(filepath.Join(f.work, "other/b.txt")),
		fetch("https://example.org/a"), fetch("https://EXAMPLE.org/a"), fetch("https://sub.example.org/a"), fetch("https://a.b.example.com/"), fetch("https://example.com/"), fetch("https://example.net/?u=example.org"),
	}
	settings := string(input(obj{"permissions": json.RawMessage(data)}))
	r := f.play(t, []string{program, "--settings", settings, "-p", "go"}, claudeEnv, calls)
	place := permission.Place{Dir: f.work}
	for _, c := range r.Calls {
		theirs := strings.Contains(c.Result, "ermission") || strings.Contains(c.Result, "denied access to") // in one of three sentences
		ours := set.Check(place.Call(c.Tool, c.Input), "").Decision == permission.Denied
		var in struct{ Command string }
		if err := json.Unmarshal(c.Input, &in); err != nil {
			t.Fatal(err)
		}
		if c.Result == "" || theirs != ours && !(ours && stricter[in.Command]) {
			t.Errorf("%s %s: Claude Code denies it: %v, Weir: %v; the model was told %q", c.Tool, c.Input, theirs, ours, c.Result)
		}
	}
}
