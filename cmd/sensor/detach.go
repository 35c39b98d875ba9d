package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"weir/internal/bridge/wire"
	"weir/internal/control"
	"weir/internal/daemon"
	"weir/internal/linux"
	"weir/internal/runner"
	"weir/internal/taint"
)

func (s *system) detachCommand() *cobra.Command {
	var state, pins, set string
	var force bool
	cmd := &cobra.Command{
		Use:   "detach",
		Short: "remove everything from the kernel: nothing is denied any more",
		Long: `Removes what a stopped sensor left in force. It refuses while a tainted container has live processes, because their egress
would be open from then on; --force does it all the same. Taint is kept on disk, and comes back with the next weir run.

--daemonset removes nothing by itself: in a pod it waits for a DaemonSet that does this on each node.`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if set != "" {
				return s.detachedEverywhere(cmd, set)
			}
			if s.euid != 0 {
				return errRoot
			}
			lock, err := control.Listen(s.runDir)
			if err != nil {
				return err
			}
			defer lock.Close()
			if _, err := os.Stat(pins); errors.Is(err, os.ErrNotExist) {
				return s.detached(false, pins)
			}
			if !force {
				if err := refuseTainted(state, pins); err != nil {
					return err
				}
			}
			if err := s.detach(pins); err != nil {
				return err
			}
			return s.detached(true, pins)
		},
	}
	f := cmd.Flags()
	f.StringVar(&state, "state", wire.State, "`directory` for what outlives a reboot")
	f.StringVar(&pins, "pins", wire.Pins, "`directory` on a bpf file system")
	f.BoolVar(&force, "force", false, "also when a tainted container is live: its egress is open then")
	f.StringVar(&set, "daemonset", "", "wait until each pod of this `DaemonSet` of POD_NAMESPACE is ready, and do nothing else")
	return cmd
}

func (s *system) detachedEverywhere(cmd *cobra.Command, set string) error {
	o := runner.NodeOptions{Name: set, Every: time.Second}
	if err := s.inCluster(cmd, &o, map[string]*string{"POD_NAMESPACE": &o.Space}); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return runner.AwaitDaemonSet(ctx, o)
}

func (s *system) detached(done bool, pins string) error {
	return s.answer(map[string]any{"detached": done, "pins": pins}, func(w io.Writer) {
		if done {
			fmt.Fprintln(w, "detached: nothing is denied any more")
		} else {
			fmt.Fprintf(w, "nothing is in force: %s does not exist\n", pins)
		}
	})
}

// refuseTainted returns an error that names the tainted containers with live processes.
func refuseTainted(stateDir, pins string) error {
	unsure := func(err error) error {
		return control.Errorf(control.Denied, "cannot tell whether a tainted container is live: %w: --force opens its egress all the same", err)
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return unsure(err)
	}
	db, err := daemon.OpenStore(stateDir)
	if err != nil {
		return unsure(err)
	}
	defer db.Close()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	st, err := taint.Load(taint.Options{PinDir: pins, DB: db, Logger: logger})
	if err != nil {
		return unsure(err)
	}
	defer st.Close()
	var live []string
	for _, c := range st.List() {
		if c.Taint != 0 && linux.CgroupPopulated(c.Cgroup) {
			live = append(live, c.ID)
		}
	}
	if len(live) == 0 {
		return nil
	}
	return control.Errorf(control.Denied, "tainted and live: %s: end them, or open their egress with --force", strings.Join(live, ", "))
}
