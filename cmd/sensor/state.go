package main

import (
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
		st, err := s.client().Status(cmd.Context())
		switch {
		case errors.Is(err, control.ErrNotRunning):
			return nil
		case err == nil && st.State == "":
			err = errors.New("it is of another version")
		}
		if err != nil {
			return fmt.Errorf("ask the sensor for its state directory: %w; or name the file with --%s", err, flag)
		}
		return f.Value.Set(filepath.Join(st.State, name))
	}
}
