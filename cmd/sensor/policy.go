package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/internal/linux"
	"weir/internal/policy"
)

func (s *system) policyCommand() *cobra.Command {
	cmd := s.group(&cobra.Command{Use: "policy", Short: "work with policy files"})
	cmd.AddCommand(s.replayCommand(), s.suggestCommand(), &cobra.Command{
		Use:   "validate FILE",
		Short: "check a policy file, and print every mistake with its line and column",
		Long: `FILE is a policy, or - for standard input. A file with a mistake is refused whole. What is accepted and probably not meant is a warning on
standard error: networks that others cover, cgroups and groups that are not on this machine, and a policy that guards nothing by itself.`,
		Args: args(1, 1, "a policy file, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) error { return s.validate(args[0]) },
	})
	return cmd
}

func (s *system) validate(file string) error {
	name, in := "standard input", s.stdin
	if file != "-" {
		f, err := linux.OpenInput(file)
		if err != nil {
			return err
		}
		defer f.Close()
		name, in = file, f
	}
	data, err := policy.Read(in)
	if err != nil {
		return err
	}
	p, warnings, err := policy.Check(name, data, policy.Machine{
		Cgroup: func(name string) bool { _, err := linux.CgroupNamed(name); return err == nil },
		Group:  func(name string) bool { _, err := linux.GroupNamed(name); return err == nil },
	})
	if err != nil {
		return detailed{err, map[string]any{"file": name, "valid": false}}
	}
	if warnings == nil {
		warnings = []*policy.Error{}
	}
	return s.answer(map[string]any{"file": name, "valid": true, "mode": p.Mode, "warnings": warnings}, func(w io.Writer) {
		for _, warning := range warnings {
			s.note("weir policy validate: warning: %s", warning)
		}
		fmt.Fprintf(w, "%s is valid: mode %s, %d guarded parents, %d guarded cgroups, %d allowed destinations\n", name, p.Mode, len(p.Guard.Parents), len(p.Guard.Cgroups), len(p.Allow))
	})
}
