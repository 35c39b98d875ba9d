package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
	"weir/internal/control"
)

// Session is what to guard, and how.
type Session struct {
	Request control.GuardRequest
	Policy  string // file of a sensor that has to be started; empty: the default policy
	Who     Identity
	Argv    []string
	Write   Write    // what it may change; empty: everything
	Env     []string // more of the environment: NAME=value
	Model   *Model   // its way to a model, which runs as long as the command does; may be nil. Its address is put in for ModelURL in Argv and Env
	Began   func(r control.GuardReply)
	Beside  func(ctx context.Context, id string) // runs as long as the command does; may be nil
	Ended   func(id string, s control.Summary)
}

// Guard runs a command in a guarded cgroup of its own and returns its Status. A
// sensor is started if none runs, and stopped again when nothing else is guarded.
func (w World) Guard(ctx context.Context, s Session) error {
	forward := newForwarder(ctx)
	defer forward.stop()
	lasting := context.WithoutCancel(ctx)
	if err := w.refuseSockets(); err != nil {
		return err
	}
	own, err := w.ensureSensor(forward.ctx, s.Policy)
	if err != nil {
		return forward.explain(err)
	}
	if own != nil {
		defer w.stopSensor(lasting, own)
	}
	if s.Model != nil {
		stop, err := w.startModel(lasting, *s.Model, s.Who)
		if err != nil {
			return err
		}
		defer stop()
	}
	reply, err := w.client().Guard(forward.ctx, s.Request)
	if err != nil {
		return forward.explain(err)
	}
	s.Began(reply)
	stop := s.beside(lasting, reply.ID)
	runErr := forward.explain(w.runGuarded(forward, reply, s))
	stop()
	// The command's status stands, also when the sensor has gone meanwhile.
	if sum, err := w.client().GuardEnd(lasting, reply.ID); err != nil {
		w.Say("weir guard: %s: end the session: %v", reply.ID, err)
	} else {
		s.Ended(reply.ID, sum)
	}
	return runErr
}

// refuseSockets gives the command no socket of a network or of the kernel's: it was made outside, where nobody looks at what it sends
// (B22).
func (w World) refuseSockets() error {
	for name, f := range map[string]*os.File{"input": w.Stdin, "output": w.Stdout, "error": w.Stderr} {
		if f == nil {
			continue
		}
		family, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err == nil && family != unix.AF_UNIX {
			return fmt.Errorf("standard %s is a socket of a network, which the guard does not see: give it a pipe, a file or a terminal", name)
		}
	}
	return nil
}

// beside starts what runs beside the command. stop ends it, and waits for that.
func (s Session) beside(ctx context.Context, id string) (stop func()) {
	if s.Beside == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.Beside(ctx, id) })
	return func() {
		cancel()
		running.Wait()
	}
}

// runGuarded runs a command in the session's cgroup. A stub of this program is born
// there and waits until the sensor knows it; then it becomes CMD.
func (w World) runGuarded(forward *forwarder, session control.GuardReply, s Session) error {
	dir, err := os.OpenFile(session.Cgroup, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("open cgroup: %w", err)
	}
	defer dir.Close()
	if s.Model != nil {
		url, stop, err := w.startRelay(dir, s)
		if err != nil {
			return err
		}
		defer stop()
		s.Argv, s.Env = filled(s.Argv, url), filled(s.Env, url)
	}
	wait, release, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	defer release.Close()
	cmd := s.born(dir, wait, s.Argv)
	cmd.Env = slices.Concat(s.Who.env, s.Env)
	if session.Bridge != "" {
		cmd.Env = append(without(cmd.Env, wire.Variable), wire.Variable+"="+session.Bridge)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = w.Stdin, w.Stdout, w.Stderr
	err = forward.start(cmd)
	wait.Close()
	if err != nil {
		return fmt.Errorf("start in cgroup %s: %w", session.Cgroup, err)
	}
	if err := w.client().GuardAgent(forward.ctx, session.ID, cmd.Process.Pid); err != nil {
		release.Close() // the stub ends without having run anything
		cmd.Wait()
		return fmt.Errorf("name the agent to the sensor: %w", err)
	}
	if _, err := release.Write([]byte{1}); err != nil && !errors.Is(err, syscall.EPIPE) {
		release.Close()
		return errors.Join(fmt.Errorf("start the command: %w", err), exitOf(cmd.Wait()))
	}
	release.Close()
	return exitOf(cmd.Wait())
}

// born is a stub of this program in the session's cgroup, which becomes argv when wait has a byte.
func (s Session) born(dir, wait *os.File, argv []string) *exec.Cmd {
	cmd := exec.Command(self, slices.Concat([]string{"guard-init"}, s.Who.flags(), s.Write.flags(), []string{"--"}, argv)...)
	cmd.Args[0] = "weir"
	cmd.ExtraFiles = []*os.File{wait}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	return cmd
}
