package main

import (
	"context"
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
	return s.bitsCommand(&cobra.Command{
		Use:     "taint CONTAINER|--cgroup CGROUP BIT…",
		Short:   "mark a container: corruption (read untrusted input), secret (read a secret)",
		Long:    "Sets taint bits. From then on the kernel denies the container's egress, and its open connections are closed.\n" + containerHelp + cgroupHelp,
		Example: "  weir taint web-1 corruption secret\n  weir taint --cgroup agent-1.scope secret",
	}, false, (*control.Client).Taint)
}

func (s *system) untaintCommand() *cobra.Command {
	return s.bitsCommand(&cobra.Command{
		Use:     "untaint CONTAINER|--cgroup CGROUP BIT… --why REASON",
		Short:   "clear taint bits; the log keeps who did it and why",
		Long:    "Clears taint bits. Do it after the container was rebuilt clean; otherwise it still holds what it has read.\n" + containerHelp + cgroupHelp,
		Example: `  weir untaint web-1 corruption --why "rebuilt for a new session"`,
	}, true, (*control.Client).Untaint)
}

// bitsCommand sets or clears bits; explained: a reason is needed.
func (s *system) bitsCommand(cmd *cobra.Command, explained bool, do func(c *control.Client, ctx context.Context, name string, bits []string, by, why string) (control.Container, error)) *cobra.Command {
	var why, at string
	cmd.Args, cmd.ValidArgsFunction = containerArgs(&at), s.completeContainer
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args, err := withCgroup(cmd, at, args)
		if err != nil {
			return err
		}
		if explained {
			if err := needWhy(cmd, why); err != nil {
				return err
			}
		}
		if _, err := taint.ParseBits(args[1:]); err != nil {
			return usage(cmd, "%w", err)
		}
		c, err := do(s.client(), cmd.Context(), args[0], args[1:], s.operator(), why)
		if err != nil {
			return err
		}
		return s.answer(c, func(w io.Writer) { printTaint(w, c) })
	}
	whyFlag(cmd, &why, explained)
	cgroupFlag(cmd, &at)
	return cmd
}

func whyFlag(cmd *cobra.Command, why *string, needed bool) {
	help := "`reason`, for the log"
	if needed {
		help += " (needed)"
	}
	cmd.Flags().StringVar(why, "why", "", help)
}

func needWhy(cmd *cobra.Command, why string) error {
	if strings.TrimSpace(why) == "" {
		return usage(cmd, "say why with --why REASON: it is logged")
	}
	return nil
}

const (
	containerHelp = "CONTAINER is an id, a name, the unique start of an id, a cgroup's path, or the name of a systemd slice, scope or service."
	cgroupHelp    = "\nWith --cgroup only a cgroup is meant, whatever containers are called."
)

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
