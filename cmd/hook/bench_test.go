package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkHook is the whole process, for a command that is plainly local: what an agent waits for before each of them.
func BenchmarkHook(b *testing.B) {
	program := filepath.Join(b.TempDir(), "weir-hook")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for b.Loop() {
		cmd := exec.Command(program, "claude")
		cmd.Stdin = strings.NewReader(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"grep -rn main . | sort | head -20"}}`)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			b.Fatalf("%v: %s", err, out)
		}
	}
}
