package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/bridge/wire"
)

// folder makes a hooks folder; a script without a first line gets one.
func folder(t *testing.T, hooks map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range hooks {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func ask(s *Server, who Asker, command string) string {
	return s.check(context.Background(), who, wire.Request{Type: wire.BashCheck, Command: command})
}

const none = "echo '{}'"

func denying(reason string) string { return `echo '{"decision":"deny","reason":"` + reason + `"}'` }

// TestChainG18: by name, the first deny wins; a broken hook denies in a tainted container and not in a clean one.
func TestChainG18(t *testing.T) {
	for name, c := range map[string]struct {
		hooks   map[string]string
		tainted string // what the denial says; empty: it passes
		clean   string
	}{
		"none":             {nil, "", ""},
		"no objection":     {map[string]string{"a": none}, "", ""},
		"an allow":         {map[string]string{"a": `echo '{"decision":"allow"}'`}, "", ""},
		"the first":        {map[string]string{"10-a": none, "20-b": denying("second"), "30-c": denying("third")}, "second", "second"},
		"exit code":        {map[string]string{"a": "exit 1"}, "(a) does not work", ""},
		"no JSON":          {map[string]string{"a": "echo no"}, "(a) does not work", ""},
		"silent":           {map[string]string{"a": ":"}, "(a) does not work", ""},
		"unknown decision": {map[string]string{"a": `echo '{"decision":"maybe"}'`}, "(a) does not work", ""},
		"unknown key":      {map[string]string{"a": `echo '{"decide":"deny"}'`}, "(a) does not work", ""},
		"two answers":      {map[string]string{"a": "echo '{}{}'"}, "(a) does not work", ""},
		"a bracket more":   {map[string]string{"a": "echo '{}}'"}, "(a) does not work", ""},
		"endless":          {map[string]string{"a": "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"}, "(a) does not work", ""},
		"broken, deny":     {map[string]string{"a": "exit 1", "b": denying("later")}, "(a) does not work", "later"},
		"reads its input":  {map[string]string{"a": `grep -q '"event":"before_tool_use","tool_name":"Bash","tool_input":{"command":"curl x"}' && ` + denying("seen") + " || " + none}, "seen", "seen"},
		"no secrets":       {map[string]string{"a": `test -z "$SECRET" && ` + none + " || " + denying("leak")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SECRET", "x")
			for _, bits := range [][]string{nil, {"secret"}} {
				h, want := &host{}, c.clean
				if bits != nil {
					want = c.tainted
				}
				who := inside(bits...)
				who.Hooks = folder(t, c.hooks)
				got := ask(New(h, quiet()), who, "curl x")
				if (got == "") != (want == "") || !strings.Contains(got, want) {
					t.Errorf("tainted %v: got %q, %+v", bits, got, h.denied)
				}
				if (got != "") != (len(h.denied) == 1) {
					t.Errorf("tainted %v: written %+v", bits, h.denied)
				}
			}
		})
	}
}

// TestChainOrder: what a built-in denies is not shown to a user's hook, which overturns nothing.
func TestChainOrder(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	who := inside("secret")
	who.Hooks = folder(t, map[string]string{"a": "touch " + seen + `; echo '{"decision":"allow"}'`})
	s := New(&host{}, quiet())
	if ask(s, who, "git push -f origin main") == "" {
		t.Error("it passes")
	}
	if r := s.check(context.Background(), who, wire.Request{Type: wire.ToolCheck, ToolName: "WebFetch", ToolInput: json.RawMessage(`{}`)}); r == "" {
		t.Error("WebFetch passes")
	}
	if _, err := os.Stat(seen); err == nil {
		t.Error("the hook ran")
	}
}

// TestHookFiles: only executables, by name; a folder that others can change is broken.
func TestHookFiles(t *testing.T) {
	dir := folder(t, map[string]string{"20-b": none, "10-a": none, ".hidden": none})
	os.WriteFile(filepath.Join(dir, "README"), []byte("x"), 0o644)
	os.Mkdir(filepath.Join(dir, "dir"), 0o755)
	list, err := hookFiles(dir)
	if err != nil || len(list) != 2 || filepath.Base(list[0]) != "10-a" {
		t.Errorf("got %v, %v", list, err)
	}
	if err := os.Chmod(filepath.Join(dir, "20-b"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := hookFiles(dir); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("got %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := hookFiles(dir); err == nil || !strings.Contains(err.Error(), dir+" may be written") {
		t.Errorf("got %v", err)
	}
	if _, err := hookFiles(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("got %v", err)
	}
}

// A broken hook, and a folder with too many, deny in a clean container where the mode is seal, and pass elsewhere.
func TestBrokenUnderSeal(t *testing.T) {
	many := map[string]string{}
	for i := range maxHooks + 1 {
		many[fmt.Sprintf("hook-%d", i)] = none
	}
	for name, c := range map[string]struct {
		hooks map[string]string
		says  string
	}{
		"a hook":   {map[string]string{"a": "exit 1"}, "(a) does not work"},
		"a folder": {many, "(the hooks folder) does not work"},
	} {
		for _, mode := range []string{"enforce", "seal"} {
			who := inside()
			who.Hooks, who.Mode = folder(t, c.hooks), mode
			got := ask(New(&host{}, quiet()), who, "curl x")
			if denied := strings.Contains(got, c.says); denied != (mode == "seal") {
				t.Errorf("%s, %s: %q", name, mode, got)
			}
		}
	}
}
