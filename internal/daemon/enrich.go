package daemon

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/event"
	"weir/internal/exec"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/taint"
)

// execSource are what the exec probe saw.
type execSource interface {
	Drain() // waits for what is on its way
	Find(pid int, start uint64) (p event.Process, sure, ok bool)
}

// processBooks tell which cgroups are containers.
type processBooks interface {
	ByCgroup(id uint64) (taint.Status, bool)
	Recorded(id uint64) (c taint.Container, own taint.Bits, ok bool)
}

// processCache tells the log and the gate of containers and processes.
type processCache struct {
	Books   processBooks
	Ran     execSource
	Parents func() []string // the guarded parents
}

// cgroupPath is the path of a cgroup, empty when it has been removed.
func cgroupPath(id uint64) string {
	path, err := linux.CgroupPath(id)
	if err != nil {
		return ""
	}
	return path
}

// Container is what the log tells of a container now. bits are more that it has.
func (w *processCache) Container(id uint64, bits taint.Bits) event.Container {
	st, ok := w.Books.ByCgroup(id)
	return containerOf(st.Container, ok, id, st.Taint|bits)
}

// Then is what it tells of a container whose taint, that of what is above it too, is in a record of the kernel's.
func (w *processCache) Then(id uint64, bits taint.Bits) event.Container {
	c, own, ok := w.Books.Recorded(id)
	return containerOf(c, ok, id, own|bits)
}

func containerOf(c taint.Container, known bool, id uint64, bits taint.Bits) event.Container {
	if !known {
		path := cgroupPath(id)
		return event.Container{ID: path, Cgroup: path, CgroupID: id, Taint: bits.Names()}
	}
	return c.Event(bits)
}

// Innermost is the innermost container that a cgroup is in.
func (w *processCache) Innermost(path string) (taint.Status, bool) {
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if id, err := linux.CgroupID(path); err == nil {
			if st, ok := w.Books.ByCgroup(id); ok {
				return st, true
			}
		}
	}
	return taint.Status{}, false
}

// Process is what the log tells of an asker: who it is now, and what it runs as
// the kernel saw it executed.
func (w *processCache) Process(p netegress.Process) event.Process {
	w.Ran.Drain()
	found := w.ran(p, p.ExecPID, p.ExecStart)
	found.PID, found.Start, found.UID, found.Comm, found.ArgvHash = p.PID, p.Start, p.UID, p.Comm, p.ArgvHash
	found.Cgroup = cgroupPath(p.Cgroup)
	if chain := w.ancestry(p.PID); chain != nil {
		found.Ancestry = chain
	}
	return found
}

// ran is what p runs, as the kernel saw it executed by a process, p or another, else as /proc tells it.
func (w *processCache) ran(p netegress.Process, by int, start uint64) event.Process {
	found, sure, ok := w.Ran.Find(by, start)
	if ok && (sure || p.Inode != 0 && p.ArgvHash != 0) && runs(p, found) {
		return found
	}
	found, err := exec.FromProc(p.PID, p.Start) // what it runs now was lost on the way, and that is something older
	if err != nil {
		return event.Process{Truncated: true}
	}
	return found
}

// surely is what a process runs as the kernel saw it executed; nothing where it is not known for sure.
func (w *processCache) surely(pid int, start uint64) event.Process {
	if p, sure, ok := w.Ran.Find(pid, start); ok && sure {
		return p
	}
	return event.Process{}
}

// Above are the parents of p that an approval can let out, nearest first, with their whole command lines: those in the container and
// below its agent. One whose own parent is outside is not among them: it is the agent, or it outlives every command. Starts are as /proc
// tells them, so that they are the same for each daemon, whatever it has seen.
func (w *processCache) Above(container uint64, p event.Process) []event.Member {
	box, agent := cgroupPath(container), 0
	if st, ok := w.Books.ByCgroup(container); ok {
		box, agent = st.Cgroup, st.Agent
	}
	parents := above(p, agent, func(pid int) bool {
		path, err := linux.CgroupOf(pid)
		return err == nil && box != "" && linux.PathWithin(path, box)
	})
	var all []event.Member
	for _, a := range parents {
		st, err := linux.ReadStat(a.PID)
		if err != nil || !linux.SameStart(st.Start, a.Start) {
			return all // it has ended, and who is above it is another's parent now
		}
		all = append(all, w.member(netegress.Process{PID: a.PID, Start: st.Start, Comm: a.Comm}))
	}
	return all
}

// above are p's ancestors that are inside, as their own parents are, up to the agent.
func above(p event.Process, agent int, inside func(pid int) bool) []event.Ancestor {
	if p.PID == agent || len(p.Ancestry) == 0 || !inside(p.Ancestry[0].PID) {
		return nil
	}
	for i, a := range p.Ancestry {
		if a.PID == agent || i+1 == len(p.Ancestry) || !inside(p.Ancestry[i+1].PID) {
			return p.Ancestry[:i]
		}
	}
	return nil
}

