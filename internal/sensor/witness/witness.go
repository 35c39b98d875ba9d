package witness

import (
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/cgroup"
	"weir/internal/event"
	"weir/internal/exec"
	"weir/internal/netegress"
	"weir/internal/procfs"
	"weir/internal/taint"
)

// Executions are what the exec probe saw.
type Executions interface {
	Drain() // waits for what is on its way
	Find(pid int, start uint64) (event.Process, bool)
}

// Books tell which cgroups are containers.
type Books interface {
	ByCgroup(id uint64) (taint.Status, bool)
}

// Witness tells the log and the gate of containers and processes.
type Witness struct {
	Books   Books
	Ran     Executions
	Parents func() []string // the guarded parents
}

// Path is the path of a cgroup, empty when it has been removed.
func Path(id uint64) string {
	path, err := cgroup.Path(id)
	if err != nil {
		return ""
	}
	return path
}

// Container is what the log tells of a container.
func (w *Witness) Container(id uint64, bits taint.Bits) event.Container {
	if st, ok := w.Books.ByCgroup(id); ok {
		o := st.Origin
		return event.Container{
			ID: st.ID, Name: st.Name, Cgroup: st.Cgroup, CgroupID: id, Taint: (st.Taint | bits).Names(),
			Runtime: o.Runtime, Namespace: o.Namespace, RuntimeID: o.ID, Image: o.Image, Pod: o.Pod, PodNamespace: o.PodNamespace, PodUID: o.PodUID,
		}
	}
	path := Path(id)
	return event.Container{ID: path, Cgroup: path, CgroupID: id, Taint: bits.Names()}
}

// Innermost is the innermost container that a cgroup is in.
func (w *Witness) Innermost(path string) (taint.Status, bool) {
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if id, err := cgroup.ID(path); err == nil {
			if st, ok := w.Books.ByCgroup(id); ok {
				return st, true
			}
		}
	}
	return taint.Status{}, false
}

// Process is what the log tells of an asker: who it is now, and what it runs as
// the kernel saw it executed.
func (w *Witness) Process(p netegress.Process) event.Process {
	w.Ran.Drain()
	found, ok := w.Ran.Find(p.ExecPID, p.ExecStart)
	if !ok || !runs(p, found) { // what it runs now was lost on the way, and that is something older
		var err error
		if found, err = exec.FromProc(p.PID, p.Start); err != nil {
			found = event.Process{Truncated: true}
		}
	}
	found.PID, found.Start, found.UID, found.Comm, found.ArgvHash = p.PID, p.Start, p.UID, p.Comm, p.ArgvHash
	found.Cgroup = Path(p.Cgroup)
	if chain := w.ancestry(p.PID); chain != nil {
		found.Ancestry = chain
	}
	return found
}

// runs says whether p runs what was seen executed: the same file, with the same arguments where the kernel knows their hash.
func runs(p netegress.Process, seen event.Process) bool {
	if p.ArgvHash != 0 && p.ArgvHash != seen.ArgvHash {
		return false
	}
	return p.Inode == 0 || seen.Exe != nil && seen.Exe.Inode == p.Inode && seen.Exe.Device == exec.StatDevice(p.Device)
}

// Cause is what the log tells of the process that a change of taint comes from.
func (w *Witness) Cause(c taint.Change) *event.Process {
	if c.PID == 0 {
		return nil
	}
	w.Ran.Drain()
	p, _ := w.Ran.Find(c.PID, c.Start) // unknown: what the record has
	p.PID, p.Start = c.PID, c.Start
	return &p
}

// ancestry is the parent chain of a live process, up to the host's first one.
func (w *Witness) ancestry(pid int) []event.Ancestor {
	const most = 16
	st, err := procfs.ReadStat(pid)
	if err != nil {
		return nil
	}
	var chain []event.Ancestor
	for len(chain) < most && st.PPID > 0 {
		if st, err = procfs.ReadStat(st.PPID); err != nil {
			break
		}
		a := event.Ancestor{PID: st.PID, Start: st.Start, Comm: st.Comm, Inside: w.inside(st.PID)}
		if ran, ok := w.Ran.Find(st.PID, st.Start); ok && a.Inside {
			a.Start, a.Argv = ran.Start, Short(ran.Argv)
			if ran.Exe != nil {
				a.Exe = ran.Exe.Path
			}
		}
		chain = append(chain, a)
	}
	return chain
}

// inside says whether a process is in a container.
func (w *Witness) inside(pid int) bool {
	path, err := cgroup.Of(pid)
	if err != nil {
		return false
	}
	if _, ok := cgroup.Child(path, w.Parents()); ok {
		return true
	}
	_, alone := w.Innermost(path)
	return alone
}

// Short cuts arguments to what is told of a process beside another.
func Short(argv []string) []string {
	const most = 4 << 10 // bytes
	room := most
	for i, arg := range argv {
		if room -= len(arg) + 1; room < 0 {
			return append(slices.Clone(argv[:i]), strings.ToValidUTF8(arg[:max(0, len(arg)+room)], "")+"…")
		}
	}
	return argv
}
