package agenthook

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
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
