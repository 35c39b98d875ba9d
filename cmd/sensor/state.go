package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"weir/internal/control"
)

// ofSensor gives a flag that was not given the file name in the state directory of the sensor that runs; without one the flag keeps its
// default. A sensor that does not tell is an error: another file than its own would change nothing, unnoticed.
func (s *system) ofSensor(flag, name string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		f := cmd.Flag(flag)
		if f.Changed || cmd.HasSubCommands() {
			return nil
		}
		dir, err := s.stateDir(cmd.Context())
		if err != nil {
			return fmt.Errorf("%w; or name the file with --%s", err, flag)
		}
		if dir == "" {
			return nil
		}
		return f.Value.Set(filepath.Join(dir, name))
	}
}

// stateDir is that of the sensor that runs; empty: none does.
func (s *system) stateDir(ctx context.Context) (string, error) {
	st, err := s.client().Status(ctx)
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return "", nil
	case err == nil && st.State == "":
		err = errors.New("it is of another version")
	}
	if err != nil {
		return "", fmt.Errorf("ask the sensor for its state directory: %w", err)
	}
	return st.State, nil
}
