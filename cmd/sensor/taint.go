package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/taint"
)

func (s *system) taintCommand() *cobra.Command {
	return s.bitsCommand(&cobra.Command{
		Use:     "taint CONTAINER|--cgroup CGROUP|--path DIR BIT…",
		Short:   "mark a container: corruption (read untrusted input), secret (read a secret)",
		Long:    "Sets taint bits. From then on the kernel denies the container's egress, and its open connections are closed.\n" + containerHelp + cgroupHelp + pathHelp,
		Example: "  weir taint web-1 corruption secret\n  weir taint --cgroup agent-1.scope secret\n  weir taint --path /srv/project secret",
	}, false, (*control.Client).Taint, (*control.Client).TaintPath)
}

func (s *system) untaintCommand() *cobra.Command {
	return s.bitsCommand(&cobra.Command{
		Use:     "untaint CONTAINER|--cgroup CGROUP|--path DIR BIT… --why REASON",
		Short:   "clear taint bits; the log keeps who did it and why",
		Long:    "Clears taint bits. Do it after the container was rebuilt clean; otherwise it still holds what it has read.\n" + containerHelp + cgroupHelp + pathHelp,
		Example: `  weir untaint web-1 corruption --why "rebuilt for a new session"`,
	}, true, (*control.Client).Untaint, (*control.Client).UntaintPath)
}

// bits is what changes those of a container, or of a directory.
type bits[T any] func(c *control.Client, ctx context.Context, name string, bits []string, by, why string) (T, error)

// bitsCommand sets or clears bits; explained: a reason is needed.
func (s *system) bitsCommand(cmd *cobra.Command, explained bool, do bits[control.Container], doPath bits[control.Volume]) *cobra.Command {
	var why, at, dir string
	cmd.Args, cmd.ValidArgsFunction = containerArgs, s.completeContainer
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if dir != "" {
			args = append([]string{dir}, args...)
		}
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
		if dir != "" {
			path, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			v, err := doPath(s.client(), cmd.Context(), path, args[1:], s.operator(), why)
			if err != nil {
				return err
			}
			return s.answer(v, func(w io.Writer) { printTaint(w, control.Container{ID: v.Path, Taint: v.Taint}) })
		}
		c, err := do(s.client(), cmd.Context(), args[0], args[1:], s.operator(), why)
		if err != nil {
			return err
		}
		return s.answer(c, func(w io.Writer) { printTaint(w, c) })
	}
	whyFlag(cmd, &why, explained)
	cgroupFlag(cmd, &at)
	cmd.Flags().StringVar(&dir, "path", "", "not a container, but this `directory` of the host with all that is below it")
	cmd.MarkFlagsMutuallyExclusive("cgroup", "path")
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
	pathHelp      = "\nWith --path a directory has the bits: containers that write there give it theirs, those that read there take its."
	cgroupHelp    = "\nWith --cgroup only a cgroup is meant, whatever containers are called."
)

func cgroupFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "cgroup", "", "the container is this `cgroup`: its path, or the name of a systemd slice, scope or service")
}

// containerArgs takes a container, unless --cgroup or --path is in its place, and bits.
func containerArgs(cmd *cobra.Command, argv []string) error {
	for _, flag := range []string{"cgroup", "path"} {
		if cmd.Flags().Changed(flag) {
			return args(1, -1, "bits, without a container beside --"+flag+": corruption, secret")(cmd, argv)
		}
	}
	return args(2, -1, "a container and bits: corruption, secret")(cmd, argv)
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
