package netegress

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// ErrShared says that a process outside the command could control it: it traces
// it, has its memory open or shares it (B30). Such a command gets no grant.
var ErrShared = errors.New("another process can control the command")

// moveBelow brings a command into a cgroup: its topmost process, then its children, until
// a pass finds none that is not there. It returns the processes that it moved.
func moveBelow(dir string, root int, container string) (map[int]bool, error) {
	var err error
	inside := map[int]bool{}
	for next := []int{root}; len(next) > 0; {
		for _, pid := range next {
			if err := linux.MoveToCgroup(dir, pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return nil, err
			}
			inside[pid] = true
		}
		if next, err = children(container, inside); err != nil {
			return nil, err
		}
	}
	return inside, nil
}

// children are the processes of a container whose parent is inside, but not they.
func children(container string, inside map[int]bool) ([]int, error) {
	pids, err := linux.CgroupTree(container)
	if err != nil {
		return nil, err
	}
	var next []int
	for _, pid := range pids {
		if st, err := linux.ReadStat(pid); err == nil && inside[st.PPID] && !inside[pid] {
			next = append(next, pid)
		}
	}
	return next, nil
}

// tracedByOutsider looks for processes of the container that could make the command do
// what they may not: none of its own, but tracers, holders of its memory, and
// twins that share it (B30).
func tracedByOutsider(container string, inside map[int]bool) error {
	for pid := range inside {
		if tracer, err := linux.Tracer(pid); err == nil && tracer != 0 && !inside[tracer] {
			return fmt.Errorf("%w: process %d traces process %d", ErrShared, tracer, pid)
		}
	}
	pids, err := linux.CgroupTree(container)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if inside[pid] {
			continue
		}
		held, err := linux.MemFDs(pid)
		if errors.Is(err, linux.ErrGone) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: what process %d has open is not known: %w", ErrShared, pid, err)
		}
		for in := range inside {
			if slices.Contains(held, in) {
				return fmt.Errorf("%w: process %d has the memory of process %d open", ErrShared, pid, in)
			}
			if same, err := linux.SameMemory(pid, in); same || err != nil && !errors.Is(err, linux.ErrGone) {
				return fmt.Errorf("%w: process %d shares its memory with process %d", ErrShared, pid, in)
			}
		}
	}
	return nil
}
