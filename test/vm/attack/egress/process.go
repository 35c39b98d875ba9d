package main

import (
	"bufio"
	"bytes"
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

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

func processAttempts() map[string]attempt {
	return map[string]attempt{
		"move":          move,
		"into":          into,
		"intrude":       intrude,
		"nest":          nest,
		"daemon":        daemon,
		"sleep":         sleep,
		"sigcont":       sigcont,
		"sigcont-storm": storm,
		"exec":          execChild,
	}
}

// goOn makes the attempt that -then names, in this process.
func (c *call) goOn() error {
	next := c.all[c.then]
	if next == nil {
		return fmt.Errorf("-then %s: no such attempt", c.then)
	}
	return next(c)
}

// child is the -then attempt as a process of its own.
func (c *call) child() *exec.Cmd {
	return exec.Command("/proc/self/exe", c.then, "-to", c.to, "-say", string(c.say), "-by", c.by, "-dev", c.dev,
		"-pid", strconv.Itoa(c.pid), "-n", strconv.Itoa(c.n), "-fd", strconv.Itoa(c.fd), "-after", c.after.String(), "-wait", c.wait)
}

// end turns a child's status into this process's answer.
func end(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("child: %w", err)
	}
	return step("start", err)
}

// move leaves the own cgroup and goes on there (B28, B37).
func move(c *call) error {
	if err := c.done("open"); err != nil {
		return err
	}
	if err := enter(c.cgroup); err != nil {
		return err
	}
	return c.goOn()
}

func enter(dir string) error {
	return step("move", os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0))
}

// into starts a child in another cgroup with clone3.
func into(c *call) error {
	dir, err := os.Open(c.cgroup)
	if err != nil {
		return step("open cgroup", err)
	}
	defer dir.Close()
	cmd := c.child()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	return end(cmd.Run())
}

// intrude enters the cgroup of a grant, or of a held command, as soon as there is one in -cgroup, and goes on there (B37).
func intrude(c *call) error {
	fd, err := unix.Open(c.cgroup, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return step("open cgroup", err)
	}
	pid := strconv.AppendInt(nil, int64(os.Getpid()), 10)
	fmt.Fprintln(c.out, "watching")
	for b := make([]byte, 1<<16); ; {
		if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
			return step("rewind", err)
		}
		for n, err := unix.Getdents(fd, b); n > 0 && err == nil; n, err = unix.Getdents(fd, b) {
			_, name, there := bytes.Cut(b[:n], []byte("weir-grant-"))
			if !there {
				continue
			}
			name, _, _ = bytes.Cut(name, []byte{0})
			procs, err := unix.Openat(fd, "weir-grant-"+string(name)+"/cgroup.procs", unix.O_WRONLY, 0)
			if err != nil {
				continue // gone
			}
			if _, err = unix.Write(procs, pid); err == nil {
				fmt.Fprintln(c.out, "entered")
				return c.goOn()
			}
			unix.Close(procs)
		}
	}
}

// nest goes -n cgroups deeper (B53).
func nest(c *call) error {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return step("find own cgroup", err)
	}
	dir := filepath.Join(cgroupRoot, strings.TrimPrefix(strings.TrimSpace(string(b)), "0::"))
	for i := range c.n {
		dir = filepath.Join(dir, fmt.Sprintf("deep-%d-%d", os.Getpid(), i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return step("make cgroup", err)
		}
		if err := enter(dir); err != nil {
			return err
		}
	}
	return c.goOn()
}

// daemon forks -n times, each in a session of its own, and makes the attempt when nobody waits for it any more (B37).
func daemon(c *call) error {
	if c.n == 0 {
		time.Sleep(c.after)
		return c.goOn()
	}
	cmd := exec.Command("/proc/self/exe", "daemon", "-then", c.then, "-to", c.to, "-say", string(c.say), "-after", c.after.String(), "-n", strconv.Itoa(c.n-1))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return step("start", cmd.Start())
}

// sleep waits before the attempt.
func sleep(c *call) error {
	time.Sleep(c.after)
	return c.goOn()
}

// sigcont makes the attempt while a child keeps waking it (B38).
func sigcont(c *call) error {
	storm := exec.Command("/proc/self/exe", "sigcont-storm", "-pid", strconv.Itoa(os.Getpid()), "-n", strconv.Itoa(c.n))
	out, err := storm.StdoutPipe()
	if err != nil {
		return step("pipe", err)
	}
	if err := storm.Start(); err != nil {
		return step("start", err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return step("storm", err)
	}
	err = c.goOn()
	return errors.Join(err, end(storm.Wait()))
}

func storm(c *call) error {
	for i := range c.n {
		if err := unix.Kill(c.pid, unix.SIGCONT); err != nil {
			return step("kill", err)
		}
		if i == 0 {
			io.WriteString(c.out, "begun\n")
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// execChild connects, and lets a child send on the inherited socket (B44).
func execChild(c *call) error {
	fd, err := dial(c, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	c.then = "send-fd"
	cmd := c.child()
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(fd), "socket")}
	cmd.Args = append(cmd.Args, "-fd", "3")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return end(cmd.Run())
}
