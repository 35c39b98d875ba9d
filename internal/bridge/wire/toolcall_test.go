package wire

import (
	"encoding/json"
	"testing"
)

func TestShell(t *testing.T) {
	for _, c := range []struct {
		tool, input, text string
		shell             bool
	}{
		{"Bash", `{"command":"ls -l","timeout":5}`, "ls -l", true},
		{"shell", `{"command":["bash","-lc","a | b"]}`, "a | b", true},
		{"shell", `{"command":["/bin/sh","-c","a"]}`, "a", true},
		{"shell", `{"command":["curl","-d","a b","it's"]}`, `curl -d 'a b' 'it'\''s'`, true},
		{"shell", `{"command":["bash","-c","a","b"]}`, "bash -c a b", true},
		{"exec_command", `{"cmd":"a"}`, "a", true},
		{"Bash", `{"command":"","cmd":"a"}`, "a", true},
		{"Bash", `{"command":"rm -rf /","Command":"ls"}`, "rm -rf /", true},
		{"Bash", `{"Command":"ls","command":"rm -rf /","COMMAND":"ls"}`, "rm -rf /", true},
		{"Bash", `{"Command":"ls"}`, "", true},
		{"exec_command", `{"cmd":"rm -rf /","CMD":"ls"}`, "rm -rf /", true},
		{"exec_command", `{"cmd":"rm -rf /","command":"ls"}`, "", true}, // which of them it runs is the tool's own
		{"Bash", `{"command":"ls","cmd":["rm","-rf","/"]}`, "", true},
		{"shell", `{"command":[],"cmd":"ls"}`, "ls", true},
		{"Bash", `{"command":5}`, "", true},
		{"Bash", `{"command":[]}`, "", true},
		{"Bash", `5`, "", true},
		{"Bash", ``, "", true},
		{"Read", `{"command":"ls"}`, "", false},
	} {
		text, ok := ShellText(c.tool, json.RawMessage(c.input))
		if text != c.text || ok != c.shell {
			t.Errorf("%s %s: %q, %v", c.tool, c.input, text, ok)
		}
	}
}

func TestLocal(t *testing.T) {
	for tool, want := range map[string]bool{"Read": true, "Bash": false, "WebFetch": false, "WebSearch": false, "mcp__browser__open": false, "": false} {
		if IsLocal(tool) != want {
			t.Errorf("%s: %v", tool, !want)
		}
	}
}
