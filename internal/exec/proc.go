package exec

import (
	"fmt"

	"weir/internal/event"
	"weir/internal/linux"
)

// The same bounds as exec.bpf.c has.
const (
	maxArgv    = 16384
	maxEnv     = 8192
	maxParents = 8
)

// FromProc describes a process that executed its program before the probe ran. It is marked truncated: what /proc shows of argv
// is the process's own to change; and claimed, if that is whole. Ancestors' starts are in ticks of 10 ms. The error wraps procfs.ErrGone if it has ended.
func FromProc(pid int, start uint64) (event.Process, error) {
	stat, err := linux.ReadStat(pid)
	if err != nil {
		return event.Process{}, err
	}
	if !linux.SameStart(stat.Start, start) {
		return event.Process{}, fmt.Errorf("describe process %d: %w: its id was reused", pid, linux.ErrGone)
	}
	p := event.Process{PID: pid, Start: start, Comm: stat.Comm, Truncated: true, Ancestry: ancestry(stat)}
	if p.UID, err = linux.UID(pid); err != nil {
		return event.Process{}, err
	}
	exe, err := linux.ExecutableOf(pid)
	if err != nil {
		return event.Process{}, err
	}
	p.Exe = &event.File{Path: exe.Path, Device: exe.Device, Inode: exe.Inode, Memfd: exe.Memfd, Deleted: exe.Deleted}
	argv, cut, err := linux.Cmdline(pid, maxArgv)
	if err != nil {
		return event.Process{}, err
	}
	p.Argv, p.Claimed = arguments(string(argv))
	p.Claimed = p.Claimed && !cut
	environ, cut, err := linux.Environ(pid, maxEnv)
	if err != nil {
		return event.Process{}, err
	}
	p.Env, p.EnvCut = newNames().find(environ), cut
	if p.NetNS, err = linux.Namespace(pid, "net"); err != nil {
		return event.Process{}, err
	}
	if p.PidNS, err = linux.Namespace(pid, "pid_for_children"); err != nil {
		return event.Process{}, err
	}
	if !linux.Alive(pid, start) { // then some of this may be of another process
		return event.Process{}, fmt.Errorf("describe process %d: %w", pid, linux.ErrGone)
	}
	return p, nil
}

// ancestry ends early where an ancestor ends meanwhile.
func ancestry(child linux.Stat) []event.Ancestor {
	var found []event.Ancestor
	for len(found) < maxParents && child.PPID != 0 {
		parent, err := linux.ReadStat(child.PPID)
		if err != nil {
			break
		}
		found = append(found, event.Ancestor{PID: parent.PID, Start: parent.Start, Comm: parent.Comm})
		child = parent
	}
	return found
}
