package family

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"weir/internal/cgroup"
	"weir/internal/procfs"
)

// maxParents bounds how far up they are looked for.
const maxParents = 16

// Above are the parents of a process inside its container and below its agent, nearest first.
func Above(pid int, box string, agent int) []procfs.Stat {
	var parents []procfs.Stat
	st, err := procfs.ReadStat(pid)
	for err == nil && len(parents) < maxParents && st.PPID > 1 && st.PPID != agent {
		if path, err := cgroup.Of(st.PPID); err != nil || !cgroup.Below(path, box) {
			return parents
		}
		if st, err = procfs.ReadStat(st.PPID); err == nil {
			parents = append(parents, st)
		}
	}
	return parents
}

// Continue wakes a process, if it is still there.
func Continue(pid int, start uint64) error { return send(pid, start, unix.SIGCONT) }

// Kill ends a process, if it is still there.
func Kill(pid int, start uint64) error { return send(pid, start, unix.SIGKILL) }

func send(pid int, start uint64, sig unix.Signal) error {
	fd, err := procfs.Open(pid, start)
	if err != nil {
		return nil
	}
	defer fd.Close()
	if err := procfs.Signal(fd, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", unix.SignalName(sig), pid, err)
	}
	return nil
}
