package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/taint"
)

func (s *system) untaintCommand() *cobra.Command {
	var why, at string
	cmd := &cobra.Command{
		Use:     "untaint CONTAINER|--cgroup CGROUP BIT… --why REASON",
		Short:   "clear taint bits; the log keeps who did it and why",
		Long:    "Clears taint bits. Do it after the container was rebuilt clean; otherwise it still holds what it has read.\n" + containerHelp,
		Example: `  weir untaint web-1 corruption --why "rebuilt for a new session"`,
		Args:    containerArgs(&at),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := withCgroup(cmd, at, args)
			if err != nil {
				return err
			}
			if strings.TrimSpace(why) == "" {
				return usage(cmd, "say why with --why REASON: it is logged")
			}
			if _, err := taint.ParseBits(args[1:]); err != nil {
				return usage(cmd, "%w", err)
			}
			c, err := s.client().Untaint(cmd.Context(), args[0], args[1:], s.operator(), why)
			if err != nil {
				return err
			}
			return s.answer(c, func(w io.Writer) { printTaint(w, c) })
		},
		ValidArgsFunction: s.completeContainer,
	}
	cmd.Flags().StringVar(&why, "why", "", "`reason`, for the log (needed)")
	cgroupFlag(cmd, &at)
	return cmd
}
