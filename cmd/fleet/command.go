package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/linux"
	"weir/internal/policy"
	"weir/internal/show"
)

// run executes one command line and returns its exit code, as weir does.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stdout, stderr = show.Screen{Writer: stdout}, show.Screen{Writer: stderr}
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
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
		Use:   "weir-fleet",
		Short: "answer questions of sensors on other machines",
		Long:  "People answer questions of sensors on other machines with a key of their own, which the policies of those sensors name.",

		Args: cobra.ArbitraryArgs, RunE: needsCommand,
		SilenceErrors: true, SilenceUsage: true, DisableAutoGenTag: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return control.Errorf(control.Usage, "%w", err) })
	var p place
	root.PersistentFlags().StringVar(&p.policy, "policy", "", "the `file` whose fleet says where the servers are (default: ~/.config/weir/fleet.yaml; of run /etc/weir/policy.yaml)")
	root.PersistentFlags().StringVar(&p.creds, "creds", "", "the `file` of the account there, in place of fleet.creds_file")
	root.AddCommand(p.initCommand(), p.runCommand(), p.eventsCommand(), p.pendingCommand(), p.topCommand(), p.answerCommand(fleet.Approve), p.answerCommand(fleet.Deny), p.modeCommand(), p.policyCommand(), p.forgetCommand(), operatorCommand())
	return root
}

func operatorCommand() *cobra.Command {
	group := &cobra.Command{Use: "operator", Short: "people's keys", Args: cobra.ArbitraryArgs, RunE: needsCommand}
	var file string
	var roles []string
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "make a key, and print the lines of the policy that let it count",
		Long: `Makes a key in a file that nobody else can read, and prints the item of fleet.operators that lets it count on the nodes with that policy.
Each person makes their own, and gives the printed lines to whoever writes the policy. Keep the file: it cannot be made again.`,
		Example: "  weir-fleet operator add alice --role answer,seal",
		Args:    exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			item := func(key string) string {
				return fmt.Sprintf("fleet:\n  operators:\n    - name: %q\n      key: %s\n      roles: [%s]\n", args[0], key, strings.Join(roles, ", "))
			}
			// what is wrong the policy's reader says, before a key is made
			if _, err := policy.Parse("the policy's lines", []byte(item(strings.Repeat("A", 43)+"="))); err != nil {
				return control.Errorf(control.Usage, "%w", err)
			}
			if err := linux.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return err
			}
			key, err := fleet.NewKey(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "the key is in %s; this goes into the policy of each node:\n", event.Visible(file))
			_, err = io.WriteString(cmd.OutOrStdout(), item(key))
			return err
		},
	}
	keyFlag(add, &file, "the `file` that the key is written to")
	add.Flags().StringSliceVar(&roles, "role", []string{policy.RoleAnswer}, "what the key may do: answer, seal, mode, policy or forget; may be given more than once")
	group.AddCommand(add)
	return group
}

// needsCommand is what a command does that only holds others.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return control.Errorf(control.Usage, "unknown command %q: see %s --help", args[0], cmd.CommandPath())
	}
	return control.Errorf(control.Usage, "give a command: see %s --help", cmd.CommandPath())
}

// exactly takes n arguments, which what names.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return control.Errorf(control.Usage, "give %s: see %s --help", what, cmd.CommandPath())
		}
		return nil
	}
}

// own is where a person's file is.
func own(name string) string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return name
	}
	return filepath.Join(dir, "weir", name)
}

// keyFlag names the file of a person's key.
func keyFlag(cmd *cobra.Command, file *string, what string) {
	cmd.Flags().StringVar(file, "key", own("fleet.key"), what)
	cmd.Flags().Lookup("key").DefValue = "~/.config/weir/fleet.key"
}

// whyFlag takes a reason.
func whyFlag(cmd *cobra.Command, why *string) {
	cmd.Flags().StringVar(why, "why", "", "the `reason`, for the log")
}
