package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/internal/bridge/wire"
	"weir/internal/linux"
)

// daemonFlags are those of weir run, which hands them to its child.
type daemonFlags struct {
	policy, state, pins string
	rules, server       string
	agent               string
	degraded            bool
}

func (d *daemonFlags) add(f *pflag.FlagSet) {
	f.StringVar(&d.policy, "policy", "", "policy `file`; none: enforce, ask a person, open nothing")
	f.StringVar(&d.state, "state", wire.State, "`directory` for what outlives a reboot")
	f.StringVar(&d.pins, "pins", wire.Pins, "`directory` on a bpf file system")
	f.StringVar(&d.rules, "guard-rules", wire.Rules, "`file` of the operator's own rules for the guard of tool calls; it need not be there")
	f.StringVar(&d.server, "server", "", "`host` that updates of agents may come from besides GitHub")
	f.StringVar(&d.agent, "agent-binary", "", "`file` that the tool agent_update replaces, such as "+wire.Hook+"; none: the tool is off")
	f.BoolVar(&d.degraded, "degraded", false, "go on where the kernel lacks a mechanism, and say so in every event")
}

// args writes the flags again, with absolute paths.
func (d *daemonFlags) args(s *system) ([]string, error) {
	var list []string
	for _, f := range []struct{ name, path string }{{"policy", d.policy}, {"state", d.state}, {"pins", d.pins}, {"run", s.runDir}, {"guard-rules", d.rules}, {"agent-binary", d.agent}} {
		if f.path == "" {
			continue
		}
		path, err := filepath.Abs(f.path)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", f.name, err)
		}
		list = append(list, "--"+f.name+"="+path)
	}
	if d.server != "" {
		list = append(list, "--server="+d.server)
	}
	if d.degraded {
		list = append(list, "--degraded")
	}
	if s.json {
		list = append(list, "--json")
	}
	return list, nil
}

// watchGC makes the watcher's heap a quarter of what it would grow to: it looks at
// two maps twice a second, all day.
const watchGC = 25

func (s *system) runCommand() *cobra.Command {
	var flags daemonFlags
	var readyFD int
	cmd := &cobra.Command{
		Use:   "run",
		Short: "run the sensor",
		Long: `Runs the sensor until SIGTERM or SIGINT. It loads the policy again when the file changes, or on SIGHUP. It is two
processes: the sensor, and its parent, which wakes held commands when the sensor dies. Afterwards the kernel goes on
enforcing.`,
		Example: "  sudo weir run --policy /etc/weir/policy.yaml",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.euid != 0 {
				return errRoot
			}
			args, err := flags.args(s)
			if err != nil {
				return err
			}
			watch := func(ctx context.Context) error { return s.watch(ctx, flags.pins) }
			s.slim("weir run")
			return s.world().Supervise(cmd.Context(), args, watch, readyFD)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().IntVar(&readyFD, "ready-fd", -1, "write a byte to this descriptor when ready")
	hide(cmd, "ready-fd")
	return cmd
}

// slim prepares a process that only watches: what it touches from now on may be
// locked in memory.
func (s *system) slim(name string) {
	debug.SetGCPercent(watchGC)
	if err := errors.Join(linux.SmallPages(), linux.TrimMemory()); err != nil {
		s.note("%s: %v", name, err)
	}
}

func (s *system) watchCommand() *cobra.Command {
	var pins string
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "wake held commands when the sensor is dead",
		Long: `Does what the sensor's parent process does: when the sensor has been silent for 3 seconds, it wakes the commands that the sensor
held, and they are refused. A service manager may end both processes of weir run together; this one, in a unit of its own, outlives them.
SIGTERM ends it.`,
		Example: "  systemctl status weir-watch",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.euid != 0 {
				return errRoot
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			s.slim("weir watch")
			return s.world().KeepWatch(ctx, "weir watch", func(ctx context.Context) error { return s.watch(ctx, pins) })
		},
	}
	cmd.Flags().StringVar(&pins, "pins", wire.Pins, "`directory` on a bpf file system")
	return cmd
}

func hide(cmd *cobra.Command, flag string) { cmd.Flags().Lookup(flag).Hidden = true }
