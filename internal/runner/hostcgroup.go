package runner

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// seeHostCgroups has this thread, and what it starts, read whole paths in
// /proc/PID/cgroup: in a container's own cgroup namespace they are relative to its
// cgroup. Process 1 is the host's where the container shares the host's processes.
func seeHostCgroups() error {
	return joinCgroups("/proc/thread-self/ns/cgroup", "/proc/1/ns/cgroup")
}

func joinCgroups(own, theirs string) error {
	mine, err := os.Readlink(own)
	if err != nil {
		return fmt.Errorf("find own cgroup namespace: %w", err)
	}
	host, err := os.Readlink(theirs)
	if errors.Is(err, os.ErrPermission) {
		return nil // who may not look at the host's processes is in no pod that guards them
	}
	if err != nil {
		return fmt.Errorf("find the host's cgroup namespace: %w", err)
	}
	if mine == host {
		return nil
	}
	ns, err := os.Open(theirs)
	if err != nil {
		return fmt.Errorf("open the host's cgroup namespace: %w", err)
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("enter the host's cgroup namespace: %w: it needs CAP_SYS_ADMIN", err)
	}
	return nil
}
