package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/internal/linux"
	"weir/internal/permission"
)

func (s *system) permissionsCommand() *cobra.Command {
	cmd := s.group(&cobra.Command{Use: "permissions", Short: "work with permission rules for agents' tools"})
	cmd.AddCommand(&cobra.Command{
		Use:   "lint FILE",
		Short: "check a permissions.yaml or managed-permissions.yaml, or - for standard input, and print every rule that would be dropped, with its line",
		Args:  args(1, 1, "a file of permission rules"),
		RunE:  func(_ *cobra.Command, args []string) error { return s.lintPermissions(args[0]) },
	})
	return cmd
}

// lintPermissions fails when a rule of the file would be dropped.
func (s *system) lintPermissions(path string) error {
	const most = 2 << 20 // more than what is accepted
	var data []byte
	var err error
	if path == "-" {
		path = "standard input"
		data, err = io.ReadAll(io.LimitReader(s.stdin, most+1))
	} else {
		data, err = linux.ReadInput(path, most)
	}
	if err != nil {
		return fmt.Errorf("read permissions: %w", err)
	}
	set, warnings, err := permission.Parse(permission.File{Name: path, Data: data})
	if err != nil {
		return err
	}
	dropped := permission.Dropped(warnings)
	told := map[string]any{"file": path, "valid": dropped == 0, "rules": set.Len(), "warnings": append([]permission.Warning{}, warnings...)}
	if dropped > 0 {
		var errs []error
		for _, w := range warnings {
			errs = append(errs, errors.New(w.String()))
		}
		return detailed{errors.Join(append(errs, fmt.Errorf("%s: %d entries are dropped, %d rules are in force", path, dropped, set.Len()))...), told}
	}
	return s.answer(told, func(w io.Writer) {
		for _, warning := range warnings {
			fmt.Fprintln(w, warning)
		}
		fmt.Fprintf(w, "%s is valid: %d rules\n", path, set.Len())
	})
}
