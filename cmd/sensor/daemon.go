package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"weir/internal/bridge/wire"
	"weir/internal/daemon"
	"weir/internal/doctor"
	"weir/internal/runner"
	"weir/internal/taint"
)

// readyFD is where weir run hands the daemon the pipe that it waits at.
const readyFD = 3

// daemonCommand is what weir run starts as its child.
func (s *system) daemonCommand() *cobra.Command {
	var flags daemonFlags
	cmd := &cobra.Command{
		Use:         "daemon",
		Hidden:      true,
		Args:        args(0, 0, ""),
		Annotations: map[string]string{"as": "weir run"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.euid != 0 {
				return errRoot
			}
			types := new(taint.Types)
			if err := s.checkKernel(flags.pins, types); err != nil && !flags.degraded {
				return err
			}
			pulse := runner.NewPulse(readyFD, s.environ)
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			logger := logrus.New()
			logger.SetOutput(s.stderr)
			if s.json {
				logger.SetFormatter(new(logrus.JSONFormatter))
			} else {
				toJournal(logger)
			}
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // who read the events has gone: that ends nobody
			return s.daemon(ctx, daemon.Options{
				PolicyPath: flags.policy,
				StateDir:   flags.state,
				PinDir:     flags.pins,
				RunDir:     s.runDir,
				RulesPath:  flags.rules,
				Server:     flags.server,
				KillSwitch: filepath.Join(flags.state, filepath.Base(wire.KillSwitch)),
				Degraded:   flags.degraded,
				AgentPath:  flags.agent,
				Version:    version(),
				Types:      types,
				Logger:     logger,
				Stdout:     s.stdout,
				Alive:      pulse.Alive,
			}, sync.OnceFunc(pulse.Ready))
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

// checkKernel refuses a kernel that does not enforce, with the first reason.
func (s *system) checkKernel(pins string, types *taint.Types) error {
	for _, c := range s.kernel(pins, types) {
		if c.Result == doctor.Fail {
			return fmt.Errorf("%s (weir doctor tells all)", c)
		}
	}
	return nil
}
