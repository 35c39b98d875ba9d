package netegress

import (
	"errors"
	"time"

	"weir/internal/netegress/family"
	"weir/internal/procfs"
	"weir/internal/taint"
)

// rousing is how long the parents of a woken process are looked after: they may
// learn only now that it had stopped.
const rousing = 2 * time.Second

// waiting are the parents of a process that was held, nearest first.
type waiting struct {
	parents []procfs.Stat
	until   uint64 // ns since boot
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
			err = family.Continue(p.PID, p.Start)
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
	var parents []procfs.Stat
	if box, agent, err := e.box(a.Container); err == nil {
		parents = family.Above(a.Process.PID, box, agent)
	}
	err := errors.Join(e.excuse(a), family.Continue(a.Process.PID, a.Process.Start))
	if len(parents) == 0 {
		return err
	}
	e.wakeMu.Lock()
	defer e.wakeMu.Unlock()
	e.waiting = append(e.waiting, waiting{parents, taint.Now() + uint64(rousing)})
	return errors.Join(err, e.rouse(parents))
}
