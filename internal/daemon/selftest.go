package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/internal/doctor"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/netegress"
)

// step is how long one step of Run may take.
const step = 30 * time.Second

// target is in a network for documentation, and the process that connects to it has no network.
var target = netip.MustParseAddrPort("192.0.2.1:9")

// SelfTest puts every mechanism to use for a moment, in a sensor of its own beside one that may run: its pins are in pinDir, which must
// not exist. probe starts a program that calls Egress. Nothing of it stays.
func SelfTest(ctx context.Context, pinDir string, probe *exec.Cmd) doctor.Report {
	t := &selfTest{pinDir: pinDir, events: &events{}}
	err := t.run(ctx, probe)
	if err != nil {
		return append(t.report, doctor.Check{
			Name: t.step, Result: doctor.Fail, Found: err.Error(), Lost: "the sensor does not enforce here", Do: "run a kernel of the README's list, and report it if this is one",
		})
	}
	return t.report
}

type selfTest struct {
	pinDir string
	events *events
	report doctor.Report
	step   string
}

func (t *selfTest) ok(found string) {
	t.report = append(t.report, doctor.Check{Name: t.step, Result: doctor.OK, Found: found})
}

func (t *selfTest) run(ctx context.Context, probe *exec.Cmd) (err error) {
	t.step = "load"
	dir, err := os.MkdirTemp("", "weir-doctor-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	asking := filepath.Join(dir, "policy.yaml") // the doctor answers, no reviewer
	if err := os.WriteFile(asking, []byte("version: 1\ncop:\n  reviewer: none\n"), 0o600); err != nil {
		return fmt.Errorf("write a policy: %w", err)
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	running, stop := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- Run(running, Options{
			PolicyPath: asking, StateDir: filepath.Join(dir, "state"), PinDir: t.pinDir, RunDir: filepath.Join(dir, "run"), Version: "doctor", Logger: logger, Stdout: t.events, Alive: func() {},
		}, func() { close(ready) })
	}()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, netegress.Detach(t.pinDir))
	}()
	select {
	case <-ready:
	case failed := <-ended:
		ended <- nil
		return failed
	}
	return t.use(ctx, control.NewClient(filepath.Join(dir, "run")), probe)
}

// use lets the probe connect while it is clean, and when it is tainted.
func (t *selfTest) use(ctx context.Context, client *control.Client, probe *exec.Cmd) error {
	session, err := client.Guard(ctx, control.GuardRequest{Name: "doctor"})
	if err != nil {
		return err
	}
	t.ok("all programs pass the verifier and are attached")
	p, err := startProbe(probe, session.Cgroup)
	if err != nil {
		return err
	}
	defer func() {
		p.end()
		client.GuardEnd(context.WithoutCancel(ctx), session.ID) // it goes with the pins in any case
	}()
	t.step = "clean"
	if err := p.connects(unix.ENETUNREACH); err != nil {
		return fmt.Errorf("a clean process without a network: %w", err)
	}
	t.ok("a clean process is let through")
	t.step = "observe"
	if !t.until(func() bool { return t.events.has(event.Exec) }) {
		return errors.New("an execution was not seen")
	}
	t.ok("executions are seen")
	t.step = "hold"
	if _, err := client.Taint(ctx, session.ID, []string{"corruption"}, "doctor", "weir doctor --load"); err != nil {
		return err
	}
	answer := make(chan error, 1)
	go func() { answer <- p.connects(unix.EPERM) }()
	var asked []gate.Question
	if !t.until(func() bool { asked, _ = client.Pending(ctx); return len(asked) == 1 && asked[0].Held }) {
		return errors.New("a tainted process was not held")
	}
	t.ok("a tainted process is held before it connects")
	t.step = "deny"
	if _, err := client.Answer(ctx, asked[0].ID, gate.Reply{By: "doctor", Why: "weir doctor --load"}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		if err != nil {
			return fmt.Errorf("a refused process: %w", err)
		}
	case <-time.After(step):
		return errors.New("a refused process was not let go")
	}
	t.ok("refused, it gets EPERM")
	return nil
}

func (t *selfTest) until(done func() bool) bool {
	for end := time.Now().Add(step); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return false
}

// probing is a process that has a command connect when it is told to.
type probing struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.ReadCloser
}

// startProbe starts cmd in a cgroup, in a session and network of its own: it has no terminal, and nothing it sends can leave.
func startProbe(cmd *exec.Cmd, dir string) (*probing, error) {
	cgroup, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	defer cgroup.Close()
	p := &probing{cmd: cmd}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd()), Cloneflags: unix.CLONE_NEWNET, Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process in %s: %w", dir, err)
	}
	return p, nil
}

// connects has the probe connect, which should come to want.
func (p *probing) connects(want syscall.Errno) error {
	if _, err := p.in.Write([]byte{'c'}); err != nil {
		return err
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(p.out, answer); err != nil {
		return err
	}
	if got := syscall.Errno(answer[0]); got != want {
		return fmt.Errorf("connect: %w, want %w", got, want)
	}
	return nil
}

func (p *probing) end() {
	p.in.Close()
	p.cmd.Process.Kill() // it may be held
	p.cmd.Wait()
}

// TryEgress is the probe of Run. It stands for an agent: for each byte of in it runs a command, which calls Connect and exits
// with the error number; that is written to out.
func TryEgress(in io.Reader, out io.Writer, command []string) error {
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(in, one); err != nil {
			return nil // the end
		}
		cmd := exec.Command(command[0], command[1:]...)
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			return fmt.Errorf("run %s: %w", command[0], err)
		}
		if _, err := out.Write([]byte{byte(cmd.ProcessState.ExitCode())}); err != nil {
			return err
		}
	}
}

// TryConnect connects to an address that it cannot reach, and returns the error number; 0 if it did reach it.
func TryConnect() (syscall.Errno, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("make socket: %w", err)
	}
	defer unix.Close(fd)
	var code syscall.Errno
	errors.As(unix.Connect(fd, &unix.SockaddrInet4{Port: int(target.Port()), Addr: target.Addr().As4()}), &code)
	return code, nil
}

// events reads the events of the throwaway sensor.
type events struct {
	mu   sync.Mutex
	seen []event.Event
}

// Write implements io.Writer: one event a call.
func (t *events) Write(line []byte) (int, error) {
	var e event.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, fmt.Errorf("read event: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(t.seen, e)
	return len(line), nil
}

func (t *events) has(kind event.Kind) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.seen, func(e event.Event) bool { return e.Kind == kind })
}
