package main

import (
	"bytes"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"weir/internal/agenthook"
	"weir/internal/control"
	"weir/internal/runner"
)

// hookCommand is weir-hook, for who has weir itself at hand.
func (s *system) hookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hook claude|codex|generic|install|uninstall",
		Short: "ask before a tool call is made: the hook that an agent runs",
		Long: `The same as the program weir-hook. It runs beside an agent in a guarded container, and asks the sensor before a tool call is made.
The exit codes are what agents expect of a hook:
0 also for a denial, which is in what it prints; 2 where the call could not be read (generic denies that with 0, too) or the answer not be
written, which denies too.

` + agenthook.Usage,
		Example: `  weir hook install claude
  echo '{"tool_name":"Bash","tool_input":{"command":"ls"}}' | weir hook generic`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.hookOrHelp(cmd, []string{"weir"}, args)
		},
	}
	return cmd
}

// mcpCommand serves the sensor's tools to an agent in a container.
func (s *system) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "serve VaultHttpFetch and LocalMemoryRecall to an agent, on standard input and output",
		Long: `Runs in a guarded container, where an agent starts it as an MCP server. It sends each call to the sensor, which makes it;
no secret comes here. The same as weir-hook mcp.`,
		Example: "  claude mcp add weir -- weir mcp",
		Args:    args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.hook(cmd, []string{"weir", "mcp"}) },
	}
}

// shellCommand is a shell that asks before it runs.
func (s *system) shellCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shell [-l] -c 'COMMAND'",
		Short: "ask, then run a command with bash: for agents that run a shell",
		Long: `Replaces bash -c 'COMMAND' inside a guarded container: it asks the sensor, then becomes bash. A denial is printed where the
command's output would be, with exit code 126.`,
		Example:            `  weir shell -c 'ls | wc -l'`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.hookOrHelp(cmd, []string{"weir", "shell"}, args)
		},
	}
}

// hookOrHelp runs a command that reads its own flags, after those of weir's before its name.
func (s *system) hookOrHelp(cmd *cobra.Command, as, args []string) error {
	for len(args) > 0 && (args[0] == "--json" || strings.HasPrefix(args[0], "--run")) {
		if args[0] == "--run" && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return cmd.Help()
	}
	return s.hook(cmd, append(as, args...))
}

func (s *system) hook(cmd *cobra.Command, args []string) error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // its status would let the call pass
	w := agenthook.World{
		Stdin: s.stdin, Stdout: s.stdout, Stderr: s.stderr, Environ: s.environ, Self: "weir hook", Home: runner.Getenv(s.environ, "HOME"),
	}
	var told bytes.Buffer
	if s.json && !cmd.DisableFlagParsing {
		w.Stderr = &told
	}
	code := w.Main(cmd.Context(), args)
	if _, text, ok := strings.Cut(strings.TrimSpace(told.String()), ": "); ok {
		return control.Errorf(code, "%s", text)
	}
	if code != 0 {
		return runner.Status(code)
	}
	return nil
}
