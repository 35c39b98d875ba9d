//go:build linux

// Command init is process 1 of the test VMs: it loads the modules that the root needs, mounts everything, runs one command,
// reaps what is left over, writes how the command ended, and powers off. It never restarts or supervises anything. Where the job
// says so, systemd takes its place once everything is mounted, and runs it again as a service that does the rest.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/test/vm/handover"
)

func main() {
	service := len(os.Args) == 2 && os.Args[1] == handover.JobMode
	if os.Getpid() != 1 && !service {
		fmt.Fprintln(os.Stderr, "init: run only as process 1 of a test VM")
		os.Exit(1)
	}
	mounted, err := true, error(nil)
	if !service {
		mounted, err = boot()
	}
	status := handover.Status{}
	if err == nil {
		status.Exit, err = work(service)
	}
	if err != nil {
		status = handover.Status{Exit: 125, Error: err.Error()}
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	if mounted {
		if err := writeStatus(status); err != nil {
			fmt.Fprintln(os.Stderr, "init:", err)
		}
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintln(os.Stderr, "init: power off:", err)
	}
	select {} // process 1 that returns is a kernel panic
}

// work runs the job, or becomes systemd, which does.
func work(service bool) (int, error) {
	b, err := os.ReadFile(filepath.Join(handover.OutDir, handover.JobFile))
	if err != nil {
		return 0, fmt.Errorf("read the job: %w", err)
	}
	var job handover.Job
	if err := json.Unmarshal(b, &job); err != nil {
		return 0, fmt.Errorf("read the job: %w", err)
	}
	if job.Systemd && !service {
		return 0, becomeSystemd()
	}
	return run(job)
}

// run starts the job's command and waits for it; zombies of others are reaped meanwhile.
func run(job handover.Job) (int, error) {
	for _, m := range job.Mounts {
		if err := mount9p(m.Tag, m.Path, "cache=loose", unix.MS_RDONLY); err != nil {
			return 0, err
		}
	}
	os.Clearenv()
	for _, kv := range append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "USER=root", "SHELL=/bin/bash",
		"TERM=dumb", "LANG=C.UTF-8", "TMPDIR=/tmp",
	}, job.Env...) {
		k, v, _ := strings.Cut(kv, "=")
		if err := os.Setenv(k, v); err != nil {
			return 0, fmt.Errorf("set %s: %w", k, err)
		}
	}
	if len(job.Args) == 0 {
		return 0, errors.New("read the job: no command")
	}
	path, err := exec.LookPath(job.Args[0])
	if err != nil {
		return 0, fmt.Errorf("find the command: %w", err)
	}
	return wait(path, job)
}

// wait runs the command with a pipe as its output: a virtio port can be opened once only, so it cannot be /dev/stdout itself.
func wait(path string, job handover.Job) (int, error) {
	port, err := openPort()
	if err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("open input: %w", err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(port, r)
	}()
	dir := job.Dir
	if dir == "" {
		dir = "/"
	}
	pid, err := syscall.ForkExec(path, job.Args, &syscall.ProcAttr{
		Dir: dir, Env: os.Environ(), Files: []uintptr{null.Fd(), w.Fd(), w.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", path, err)
	}
	w.Close()
	var late atomic.Bool
	if job.Timeout > 0 {
		time.AfterFunc(job.Timeout, func() {
			late.Store(true)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		})
	}
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("wait for %s: %w", path, err)
		case got != pid:
			continue
		}
		// Daemons that the command left may hold the pipe: what it wrote itself is through well before this.
		select {
		case <-copied:
		case <-time.After(3 * time.Second):
		}
		if late.Load() {
			return 0, fmt.Errorf("run %s: no end after %s: killed", job.Args[0], job.Timeout)
		}
		if ws.Signaled() {
			return 128 + int(ws.Signal()), nil
		}
		return ws.ExitStatus(), nil
	}
}

// openPort finds the virtio port by its name; udev, which would make a link for it, does not run here.
func openPort() (*os.File, error) {
	for range 100 {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, fmt.Errorf("find the output port: %w", err)
		}
		for _, n := range names {
			b, err := os.ReadFile(n)
			if err == nil && strings.TrimSpace(string(b)) == handover.Port {
				f, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(n)), os.O_WRONLY, 0)
				if err != nil {
					return nil, fmt.Errorf("open the output port: %w", err)
				}
				return f, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, errors.New("find the output port: none is named " + handover.Port)
}

func writeStatus(s handover.Status) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	f, err := os.Create(filepath.Join(handover.OutDir, handover.StatusFile))
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}
