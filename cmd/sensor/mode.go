package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/internal/policy"
)

func (s *system) modeCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "mode MODE --why REASON",
		Short: "observe (deny nothing), enforce, or seal (deny all egress of what is guarded)",
		Long: `Sets the mode of everything guarded, until the next weir mode, also after a restart. observe denies nothing, and logs what would be denied.
enforce denies what no verdict opens. seal denies all egress of everything guarded, tainted or not, and asks nobody.`,
		Example: `  sudo weir mode seal --why "the agent sends something that nobody knows"`,
		Args:    args(1, 1, "a mode: observe, enforce or seal"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := policy.ParseMode(args[0])
			if err != nil {
				return usage(cmd, "%w", err)
			}
			if err := needWhy(cmd, why); err != nil {
				return err
			}
			if err := s.client().Mode(cmd.Context(), string(m), s.operator(), why); err != nil {
				return err
			}
			return s.answer(map[string]string{"mode": string(m)}, func(w io.Writer) { fmt.Fprintf(w, "the mode is %s\n", m) })
		},
		ValidArgs: []string{string(policy.Observe), string(policy.Enforce), string(policy.Seal)},
	}
	whyFlag(cmd, &why, true)
	return cmd
}
