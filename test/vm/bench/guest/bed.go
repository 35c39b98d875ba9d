//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/test/vm/bench"
)

const (
	weir       = "/usr/local/bin/weir"
	self       = "/usr/local/bin/weir-bench"
	runDir     = "/run/weir"
	policyFile = "/run/bench-policy.yaml"
	eventFile  = "/var/log/weir/bench.jsonl"
	outside    = "/sys/fs/cgroup/bench/plain"  // as deep as what weir guard makes
	service    = "/sys/fs/cgroup/weir.service" // the sensor's own, as its unit has one: a program is on it that judges its resolvers' answers
	crowd      = "/bench-crowd"                // a guarded parent for many
	patience   = 60 * time.Second
)

// bed is what is measured in: the world, and a sensor that is started and taken out of the kernel again.
type bed struct {
	samples bench.Samples
	servers []*exec.Cmd
	sensor  *exec.Cmd
	daemon  int // its process
	client  *control.Client
	allow   string // more of what the policy allows
}

func newBed() (*bed, error) {
	b := &bed{samples: bench.Samples{Values: map[string][]float64{}}, client: control.NewClient(runDir)}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, fmt.Errorf("ask for the kernel's name: %w", err)
	}
	b.samples.Kernel = unix.ByteSliceToString(name.Release[:])
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	// from the disk, as on any machine, and not over the link to the host
	for to, from := range map[string]string{weir: filepath.Join(filepath.Dir(own), "weir"), self: own} {
		if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("copy %s: %w: %s", from, err, out)
		}
	}
	for _, dir := range []string{outside, service} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
	}
	if err := makeNetwork(); err != nil {
		return nil, err
	}
	for _, kind := range []string{"accept", "read", "drop"} {
		if err := b.serve(kind); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	return b, nil
}

func (b *bed) serve(kind string) error {
	cmd := exec.Command("ip", "netns", "exec", "world", self, "serve", kind)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOGC=off")
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // which never ends
		return fmt.Errorf("serve %s: %w", kind, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("serve %s: %w", kind, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("serve %s: %w", kind, err)
	}
	b.servers = append(b.servers, cmd)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return fmt.Errorf("serve %s: not ready: %w", kind, err)
	}
	return nil
}

func (b *bed) close() error {
	var errs []error
	if b.sensor != nil {
		errs = append(errs, b.stop())
	}
	for _, s := range b.servers {
		errs = append(errs, s.Process.Kill())
		_ = s.Wait() // it was killed
	}
	return errors.Join(errs...)
}

// secrets is a list as people have it. What opens files here opens one beside a listed one.
const secrets = "taint:\n  secret_files: [/etc/shadow, /run/secrets/, ~/.ssh/id_*, ~/.aws/, \"**/.env\"]\n"

// write writes the policy, for the next start or the next order to load it. more is added to it.
func (b *bed) write(more string) error {
	policy := "version: 1\ncop:\n  reviewer: none\nevents:\n  file: " + eventFile + "\nallow:\n  - prefix: " + allowed + "/32\n" + b.allow + more
	if err := os.WriteFile(policyFile, []byte(policy), 0o600); err != nil {
		return fmt.Errorf("write policy: %w", err)
	}
	return nil
}

// start runs the sensor until it is ready, and gives the time from its execution on. more is added to the policy.
func (b *bed) start(more string) (time.Duration, error) {
	if err := b.write(secrets + more); err != nil {
		return 0, err
	}
	ready, far, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("start the sensor: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command(weir, "run", "--policy", policyFile, "--ready-fd", "3")
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stderr, os.Stderr, []*os.File{far}
	begun := monotonic()
	err = startIn(service, cmd)
	far.Close()
	if err != nil {
		return 0, fmt.Errorf("start the sensor: %w", err)
	}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		return 0, fmt.Errorf("start the sensor: not ready: %w: %w", err, cmd.Wait())
	}
	took := time.Duration(monotonic() - begun)
	b.sensor = cmd
	b.daemon, err = child(cmd.Process.Pid)
	return took, err
}

// child finds the only child of a process, by whichever thread it was made.
func child(pid int) (int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, fmt.Errorf("find the daemon: %w", err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			return 0, fmt.Errorf("find the daemon: %w", err)
		}
		if found := strings.TrimSpace(string(text)); found != "" {
			return strconv.Atoi(found)
		}
	}
	return 0, errors.New("find the daemon: weir run has no child")
}

