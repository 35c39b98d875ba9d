//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// lightRuntime is this program as containerd calls it in place of runc: 500 containers are many for an emulated processor, and runc
// starts itself three times for each.
const lightRuntime = "/usr/local/bin/bench-runc"

// actAsRuntime does what an OCI runtime is asked for: create runs the container's process, in its cgroup and in namespaces of its own.
func actAsRuntime(args []string) error {
	if at := slices.Index(args, "create"); at >= 0 {
		return createContainer(args[at+1:])
	}
	if at := slices.Index(args, "delete"); at >= 0 {
		return nil // its processes are killed already
	}
	return nil // start: it runs
}

func createContainer(args []string) error {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i++ {
		if name, ok := strings.CutPrefix(args[i], "--"); ok {
			flags[name] = args[i+1]
		}
	}
	data, err := os.ReadFile(filepath.Join(flags["bundle"], "config.json"))
	if err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	var spec specs.Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	if spec.Linux == nil || spec.Process == nil || spec.Root == nil || len(spec.Process.Args) == 0 {
		return errors.New("create container: its specification is not whole")
	}
	dir := filepath.Join("/sys/fs/cgroup", spec.Linux.CgroupsPath)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	cgroup, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	defer cgroup.Close()
	cmd := &exec.Cmd{Path: spec.Process.Args[0], Args: spec.Process.Args, Env: spec.Process.Env, Dir: "/", SysProcAttr: &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: int(cgroup.Fd()), Chroot: spec.Root.Path, Setsid: true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET,
	}}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	return os.WriteFile(flags["pid-file"], []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
}
