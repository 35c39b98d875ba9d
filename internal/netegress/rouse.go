package netegress

import (
	"errors"
	"time"

	"weir/internal/cgroup"
	"weir/internal/procfs"
	"weir/internal/taint"
)

// rousing is how long the parents of a woken process are looked after: they may
// learn only now that it had stopped.
const rousing = 2 * time.Second

// maxParents bounds how far up they are looked for.
const maxParents = 16

// waiting are the parents of a process that was held, nearest first.
type waiting struct {
	parents []procfs.Stat
	until   uint64 // ns since boot
}

// above are the parents of a held process inside its container. sudo, su and
// shells stop themselves when their child has stopped, and only somebody else
// can wake them.
func (e *Egress) above(a Ask) []procfs.Stat {
	box, agent, err := e.box(a.Container)
	if err != nil {
		return nil
	}
	var parents []procfs.Stat
	st, err := procfs.ReadStat(a.Process.PID)
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

// rouse wakes parents that have stopped since their child was held, but for
// those that are held themselves.
func (e *Egress) rouse(parents []procfs.Stat) error {
	var errs []error
	for _, p := range parents {
		st, err := procfs.ReadStat(p.PID)
		if err != nil || st.Start != p.Start || st.State != 'T' {
			continue
		}
		held := false
		err = e.eachHold(func(key egressHoldKey, h egressHold) {
			held = held || int(key.Tgid) == p.PID && h.Verdict == egressHoldVerdictHOLD_PENDING && h.Stopped != 0
		})
		if err == nil && !held {
			err = cont(p.PID, p.Start)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// lookAfter rouses the parents of those that were woken lately.
func (e *Egress) lookAfter(now uint64) error {
	e.wakeMu.Lock()
	defer e.wakeMu.Unlock()
	var errs []error
	kept := e.waiting[:0]
	for _, w := range e.waiting {
		errs = append(errs, e.rouse(w.parents))
		if w.until > now {
			kept = append(kept, w)
		}
	}
	e.waiting = kept
	return errors.Join(errs...)
}

// wake lets a held process go on, and with it the parents that wait for it.
func (e *Egress) wake(a Ask) error {
	if !a.Held {
		return nil
	}
	parents := e.above(a)
	err := errors.Join(e.excuse(a), cont(a.Process.PID, a.Process.Start))
	if len(parents) == 0 {
		return err
	}
	e.wakeMu.Lock()
	defer e.wakeMu.Unlock()
	e.waiting = append(e.waiting, waiting{parents, taint.Now() + uint64(rousing)})
	return errors.Join(err, e.rouse(parents))
}

// wakeUp lets a held process go on, and the parents that have stopped with it:
// for the watcher, who knows no containers.
func wakeUp(pid int, start uint64) error {
	var parents []procfs.Stat
	st, err := procfs.ReadStat(pid)
	for err == nil && len(parents) < maxParents {
		if st, err = procfs.ReadStat(st.PPID); err != nil || st.State != 'T' {
			break
		}
		parents = append(parents, st)
	}
	errs := []error{cont(pid, start)}
	for _, p := range parents {
		errs = append(errs, cont(p.PID, p.Start))
	}
	return errors.Join(errs...)
}
