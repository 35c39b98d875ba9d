package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"weir/internal/bridge/wire"
	"weir/internal/toolguard"
)

func (s *system) killSwitchCommand() *cobra.Command {
	var file string
	cmd := s.group(&cobra.Command{
		Use:   "kill-switch",
		Short: "turn off every tool that changes something, or turn them on again",
		Long: `While the switch is on, the bridge denies agents every tool that changes something, shells among them; reading goes on. It takes effect with the
next call. What runs already goes on, and the kernel denies egress as before. The guard is never off.

The switch is a file in the state directory of the sensor that runs (weir run --state), which is asked for it.`,
		PersistentPreRunE: s.ofSensor("file", filepath.Base(wire.KillSwitch)),
	})
	cmd.PersistentFlags().StringVar(&file, "file", wire.KillSwitch, "the switch, if not the sensor's own: a `file` that is there while it is on")
	for _, c := range []struct {
		name, short string
		on          bool
	}{{"on", "turn tools off that change something", true}, {"off", "turn them on again", false}} {
		cmd.AddCommand(&cobra.Command{
			Use: c.name, Short: c.short, Args: args(0, 0, ""),
			RunE: func(*cobra.Command, []string) error {
				if s.euid != 0 && file == wire.KillSwitch {
					return errRoot
				}
				if err := toolguard.SetKillSwitch(file, c.on); err != nil {
					return err
				}
				return s.tellSwitch(file)
			},
		})
	}
	cmd.AddCommand(&cobra.Command{
		Use: "status", Short: "say whether it is on", Args: args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return s.tellSwitch(file) },
	})
	return cmd
}

func (s *system) tellSwitch(file string) error {
	if _, err := os.Lstat(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("whether it is on cannot be seen: %w", err)
	}
	on := toolguard.KillSwitchOn(file)
	return s.answer(map[string]any{"kill_switch": on, "file": file}, func(w io.Writer) {
		if on {
			fmt.Fprintf(w, "on: every tool that changes something is off\n")
			return
		}
		fmt.Fprintf(w, "off\n")
	})
}
