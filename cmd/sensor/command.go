package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/internal/control"
	"weir/internal/daemon"
	"weir/internal/doctor"
	"weir/internal/event"
	"weir/internal/policy"
	"weir/internal/runner"
	"weir/internal/show"
	"weir/internal/taint"
)

// system is what the commands need of the world; tests give another one.
type system struct {
	stdin, stdout, stderr *os.File
	environ               []string
	euid                  int
	log                   string // what weir events reads while no sensor runs
	kernel                func(pinDir string, types *taint.Types) doctor.Report
	daemon                func(context.Context, daemon.Options, func()) error
	watch                 func(ctx context.Context, pinDir string) error
	outlive               func(sensor int) error
	detach                func(pinDir string) error
	try                   func(ctx context.Context, pinDir string, probe *exec.Cmd) doctor.Report

	json             bool
	runDir, usualDir string // as --run names it, and without
}

// errRoot is told by commands that touch the kernel.
var errRoot = errors.New("needs root: run it with sudo")

// run executes one command line and returns its exit code: 0 done, 1 failed, 2
// usage, 3 denied; that of its command for guard.
func run(ctx context.Context, args []string, s *system) int {
	if cmd, err := s.unknown(args); err != nil {
		return s.failed(cmd, args, err)
	}
	root := s.root()
	root.SetArgs(args)
	root.SetIn(s.stdin)
	help := &sink{to: s.stdout}
	root.SetOut(help)
	root.SetErr(s.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = written(0, help.err)
	}
	if err == nil {
		return 0
	}
	if quiet, ok := errors.AsType[runner.Status](err); ok {
		return int(quiet)
	}
	return s.failed(cmd, args, err)
}

// sink notes that something could not be written: who writes help does not look.
type sink struct {
	to  io.Writer
	err error
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	s.err = cmp.Or(s.err, err)
	return n, err
}

// failed tells why a command failed, and returns its exit code. In JSON that is one object on standard output, or on standard error where
// standard output is another program's or has the log.
func (s *system) failed(cmd *cobra.Command, args []string, err error) int {
	name := cmd.CommandPath()
	if as, ok := cmd.Annotations["as"]; ok {
		name = as
	}
	if errors.Is(err, control.ErrNotRunning) && s.runDir != s.usualDir {
		err = fmt.Errorf("%s has no socket of a running sensor: name its folder with --run, or start one there with `sudo weir --run %[1]s run`", event.Command([]string{s.runDir}, 0, 0))
	}
	code, text := control.Code(err), withoutSecrets(cmd, args, event.Plain(err))
	if !asksJSON(args) || cmd.DisableFlagParsing {
		for line := range strings.SplitSeq(text, "\n") {
			s.note("%s: %s", name, line)
		}
		return code
	}
	told := map[string]any{"error": text, "command": name, "code": code}
	if mistakes := policy.Mistakes(err); len(mistakes) > 0 {
		told["mistakes"] = mistakes
	}
	if more, ok := errors.AsType[detailed](err); ok {
		maps.Copy(told, more.detail)
	}
	out := s.stdout
	if slices.Contains([]string{"weir guard", "weir run", "weir watch", "weir mcp"}, name) {
		out = s.stderr
	}
	if err := writeJSON(out, told); err != nil {
		s.note("%s: %s", name, event.Plain(err))
	}
	return code
}

// detailed is an error with what --json tells besides.
type detailed struct {
	error
	detail map[string]any
}

// Unwrap returns the error alone.
func (d detailed) Unwrap() error { return d.error }

// asksJSON says whether weir's own arguments ask for JSON, also where they cannot be read.
func asksJSON(args []string) bool {
	asks := false
	for _, a := range args {
		switch a {
		case "--":
			return asks
		case "--json", "--json=true":
			asks = true
		}
	}
	return asks
}

// unknown refuses what is no command of the one that it names, also with --help behind it: the library would take that for the help of the command before it.
func (s *system) unknown(args []string) (cmd *cobra.Command, err error) {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil, nil
	}
	probe := *s // its flags are read for nothing
	root := probe.root()
	cmd, rest, err := root.Find(args)
	if err != nil || !cmd.HasSubCommands() {
		return nil, nil
	}
	cmd.InitDefaultHelpFlag()
	if cmd.ParseFlags(rest) != nil {
		return nil, nil
	}
	return cmd, s.subcommand(cmd, cmd.Flags().Args())
}

// note writes a line to standard error, harmless for a terminal (B51).
func (s *system) note(format string, args ...any) {
	for i, a := range args {
		if err, ok := a.(error); ok {
			args[i] = strings.ReplaceAll(event.Plain(err), "\n", "; ")
		}
	}
	show.Put(s.stderr, event.Visible(fmt.Sprintf(format, args...))+"\n")
}

func (s *system) client() *control.Client { return control.NewClient(s.runDir) }

// operator is who the caller of sudo is.
func (s *system) operator() string { return runner.Getenv(s.environ, "SUDO_USER") }

func (s *system) world() runner.World {
	return runner.World{Stdin: s.stdin, Stdout: s.stdout, Stderr: s.stderr, Environ: s.environ, RunDir: s.runDir, Say: s.note, Outlive: s.outlive}
}

