package netegress

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// maxParents bounds how far up they are looked for.
const maxParents = 16

// parentsOf are the parents of a process inside its container and below its agent, nearest first.
func parentsOf(pid int, container string, agent int) []linux.Stat {
	var parents []linux.Stat
	st, err := linux.ReadStat(pid)
	for err == nil && len(parents) < maxParents && st.PPID > 1 && st.PPID != agent {
		if path, err := linux.CgroupOf(st.PPID); err != nil || !linux.PathWithin(path, container) {
			return parents
		}
		if st, err = linux.ReadStat(st.PPID); err == nil {
			parents = append(parents, st)
		}
	}
	return parents
}

// sendContinue wakes a process, if it is still there.
func sendContinue(pid int, start uint64) error { return send(pid, start, unix.SIGCONT) }

// killProcess ends a process, if it is still there.
func killProcess(pid int, start uint64) error { return send(pid, start, unix.SIGKILL) }

func send(pid int, start uint64, sig unix.Signal) error {
	fd, err := linux.OpenProcess(pid, start)
	if err != nil {
		return nil
	}
	defer fd.Close()
	if err := linux.SendSignal(fd, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", unix.SignalName(sig), pid, err)
	}
	return nil
}