// stop ends the sensor and takes everything out of the kernel.
func (b *bed) stop() error {
	cmd := b.sensor
	b.sensor = nil
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the sensor: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("stop the sensor: %w", err)
	}
	if out, err := exec.Command(weir, "detach", "--force").CombinedOutput(); err != nil {
		return fmt.Errorf("weir detach: %w: %s", err, out)
	}
	// the kernel lets go of what was unpinned a little later, and works at that
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		switch left, err := programs(); {
		case err != nil:
			return err
		case !left:
			time.Sleep(1500 * time.Millisecond)
			return nil
		case time.Now().After(end):
			return errors.New("weir detach: programs are left in the kernel")
		}
	}
}

// programs says whether this kernel has any BPF program.
func programs() (bool, error) {
	const getNextProgram = 11 // BPF_PROG_GET_NEXT_ID
	attr := struct{ start, next, flags uint32 }{}
	_, _, errno := unix.Syscall(unix.SYS_BPF, getNextProgram, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 && errno != unix.ENOENT {
		return false, fmt.Errorf("list BPF programs: %w", errno)
	}
	return errno == 0, nil
}

// freeze stops the daemon, so that only the kernel's side counts; thaw lets it catch up.
func (b *bed) freeze() error { return syscall.Kill(b.daemon, syscall.SIGSTOP) }

func (b *bed) thaw() error {
	err := syscall.Kill(b.daemon, syscall.SIGCONT)
	time.Sleep(700 * time.Millisecond)
	return err
}

// worker does operations in one cgroup.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	terminal *os.File // it is on; nil: none
}

// plain starts a worker that nobody guards.
func (b *bed) plain() (*worker, error) {
	return newWorker(outside, exec.Command(self, "work"))
}

// startIn starts a command in a cgroup; empty: in this process's.
func startIn(cgroup string, cmd *exec.Cmd) error {
	if cgroup == "" {
		return cmd.Start()
	}
	dir, err := os.Open(cgroup)
	if err != nil {
		return fmt.Errorf("open cgroup: %w", err)
	}
	defer dir.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	return cmd.Start()
}

// guarded starts one under weir guard, with flags.
func (b *bed) guarded(name string, flags ...string) (*worker, error) {
	args := append([]string{"guard", "-q", "--name", name}, flags...)
	return newWorker("", exec.Command(weir, append(args, "--", self, "work")...))
}

// openTerminal makes a terminal, which lives as long as its master is open.
func openTerminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make a terminal: %w", err), master.Close())
	}
	return master, slave, nil
}

// onTerminal starts a guarded one whose standard error is a terminal, which it lives as long as.
func (b *bed) onTerminal(name string) (*worker, error) {
	master, slave, err := openTerminal()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	cmd := exec.Command(weir, "guard", "-q", "--name", name, "--", self, "work")
	cmd.Stderr = slave
	w, err := newWorker("", cmd)
	if err != nil {
		return nil, errors.Join(err, master.Close())
	}
	w.terminal = master
	return w, nil
}

func newWorker(cgroup string, cmd *exec.Cmd) (*worker, error) {
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOGC=off")
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := startIn(cgroup, cmd); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	w := &worker{cmd: cmd, in: in, out: bufio.NewReader(out)}
	for _, name := range bench.Cases() { // what only the first time costs
		if _, err := w.do(name, 3); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *worker) order(what string, n int) error {
	if _, err := fmt.Fprintf(w.in, "%s %d\n", what, n); err != nil {
		return fmt.Errorf("order %s: %w", what, err)
	}
	return nil
}

// line is an answer as it is.
func (w *worker) line() (string, error) {
	line, err := w.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("worker gives no answer: %w", err)
	}
	return strings.TrimSpace(line), nil
}

func (w *worker) answer() (int64, error) {
	line, err := w.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(line, 10, 64)
}

func (w *worker) do(what string, n int) (int64, error) {
	if err := w.order(what, n); err != nil {
		return 0, err
	}
	return w.answer()
}

func (w *worker) end() error {
	if w == nil {
		return nil
	}
	w.in.Close()
	err := w.cmd.Wait()
	if w.terminal != nil {
		err = errors.Join(err, w.terminal.Close())
	}
	return err
}
