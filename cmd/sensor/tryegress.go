package main

import (
	"github.com/spf13/cobra"

	"weir/internal/daemon"
	"weir/internal/runner"
)

// tryCommand is the process that weir doctor --load tries everything on, and its command.
func (s *system) tryCommand() *cobra.Command {
	var connect bool
	cmd := &cobra.Command{
		Use:    "try-egress",
		Hidden: true,
		Args:   args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if !connect {
				return daemon.TryEgress(s.stdin, s.stdout, []string{"/proc/self/exe", "try-egress", "--connect"})
			}
			code, err := daemon.TryConnect()
			if err != nil {
				return err
			}
			return runner.Status(code)
		},
	}
	cmd.Flags().BoolVar(&connect, "connect", false, "connect, and exit with the error number")
	return cmd
}
