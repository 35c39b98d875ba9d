package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/linux"
	"weir/internal/otlp"
	"weir/internal/policy"
	"weir/internal/show"
)

// run executes one command line and returns its exit code, as weir does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stdout, stderr = show.Screen{Writer: stdout}, show.Screen{Writer: stderr}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		for line := range strings.Lines(event.Plain(err)) {
			fmt.Fprintf(stderr, "%s: %s\n", cmd.CommandPath(), event.Visible(strings.TrimSpace(line)))
		}
	}
	return control.Code(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir-otel",
		Short: "send events and figures to a collector of OpenTelemetry",
		Long:  "Sends what the sensor of this node logs and counts to a collector, by OpenTelemetry's protocol over HTTP.",

		Args: cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return control.Errorf(control.Usage, "unknown command %q: see %s --help", args[0], cmd.CommandPath())
			}
			return control.Errorf(control.Usage, "give a command: see %s --help", cmd.CommandPath())
		},
		SilenceErrors: true, SilenceUsage: true, DisableAutoGenTag: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return control.Errorf(control.Usage, "%w", err) })
	root.AddCommand(runCommand())
	return root
}

func runCommand() *cobra.Command {
	var file, run, state string
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "run",
		Short: "send until SIGTERM or SIGINT",
		Long: `Sends what the sensor of this node logs and counts to otlp.endpoint of the policy. It needs no rights but to look at the control socket: run it as
a user of a group of control.look. It goes on by itself when the collector, or the sensor, is away: events wait in the log.`,
		Example: "  weir-otel run --policy /etc/weir/policy.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return control.Errorf(control.Usage, "give no arguments: see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := policy.Load(file)
			if err != nil {
				return err
			}
			node, err := fleet.Node(p.Fleet)
			if err != nil {
				return err
			}
			if err := linux.MkdirAll(state, 0o700); err != nil {
				return fmt.Errorf("make the state's directory: %w", err)
			}
			say := func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", cmd.CommandPath(), event.Visible(text)) }
			return otlp.Run(cmd.Context(), otlp.Options{Policy: p.OTLP, Node: node, Sensor: control.NewClient(run), State: state, Since: max(since, 0), Say: say})
		},
	}
	cmd.Flags().StringVar(&file, "policy", "/etc/weir/policy.yaml", "the `file` whose otlp says where to")
	cmd.Flags().StringVar(&run, "run", control.DefaultDir, "`directory` of the sensor's control socket")
	cmd.Flags().StringVar(&state, "state", "/var/lib/weir-otel", "`directory` of what outlives a reboot: where the events go on")
	cmd.Flags().DurationVar(&since, "since", 0, "where that is not known: send events that are at most so old, as a `time` such as 15m; 0: all that the log has")
	return cmd
}
