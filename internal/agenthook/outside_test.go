package agenthook

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestF42Outside: who installs the hook is told what it does outside a guard, and there its denial says what to do; help is help (F42).
func TestF42Outside(t *testing.T) {
	home := t.TempDir()
	var out, said bytes.Buffer
	w := World{Stdout: &out, Stderr: &said, Home: home, Self: "weir-hook", Environ: []string{"WEIR_BRIDGE=" + filepath.Join(home, "none")}}
	if code := w.Main(t.Context(), []string{"weir-hook", "install", "claude"}); code != 0 {
		t.Fatalf("exit %d: %s", code, said.String())
	}
	for _, want := range []string{"outside a guarded container", "weir guard", "weir-hook uninstall claude"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("install says %q, without %q", said.String(), want)
		}
	}
	w.Stdin = strings.NewReader(claudeCall + `"tool_name":"Bash","tool_input":{"command":"curl http://192.0.2.1/"}}`)
	if code := w.Main(t.Context(), []string{"weir-hook", "claude"}); code != 0 || !strings.Contains(out.String(), "has to be started with weir guard, or its hook taken out with weir-hook uninstall") {
		t.Errorf("exit %d: %s", code, out.String())
	}
	for _, line := range []string{"help", "--help", "-h", "install --help", "install claude -h", "uninstall --help", "mcp --help", "claude --help"} {
		out.Reset()
		w.Stdin = io.MultiReader()
		if code := w.Main(t.Context(), append([]string{"weir-hook"}, strings.Fields(line)...)); code != 0 || !strings.Contains(out.String(), "usage: weir-hook") {
			t.Errorf("%s: exit %d: %s", line, code, out.String())
		}
	}
}

// TestF42Settings: settings that cannot be kept whole stay as they are, whichever way they are none, and nothing waits for them (F42).
func TestF42Settings(t *testing.T) {
	for name, text := range map[string]string{
		"null": "null", "a list": "[]", "a text": `"x"`, "a number": "7", "two": `{"a":1}{"b":2}`, "more behind it": `{"a":1} x`, "a comment": "// mine\n{}", "a comma": `{"a":1,}`, "a byte order mark": "\ufeff{}", "half": `{"a":`, "a NUL": "{}\x00", "not UTF-16": "{\x00}\x00",
		"hooks are a list": `{"hooks":[]}`, "hooks are a text": `{"hooks":"x"}`, "a list is an object": `{"hooks":{"PreToolUse":{}}}`, "denials are a text": `{"permissions":{"deny":"WebFetch"}}`, "permissions are null": `{"permissions":[null]}`,
	} {
		file := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"install", "uninstall"} {
			var said bytes.Buffer
			code := World{Stdout: io.Discard, Stderr: &said, Self: "weir-hook"}.Main(t.Context(), []string{"weir-hook", verb, "claude", "--settings", file})
			after, err := os.ReadFile(file)
			if verb == "install" && code == 0 || err != nil || string(after) != text || strings.Count(said.String(), "\n") != 1 || strings.Contains(said.String(), "invalid character") || strings.Contains(said.String(), "Go value") {
				t.Errorf("%s, %s: exit %d, %q, %v: %s", name, verb, code, after, err, said.String())
			}
		}
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{fifo, "/dev/zero", t.TempDir()} { // none of these holds anybody up
		World{Stdout: io.Discard, Stderr: io.Discard, Self: "weir-hook"}.Main(t.Context(), []string{"weir-hook", "uninstall", "claude", "--settings", file})
	}
	if code := (World{Stdout: io.Discard, Stderr: io.Discard, Self: "weir-hook"}).Main(t.Context(), []string{"weir-hook", "install", "claude", "--settings", "/dev/zero"}); code == 0 {
		t.Error("a device has settings now")
	}
}
