package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/taint"
)

func (s *system) taintCommand() *cobra.Command {
	var why, at string
	cmd := &cobra.Command{
		Use:     "taint CONTAINER|--cgroup CGROUP BIT…",
		Short:   "mark a container: corruption (read untrusted input), secret (read a secret)",
		Long:    "Sets taint bits. From then on the kernel denies the container's egress, and its open connections are closed.\n" + containerHelp,
		Example: "  weir taint web-1 corruption secret\n  weir taint --cgroup agent-1.scope secret",
		Args:    containerArgs(&at),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := withCgroup(cmd, at, args)
			if err != nil {
				return err
			}
			if _, err := taint.ParseBits(args[1:]); err != nil {
				return usage(cmd, "%w", err)
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
	cgroupFlag(cmd, &at)
	return cmd
}

const containerHelp = "CONTAINER is an id, a name, the unique start of an id, a cgroup's path, or the name of a systemd slice, scope or service.\n" +
	"With --cgroup only a cgroup is meant, whatever containers are called."

func cgroupFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "cgroup", "", "the container is this `cgroup`: its path, or the name of a systemd slice, scope or service")
}

// containerArgs takes a container, unless --cgroup named it, and bits.
func containerArgs(at *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, argv []string) error {
		if !cmd.Flags().Changed("cgroup") {
			return args(2, -1, "a container and bits: corruption, secret")(cmd, argv)
		}
		return args(1, -1, "bits, without a container beside --cgroup: corruption, secret")(cmd, argv)
	}
}

// withCgroup puts the path of what --cgroup named before the bits.
func withCgroup(cmd *cobra.Command, at string, argv []string) ([]string, error) {
	switch {
	case at == "":
		return argv, nil
	case strings.HasPrefix(at, "/"):
		at = linux.CleanCgroup(at) // it may be gone, and its taint stored
	default:
		var err error
		if at, err = linux.CgroupNamed(at); err != nil {
			return nil, usage(cmd, "--cgroup: %w", err)
		}
	}
	return append([]string{at}, argv...), nil
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
