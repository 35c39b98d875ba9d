package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/taint"
)

func (s *system) taintCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:     "taint CONTAINER BIT…",
		Short:   "mark a container: corruption (read untrusted input), secret (read a secret)",
		Long:    "Sets taint bits. From then on the kernel denies the container's egress, and its open connections are closed.\nCONTAINER is an id, a name, the unique start of an id, or a cgroup's path.",
		Example: "  weir taint web-1 corruption secret",
		Args:    args(2, -1, "a container and bits: corruption, secret"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := taint.ParseBits(args[1:]); err != nil {
				return usage(cmd, "%v", err)
			}
			c, err := s.client().Taint(cmd.Context(), args[0], args[1:], s.operator(), why)
			if err != nil {
				return err
			}
			return s.answer(c, func(w io.Writer) { printTaint(w, c) })
		},
		ValidArgsFunction: s.completeContainer,
	}
	cmd.Flags().StringVar(&why, "why", "", "`reason`, for the log")
	return cmd
}

func printTaint(w io.Writer, c control.Container) {
	name := c.ID
	if c.Name != "" && c.Name != c.ID {
		name = c.Name + " (" + c.ID + ")"
	}
	if len(c.Taint) == 0 {
		fmt.Fprintf(w, "%s is not tainted\n", event.Visible(name))
		return
	}
	fmt.Fprintf(w, "%s is tainted: %s\n", event.Visible(name), event.Visible(orNone(c.Taint)))
}
