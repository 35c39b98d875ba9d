package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/internal/policy"
)

func (s *system) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "work with policy files",
		Args:  s.subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(s.replayCommand(), &cobra.Command{
		Use:   "validate FILE",
		Short: "check a policy file; every mistake is told with its line",
		Args:  args(1, 1, "a policy file"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := policy.Load(args[0])
			if err == nil {
				_, err = p.Destinations()
			}
			if err != nil {
				return err
			}
			return s.answer(map[string]any{"file": args[0], "valid": true, "mode": p.Mode}, func(w io.Writer) {
				fmt.Fprintf(w, "%s is valid: mode %s, %d guarded parents, %d allowed destinations\n", args[0], p.Mode, len(p.Guard.Parents), len(p.Allow))
			})
		},
	})
	return cmd
}
