package agenthook

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
)

// Usage tells how the program is called.
const Usage = `usage: weir-hook claude|codex|generic      check the tool call on standard input
       weir-hook shell [-l] -c 'COMMAND'   ask, then run the command with bash
       weir-hook mcp                       serve the sensor's tools to an agent, on standard input and output
       weir-hook install claude|codex [--settings FILE]
                                           write the hook into the agent's settings, or into FILE
       weir-hook uninstall claude|codex [--settings FILE]
                                           take it out again`

// Main runs one command line, the program's name first, and returns its exit code. Called as weir-shell it is a shell.
func (w World) Main(ctx context.Context, args []string) int {
	if len(args) > 0 && filepath.Base(args[0]) == "weir-shell" {
		return w.Shell(ctx, args[1:], syscall.Exec)
	}
	if len(args) < 2 {
		w.say("%s", Usage)
		return block
	}
	asks := func(a string) bool { return a == "--help" || a == "-h" }
	if args[1] == "help" || args[1] != "shell" && slices.ContainsFunc(args[1:], asks) {
		fmt.Fprintln(w.Stdout, Usage)
		return ok
	}
	switch args[1] {
	case "claude", "codex":
		return w.PreToolUse(ctx)
	case "generic":
		return w.Generic(ctx)
	case "mcp":
		return w.MCP(ctx)
	case "shell":
		return w.Shell(ctx, args[2:], syscall.Exec)
	case "install", "uninstall":
		return w.settings(args[1], args[2:])
	}
	w.say("weir-hook: unknown command %q\n%s", args[1], Usage)
	return block
}