// member is a process with what it runs now.
func (w *processCache) member(p netegress.Process) event.Member {
	by, start := p.ExecPID, p.ExecStart
	if by == 0 {
		by, start = p.PID, p.Start
	}
	m := w.ran(p, by, start).Member()
	m.PID, m.Start, m.Comm = p.PID, p.Start, cmp.Or(p.Comm, m.Comm)
	return m
}

// cutFrom is the length, in bytes, from which on a command line may be one that a question keeps a part of.
const cutFrom = 4 << 10

// Still says whether a process still runs what it ran when it was shown.
func (w *processCache) Still(shown event.Member) bool {
	w.Ran.Drain()
	now := w.member(netegress.Process{PID: shown.PID, Start: shown.Start})
	if cut := len(strings.Join(shown.Argv, " ")) >= cutFrom; cut && shown.Truncated {
		now.Argv = now.Argv[:min(len(now.Argv), len(shown.Argv))]
	}
	if now.Truncated && !shown.Truncated { // by its own account
		return false
	}
	return linux.Alive(shown.PID, shown.Start) && now.Exe == shown.Exe && slices.Equal(now.Argv, shown.Argv)
}

// Grant is a grant as the log tells it, with who is let out.
func (w *processCache) Grant(g netegress.Grant) *event.GrantInfo {
	info := g.Event()
	if g.Root.PID != 0 {
		m := w.member(g.Root)
		argv := shortArgv(m.Argv)
		cut := !slices.Equal(argv, m.Argv)
		m.Argv, m.Truncated, m.Claimed = argv, m.Truncated || cut, m.Claimed && !cut
		info.Process = &m
	}
	return info
}

// runs says whether p runs what was seen executed: the same file, with the same arguments where the kernel knows their hash.
func runs(p netegress.Process, seen event.Process) bool {
	if p.ArgvHash != 0 && p.ArgvHash != seen.ArgvHash {
		return false
	}
	return p.Inode == 0 || seen.Exe != nil && seen.Exe.Inode == p.Inode && seen.Exe.Device == exec.StatDevice(p.Device)
}

// Cause is what the log tells of the process that a change of taint comes from.
func (w *processCache) Cause(c taint.Change) *event.Process {
	if c.PID == 0 {
		return nil
	}
	w.Ran.Drain()
	p := w.surely(c.PID, c.Start)
	p.PID, p.Start = c.PID, c.Start
	if chain := w.ancestry(c.PID); chain != nil && linux.Alive(c.PID, c.Start) {
		p.Ancestry = chain
	}
	return &p
}

// parentsOf are the command lines of a process's parents in its container, as a cause of taint has them.
func parentsOf(p event.Process) []string {
	const most, argument, line = 8, 80, 160 // of parents; bytes
	var all []string
	for _, a := range p.Ancestry {
		if !a.Inside || len(all) == most {
			break
		}
		m := event.Member{Comm: a.Comm, Argv: a.Argv}
		all = append(all, m.Command(argument, line))
	}
	return all
}

// ancestry is the parent chain of a live process, up to the host's first one.
func (w *processCache) ancestry(pid int) []event.Ancestor {
	const most = 16
	st, err := linux.ReadStat(pid)
	if err != nil {
		return nil
	}
	var chain []event.Ancestor
	for len(chain) < most && st.PPID > 0 {
		if st, err = linux.ReadStat(st.PPID); err != nil {
			break
		}
		a := event.Ancestor{PID: st.PID, Start: st.Start, Comm: st.Comm, Inside: w.inside(st.PID)}
		if ran := w.surely(st.PID, st.Start); ran.PID != 0 && a.Inside {
			a.Start, a.Argv = ran.Start, shortArgv(ran.Argv)
			if ran.Exe != nil {
				a.Exe = ran.Exe.Path
			}
		}
		chain = append(chain, a)
	}
	return chain
}

// inside says whether a process is in a container.
func (w *processCache) inside(pid int) bool {
	path, err := linux.CgroupOf(pid)
	if err != nil {
		return false
	}
	if _, ok := linux.CgroupChild(path, w.Parents()); ok {
		return true
	}
	_, alone := w.Innermost(path)
	return alone
}

// shortArgv cuts arguments to what is told of a process beside another.
func shortArgv(argv []string) []string {
	const most = 4 << 10 // bytes
	room := most
	for i, arg := range argv {
		if room -= len(arg) + 1; room < 0 {
			return append(slices.Clone(argv[:i]), strings.ToValidUTF8(arg[:max(0, len(arg)+room)], "")+"…")
		}
	}
	return argv
}
