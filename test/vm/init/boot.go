//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/test/vm/handover"
)

// boot goes from the initramfs to the running root. It says whether the out share is mounted, so that an error can be told there.
func boot() (bool, error) {
	early := []fsMount{{"proc", "/proc", "proc", ""}, {"sysfs", "/sys", "sysfs", ""}, {"dev", "/dev", "devtmpfs", "mode=0755"}}
	for _, m := range early {
		if err := m.mount(); err != nil {
			return false, err
		}
	}
	cmdline, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return false, fmt.Errorf("read the command line: %w", err)
	}
	if strings.Contains(string(cmdline), handover.ProbeFlag) {
		return false, nil
	}
	if err := loadModules(); err != nil {
		return false, err
	}
	if err := switchRoot(); err != nil {
		return false, err
	}
	if err := mount9p(handover.OutTag, handover.OutDir, "cache=none", 0); err != nil {
		return false, err
	}
	return true, settle()
}

// loadModules loads what stands in /modules, which the host sorted so that needs come first.
func loadModules() error {
	files, err := filepath.Glob("/modules/*.ko")
	if err != nil {
		return fmt.Errorf("list the modules: %w", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("load a module: %w", err)
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && err != unix.EEXIST {
			return fmt.Errorf("load module %s: %w", filepath.Base(name), err)
		}
	}
	return nil
}

// switchRoot mounts the first disk and makes it the root, as switch_root(8) does: a plain chroot would forbid user namespaces.
func switchRoot() error {
	const disk, root = "/dev/vda", "/root"
	for range 200 {
		if _, err := os.Stat(disk); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	if err := unix.Mount(disk, root, "ext4", unix.MS_NOATIME, ""); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	for _, m := range []fsMount{
		{"proc", "/proc", "proc", ""},
		{"sysfs", "/sys", "sysfs", ""},
		{"dev", "/dev", "devtmpfs", "mode=0755"},
		{"devpts", "/dev/pts", "devpts", "gid=5,mode=620,ptmxmode=666"},
		{"shm", "/dev/shm", "tmpfs", "mode=1777"},
		{"run", "/run", "tmpfs", "mode=0755"},
		{"tmp", "/tmp", "tmpfs", "mode=1777"},
		{"cgroup", "/sys/fs/cgroup", "cgroup2", ""},
		{"bpf", "/sys/fs/bpf", "bpf", "mode=0700"},
		{"tracefs", "/sys/kernel/tracing", "tracefs", ""},
		{"debugfs", "/sys/kernel/debug", "debugfs", ""},
	} {
		m.path = root + m.path
		if err := m.mount(); err != nil {
			return err
		}
	}
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("switch root: %w", err)
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("switch root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("switch root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("switch root: %w", err)
	}
	return nil
}

// settle gives the guest what an ordinary boot would have given it.
func settle() error {
	for link, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := os.Symlink(to, "/dev/"+link); err != nil && !os.IsExist(err) {
			return fmt.Errorf("make /dev/%s: %w", link, err)
		}
	}
	if err := os.MkdirAll("/run/lock", 0o1777); err != nil {
		return fmt.Errorf("make /run/lock: %w", err)
	}
	if err := unix.Sethostname([]byte("weir")); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0); err != nil {
		return fmt.Errorf("let everybody ping: %w", err)
	}
	controllers, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if err != nil {
		return fmt.Errorf("read the controllers: %w", err)
	}
	for _, c := range strings.Fields(string(controllers)) {
		// Each by itself: one that cannot be had (rdma, misc) must not take the others along.
		if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+"+c), 0); err != nil {
			fmt.Fprintf(os.Stderr, "init: no cgroup controller %s: %v\n", c, err)
		}
	}
	return loopbackUp()
}

// loopbackUp sets IFF_UP on lo, which brings its two addresses.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	return nil
}

type fsMount struct{ source, path, kind, options string }

func (m fsMount) mount() error {
	if err := os.MkdirAll(m.path, 0o755); err != nil {
		return fmt.Errorf("mount %s: %w", m.path, err)
	}
	err := unix.Mount(m.source, m.path, m.kind, 0, m.options)
	if err == unix.EBUSY && m.kind == "devtmpfs" { // the kernel may have done it
		return nil
	}
	if err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.kind, m.path, err)
	}
	return nil
}

func mount9p(tag, path, cache string, flags uintptr) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("mount share %s: %w", tag, err)
	}
	if err := unix.Mount(tag, path, "9p", flags, "trans=virtio,version=9p2000.L,msize=512000,"+cache); err != nil {
		return fmt.Errorf("mount share %s on %s: %w", tag, path, err)
	}
	return nil
}
