package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/bridge/wire"
	"weir/internal/control"
	"weir/internal/doctor"
	"weir/internal/runner"
)

func (s *system) doctorCommand() *cobra.Command {
	var pins string
	var load bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check whether this machine has what the sensor needs",
		Args:  args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := doctor.Examine(doctor.Options{
				Root:   "/",
				EUID:   s.euid,
				PinDir: pins,
				Sensor: func() (int, error) {
					st, err := s.client().Status(cmd.Context())
					if errors.Is(err, control.ErrNotRunning) {
						return 0, nil
					}
					return st.PID, err
				},
			})
			if load && report.Worst() != doctor.Fail {
				probe := exec.Command("/proc/self/exe", "try-egress")
				report = append(report, s.try(cmd.Context(), fmt.Sprintf("%s-doctor-%d", pins, os.Getpid()), probe)...)
			}
			if err := s.answer(report, func(w io.Writer) { printReport(w, report) }); err != nil {
				return err
			}
			if report.Worst() == doctor.Fail {
				return runner.Status(control.Failed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&load, "load", false, "load and attach everything for some seconds, and try it on a test process")
	cmd.Flags().StringVar(&pins, "pins", wire.Pins, "`directory` on a bpf file system")
	return cmd
}

func printReport(w io.Writer, r doctor.Report) {
	var rows [][]string
	for _, c := range r {
		rows = append(rows, []string{c.Name, string(c.Result), strings.TrimPrefix(c.String(), c.Name+": ")})
	}
	table(w, []string{"CHECK", "RESULT", "FOUND"}, rows)
	switch r.Worst() {
	case doctor.OK:
		fmt.Fprintln(w, "all is there")
	case doctor.Warn:
		fmt.Fprintln(w, "the sensor runs here; see the warnings")
	default:
		fmt.Fprintln(w, "the sensor does not enforce here")
	}
}
