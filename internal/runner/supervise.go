package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long weir run says nothing before it is ready: what is refused at once is refused in one line.
const patience = 2 * time.Second

// Supervise runs `weir daemon` with args as a child, and watch beside it until
// the child has ended and watch returns. Signals to stop and to reload go to the
// child, and SIGABRT, the watchdog's, by which it writes its stacks; it ends as the
// child does. Once the child is ready, a byte is written to
// readyFD, if that is above 2, and systemd is told; then also, if it wants to know,
// that the child is alive.
func (w World) Supervise(ctx context.Context, args []string, watch func(context.Context) error, readyFD int) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGABRT)
	defer signal.Stop(signals)

	ready, childReady, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command(self, append([]string{"daemon"}, args...)...)
	cmd.Args[0] = "weir"
	cmd.Env = without(w.Environ, "NOTIFY_SOCKET")
	cmd.Stdout, cmd.Stderr = w.Stdout, w.Stderr
	cmd.ExtraFiles = []*os.File{childReady}               // descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C comes once, by way of here
	if w.getenv("NOTIFY_SOCKET") != "" {
		// systemd ends what is left of a unit and starts it anew, but only when it comes to it: whoever the
		// daemon holds waits for its end
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	runtime.LockOSThread() // a child is in the namespaces of the thread that starts it, and dies with that
	defer runtime.UnlockOSThread()
	if err := seeHostCgroups(); err != nil {
		w.Say("weir run: %v", err)
	}
	err = cmd.Start()
	childReady.Close()
	if err != nil {
		return fmt.Errorf("start the sensor: %w", err)
	}
	if w.Outlive != nil {
		if err := w.Outlive(cmd.Process.Pid); err != nil {
			w.Say("weir run: go on when memory is short: %v", err)
		}
	}
	slow := time.AfterFunc(patience, func() {
		w.Say("weir run: getting ready: it loads its programs into the kernel, which can take half a minute")
	})
	defer slow.Stop()
	go w.relay(ready, readyFD, slow)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan error, 1)
	go func() { watched <- w.KeepWatch(ctx, "weir run", watch) }()
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGTERM || sig == syscall.SIGINT {
				w.notify(nowStopping)
			}
			cmd.Process.Signal(sig) // it may have ended just now
			if sig == syscall.SIGABRT {
				cmd.Process.Signal(syscall.SIGCONT) // else one that was stopped could not write its stacks
			}
		case err := <-ended:
			stop()
			return errors.Join(exitOf(err), <-watched)
		}
	}
}

// Outlive lets the kernel kill the sensor for its memory only after all others,
// and never this process, which is to wake what the sensor holds then: nor is it to
// wait for pages of its own that were taken back.
func Outlive(sensor int) error {
	var errs []error
	for _, p := range []struct{ pid, adj int }{{sensor, -999}, {os.Getpid(), -1000}} {
		errs = append(errs, os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.pid), strconv.AppendInt(nil, int64(p.adj), 10), 0))
	}
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		errs = append(errs, fmt.Errorf("lock memory: %w", err))
	}
	return errors.Join(errs...)
}

// KeepWatch watches until ctx ends, also after a failure, which it tells as name:
// nobody else wakes what a dead sensor holds.
func (w World) KeepWatch(ctx context.Context, name string, watch func(context.Context) error) error {
	for {
		err := watch(ctx)
		if err != nil {
			w.Say("%s: watch the sensor: %v", name, err)
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
