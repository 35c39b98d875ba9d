package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// daemonFlags are those of weir run, which hands them to its child.
type daemonFlags struct {
	policy, state, pins string
	degraded            bool
}

func (d *daemonFlags) add(f *pflag.FlagSet) {
	f.StringVar(&d.policy, "policy", "", "policy `file`; none: enforce, ask a person, open nothing")
	f.StringVar(&d.state, "state", "/var/lib/weir", "`directory` of what outlives a reboot")
	f.StringVar(&d.pins, "pins", "/sys/fs/bpf/weir", "`directory` on a bpf file system")
	f.BoolVar(&d.degraded, "degraded", false, "go on where the kernel lacks a mechanism, and say so in every event")
}

// args writes the flags again, with absolute paths.
func (d *daemonFlags) args(s *system) ([]string, error) {
	var list []string
	for _, f := range []struct{ name, path string }{{"policy", d.policy}, {"state", d.state}, {"pins", d.pins}, {"run", s.runDir}} {
		if f.path == "" {
			continue
		}
		path, err := filepath.Abs(f.path)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", f.name, err)
		}
		list = append(list, "--"+f.name+"="+path)
	}
	if d.degraded {
		list = append(list, "--degraded")
	}
	if s.json {
		list = append(list, "--json")
	}
	return list, nil
}

func (s *system) runCommand() *cobra.Command {
	var flags daemonFlags
	var readyFD int
	cmd := &cobra.Command{
		Use:   "run",
		Short: "run the sensor",
		Long: `Runs the sensor until SIGTERM or SIGINT; SIGHUP loads the policy file again. It is two processes: the sensor, and its
parent that wakes held commands when the sensor dies. What is in force in the kernel stays in force afterwards.`,
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
			return s.supervise(cmd.Context(), args, flags.pins, readyFD)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().IntVar(&readyFD, "ready-fd", -1, "write a byte to this descriptor when ready")
	hide(cmd, "ready-fd")
	return cmd
}

func hide(cmd *cobra.Command, flag string) { cmd.Flags().Lookup(flag).Hidden = true }

// supervise runs the daemon as a child and wakes what it leaves held. It exits as
// the child does, once nothing is held.
func (s *system) supervise(ctx context.Context, args []string, pins string, readyFD int) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)

	ready, childReady, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command("/proc/self/exe", append([]string{"daemon"}, args...)...)
	cmd.Args[0] = "weir"
	cmd.Env = without(s.environ, "NOTIFY_SOCKET")
	cmd.Stdout, cmd.Stderr = s.stdout, s.stderr
	cmd.ExtraFiles = []*os.File{childReady}               // descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C comes once, by way of here
	err = cmd.Start()
	childReady.Close()
	if err != nil {
		return fmt.Errorf("start the sensor: %w", err)
	}
	go func() {
		if n, _ := ready.Read(make([]byte, 1)); n == 1 {
			s.announce(readyFD)
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan error, 1)
	go func() { watched <- s.keepWatch(ctx, pins) }()
	for {
		select {
		case sig := <-signals:
			cmd.Process.Signal(sig) // it may have ended just now
		case err := <-ended:
			stop()
			return errors.Join(exitOf(err), <-watched)
		}
	}
}

// keepWatch watches until ctx ends, also after a failure: nobody else wakes what
// a dead sensor holds.
func (s *system) keepWatch(ctx context.Context, pins string) error {
	for {
		err := s.watch(ctx, pins)
		if err != nil {
			s.note("weir run: watch the sensor: %v", err)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// announce says that the sensor is ready, to who started it and to systemd.
func (s *system) announce(readyFD int) {
	if readyFD > 2 {
		f := os.NewFile(uintptr(readyFD), "ready")
		f.Write([]byte{1}) // nobody may wait for it any more
		f.Close()
	}
	path := s.getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if strings.HasPrefix(path, "@") {
		path = "\x00" + path[1:]
	}
	conn, err := net.Dial("unixgram", path)
	if err == nil {
		_, err = conn.Write([]byte("READY=1\n"))
		conn.Close()
	}
	if err != nil {
		s.note("weir run: tell systemd: %v", err)
	}
}

// exitOf turns the end of a child into an exit status: 128+n for signal n.
func exitOf(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return status(128 + int(ws.Signal()))
	}
	return status(exit.ExitCode())
}

// without is environ without some names.
func without(environ []string, names ...string) []string {
	var kept []string
next:
	for _, kv := range environ {
		for _, name := range names {
			if strings.HasPrefix(kv, name+"=") {
				continue next
			}
		}
		kept = append(kept, kv)
	}
	return kept
}