func (s *system) root() *cobra.Command {
	tellVersion := false
	root := &cobra.Command{
		Use:   "weir",
		Short: "deny the egress of agents that have read what must not leave",
		Long: `Weir lets an AI agent run commands freely and still keeps what it has read from leaving:
when its container is tainted, the kernel denies its egress until a person approves it, command by command.

To try it: sudo weir guard -- bash`,
		Args: s.subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tellVersion {
				return s.tellVersion()
			}
			return cmd.Help()
		},
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.PersistentFlags().BoolVar(&s.json, "json", false, "write JSON")
	s.usualDir = cmp.Or(s.runDir, control.DefaultDir)
	root.PersistentFlags().StringVar(&s.runDir, "run", s.usualDir, "`directory` of the control socket")
	root.PersistentFlags().Lookup("run").DefValue = control.DefaultDir
	root.Flags().BoolVar(&tellVersion, "version", false, "show the version")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(s.helpCommand())
	root.AddCommand(
		s.runCommand(), s.watchCommand(), s.daemonCommand(), s.guardCommand(), s.initCommand(), s.relayCommand(), s.statusCommand(), s.healthCommand(), s.containersCommand(), s.eventsCommand(),
		s.taintCommand(), s.untaintCommand(), s.pendingCommand(), s.topCommand(), s.approveCommand(), s.denyCommand(), s.approvalsCommand(), s.revokeCommand(), s.consoleCommand(), s.whyCommand(), s.modeCommand(), s.policyCommand(), s.permissionsCommand(), s.vaultCommand(), s.memoryCommand(), s.modelProxyCommand(), s.modelInitCommand(),
		s.explainCommand(), s.classifyCommand(), s.toolcheckCommand(), s.killSwitchCommand(), s.hookCommand(), s.shellCommand(), s.mcpCommand(),
		s.doctorCommand(), s.tryCommand(), s.nodeReadyCommand(), s.detachCommand(), s.versionCommand(),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			s.group(cmd)
			for _, shell := range cmd.Commands() {
				shell.Args = args(0, 0, "")
			}
		}
	}
	refuseEmpty(root)
	return root
}

// refuseEmpty has every command refuse a flag with an empty value, which is what a variable leaves that a script forgot to set: --policy ""
// would guard with no policy.
func refuseEmpty(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if !c.Hidden { // weir itself gives those all of their flags
			refuseEmpty(c)
		}
	}
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) (err error) {
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if v := f.Value.String(); err == nil && (v == "" || v == "[]") && f.Name != "reason" && f.Name != "why" {
				err = usage(cmd, "--%s is empty: give a value, or leave it out", f.Name)
			}
		})
		if err != nil || check == nil {
			return err
		}
		return check(cmd, args)
	}
}

// helpCommand is the library's, but for names of no command.
func (s *system) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "help for any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err == nil && (of.HasSubCommands() || len(rest) == 0) {
				err = s.subcommand(of, rest)
			}
			if err != nil {
				return err
			}
			return of.Help()
		},
	}
}

// subcommand refuses what is no command of cmd's.
func (s *system) subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := subcommands(cmd)
	if slices.Contains(names, args[0]) { // behind --help
		return nil
	}
	return usage(cmd, "unknown command %q%s", args[0], suggest(args[0], names))
}

func subcommands(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// group makes cmd one that does nothing without a command of its own.
func (s *system) group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(cmd, "give a command: %s", strings.Join(subcommands(cmd), ", "))
		}
		return s.subcommand(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() } // else the library shows help before it looks at arguments
	return cmd
}

// flagError tells a mistake in flags as every other usage mistake.
func flagError(cmd *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) && bad.GetFlag().Value.Type() == "int" {
		hint := ""
		if bad.GetFlag().Name == "scope" {
			hint = ", as the question lists them"
		}
		return usage(cmd, "--%s %s is not a number: give one from 1%s", bad.GetFlag().Name, bad.GetValue(), hint)
	}
	if bad != nil && bad.GetFlag().Value.Type() == "bool" {
		return usage(cmd, "--%s=%s: accepted are true and false", bad.GetFlag().Name, bad.GetValue())
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usage(cmd, "%w", err)
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		return usage(cmd, "unknown flag -%s", name)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	hint := suggest(name, names)
	return usage(cmd, "unknown flag --%s%s", name, strings.Replace(hint, `mean "`, `mean "--`, 1))
}

// usage is an error with code 2 that says where help is.
func usage(cmd *cobra.Command, format string, args ...any) error {
	err, link := fmt.Errorf(format, args...), ": see"
	if strings.HasSuffix(err.Error(), "?") {
		link = " See"
	}
	return control.Errorf(control.Usage, "%w%s %s --help", err, link, cmd.CommandPath())
}

// args takes from least to most arguments, which what names; most < 0 sets no bound.
func args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least, what != "" && slices.Contains(args, ""):
			return usage(cmd, "give %s", what)
		case most >= 0 && len(args) > most:
			return usage(cmd, "unexpected argument %q", args[most])
		}
		return nil
	}
}

// suggest is ": did you mean X?" for the name that s is a slip of, or empty. Of three letters at most one is wrong, and none of a name that
// has no more.
func suggest(s string, names []string) string {
	best, least := "", len(s)
	for _, name := range names {
		longer := max(len(s), len(name))
		if d := distance(strings.ToLower(s), name); longer > 3 && d <= longer/3 && d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}

// distance counts the letters to insert, remove or replace between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
