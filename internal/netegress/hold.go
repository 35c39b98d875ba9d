package netegress

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
	"weir/internal/linux"

	"weir/internal/taint"
)

func (a Ask) key() egressHoldKey {
	return egressHoldKey{Tgid: uint32(a.Process.PID), Dest: a.To.raw()}
}

// ErrOver says that nobody asks any more.
var ErrOver = errors.New("the question is over")

var errFailed = errors.New("the call has failed meanwhile")

const (
	// settleTime is how long Hold waits until a process stands still. It does so as soon as its threads are on a processor
	// again; one that sleeps where it cannot be frozen is looked at later.
	settleTime  = 250 * time.Millisecond
	settleFirst = 500 * time.Microsecond // until the first look; each further one takes twice as long: many may be waited for
)

// Hold freezes a process whose call waits for a verdict, in a cgroup of its own, until Grant, Refuse or Wake. Nobody sees it,
// and only who may write cgroups can thaw it. Where it cannot be frozen its call fails and the question stays; ErrOver says
// that there is no call.
func (e *Egress) Hold(a Ask) error {
	g, err := e.freeze(a)
	if err != nil {
		return err
	}
	for wait := settleFirst; !linux.CgroupFrozen(g.Cgroup) && wait < settleTime; wait *= 2 {
		time.Sleep(wait)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var was egressHold
	err = e.change(a.key(), func(h *egressHold) bool {
		was = *h
		h.Turn, h.State = 0, egressHoldStateHOLD_FROZEN
		return was.Start == a.Process.Start && waits(was)
	})
	if err == nil && was.Start != a.Process.Start {
		return ErrOver // answered meanwhile
	}
	stopped := was.State == egressHoldStateHOLD_STOPPED
	if stopped {
		e.see(a)
	}
	if err = errors.Join(err, e.endTurn(was), unstop(a.Process, stopped)); err != nil {
		err = errors.Join(err, e.fail(a.Process, a.key()))
	}
	return err
}

// turnTime is TURN_NS of bpf/egress.bpf.c.
const turnTime = 2500 * time.Millisecond

// endTurn lets another call be restarted in the place of one that is frozen, unless its turn was over and another one has the place.
func (e *Egress) endTurn(was egressHold) error {
	if was.Turn == 0 {
		return nil
	}
	var until uint64
	if err := e.egress.Turns.Lookup(was.Turn-1, &until); err != nil || until != was.Since+uint64(turnTime) {
		return err
	}
	return e.egress.Turns.Put(was.Turn-1, uint64(0))
}

// freeze moves the asker into its cgroup, which is frozen.
func (e *Egress) freeze(a Ask) (*live, error) {
	queue, _ := e.queues.LoadOrStore(a.Container, new(sync.Mutex)) // many of one container do not keep another one's waiting
	queue.(*sync.Mutex).Lock()
	defer queue.(*sync.Mutex).Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	var h egressHold
	key := a.key()
	if err := e.egress.Held.Lookup(&key, &h); err != nil || h.Start != a.Process.Start {
		return nil, ErrOver
	}
	if !waits(h) {
		return nil, errFailed
	}
	if e.opens(a) {
		return nil, errors.Join(ErrOver, e.release(a)) // it was let out just before
	}
	g, err := e.seat(a.Container, a.Process)
	if err == nil {
		g.waits(key)
		err = e.still(g)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hold process %d: %w", a.Process.PID, err), e.fail(a.Process, key))
	}
	return g, nil
}

// still has a process stand still in its cgroup.
func (e *Egress) still(g *live) error {
	g.frozen, g.late = true, false
	if err := linux.FreezeCgroup(g.Cgroup, true); err != nil {
		return err
	}
	return e.sit(g)
}

// opens says whether a grant lets a call through, as judge of bpf/decide.h does: that of its cgroup, or of the one around it.
func (e *Egress) opens(a Ask) bool {
	leaf, err := linux.CgroupOf(a.Process.PID)
	if err != nil {
		return false
	}
	var around []*live
	for _, g := range e.grants {
		if g.Cgroup != "" && g.Container == a.Container && linux.PathWithin(leaf, g.Cgroup) {
			around = append(around, g)
		}
	}
	slices.SortFunc(around, func(a, b *live) int { return len(b.Cgroup) - len(a.Cgroup) })
	return slices.ContainsFunc(around[:min(len(around), 2)], func(g *live) bool {
		var kernel egressGrant
		return !g.over && slices.Contains(g.To, a.To) && a.Taint&^g.bits == 0 && e.egress.Grants.Lookup(g.ID, &kernel) == nil &&
			kernel.Expires > taint.Now() && kernel.Bytes > 0 && kernel.Closing == 0
	})
}

func waits(h egressHold) bool {
	return h.State != egressHoldStateHOLD_FAILED
}

// unstop has a process go on that was stopped, or is to be, since the daemon did not come in time. stopped: it is known to.
func unstop(p Process, stopped bool) error {
	if !stopped {
		if is, err := linux.PendingSignals(p.PID); err != nil || !is.Stopped && is.Own&(1<<(unix.SIGSTOP-1)) == 0 {
			return nil // also if it has ended
		}
	}
	return sendContinue(p.PID, p.Start)
}

// saw is who may have seen a process stop that had to be stopped before it was frozen, by pid: its parents. sudo and su stop
// themselves then, and nobody else wakes them.
type saw map[int]sight

// sight is of one parent.
type sight struct {
	start uint64
	until uint64 // ns since boot
}

// sawTime is how long a parent may take to see that its child had stopped.
const sawTime = 2 * time.Second

// see notes the parents of an asker that was stopped.
func (e *Egress) see(a Ask) {
	container, agent, err := e.containerDir(a.Container)
	if err != nil {
		return // it has been removed
	}
	for _, p := range parentsOf(a.Process.PID, container, agent) {
		e.saw[p.PID] = sight{p.Start, taint.Now() + uint64(sawTime)}
		e.stir()
	}
}

// wakeParents wakes parents that have stopped themselves.
func (e *Egress) wakeParents(now uint64) error {
	var errs []error
	for pid, s := range e.saw {
		if st, err := linux.ReadStat(pid); err == nil && st.Start == s.start && st.State == 'T' {
			if _, held := e.begins(pid); !held {
				errs = append(errs, sendContinue(pid, s.start))
			}
		}
		if s.until <= now {
			delete(e.saw, pid)
		}
	}
	return errors.Join(errs...)
}

// fail has calls of a process fail, without a verdict: the questions stay. What has not begun waits on.
func (e *Egress) fail(p Process, calls ...egressHoldKey) error {
	var errs []error
	stopped := false
	for _, key := range calls {
		if key.Dest == (egressDest{}) {
			continue
		}
		errs = append(errs, e.change(key, func(h *egressHold) bool {
			fails := waits(*h) && same(p.Start, h.Start)
			stopped = stopped || fails && h.State == egressHoldStateHOLD_STOPPED
			h.State = egressHoldStateHOLD_FAILED
			return fails
		}))
	}
	return errors.Join(append(errs, e.thaw(p, stopped))...)
}

// begins says whether a process waits to begin what it has executed, and when it started.
func (e *Egress) begins(pid int) (start uint64, waiting bool) {
	var h egressHold
	waiting = e.egress.Held.Lookup(&egressHoldKey{Tgid: uint32(pid)}, &h) == nil && waits(h) && linux.Alive(pid, h.Start)
	return h.Start, waiting
}

// thaw lets a process go on, unless it waits to begin.
func (e *Egress) thaw(p Process, stopped bool) error {
	if _, held := e.begins(p.PID); held {
		return nil
	}
	err := unstop(p, stopped) // first: what stops it once it goes on, as Ctrl-Z does, is meant
	if g := e.seatOf(p); g != nil {
		err = errors.Join(err, g.thaw())
	}
	return err
}

// Refuse carries out a verdict that denies: the process gets EPERM, now and for
// every further try to reach the same destination, for five minutes (REFUSAL_NS of
// bpf/hold.h). A held one goes on for it.
func (e *Egress) Refuse(a Ask) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	key, was := a.key(), egressHold{}
	err := e.egress.Held.Lookup(&key, &was)
	switch {
	case err == nil && was.Start == a.Process.Start:
		err = e.egress.Refusals.Put(&key, &egressRefusal{Start: was.Start, Since: taint.Now()})
		err = errors.Join(err, bpfobj.Delete(e.egress.Held, key)) // afterwards, or the call would ask anew in between
		err = errors.Join(err, e.endTurn(was))                    // it may not be frozen yet
	case err == nil, errors.Is(err, ebpf.ErrKeyNotExist): // nobody asks any more
		was, err = egressHold{}, nil
	}
	if err != nil {
		err = fmt.Errorf("refuse: %w", err)
	}
	return errors.Join(err, e.resume(a, was))
}

// change writes a question back if fn says so; that it is gone is no error. Only
// one at a time, or a verdict could be overwritten.
func (e *Egress) change(key egressHoldKey, fn func(*egressHold) bool) error {
	var h egressHold
	err := e.egress.Held.Lookup(&key, &h)
	if err == nil && fn(&h) {
		err = e.egress.Held.Update(&key, &h, ebpf.UpdateExist)
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("change question: %w", err)
	}
	return nil
}

// Forgive drops all refusals that stand, after the mode has changed.
func (e *Egress) Forgive() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return drop(e.egress.Refusals, func(egressHoldKey, egressRefusal) bool { return true })
}

// drop deletes the questions or refusals that over picks.
func drop[V any](from *ebpf.Map, over func(egressHoldKey, V) bool) error {
	gone, err := bpfobj.Keys(from, over)
	if err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return fmt.Errorf("list questions: %w", err)
	}
	if err := bpfobj.Delete(from, gone...); err != nil {
		return fmt.Errorf("delete question: %w", err)
	}
	return nil
}

// Wake drops the question without an answer: the call is judged anew.
func (e *Egress) Wake(a Ask) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.release(a)
}

// Kill carries out a denial of a command that has not begun.
func (e *Egress) Kill(a Ask) error {
	key := a.key()
	return errors.Join(killProcess(a.Process.PID, a.Process.Start), bpfobj.Delete(e.egress.Held, key))
}

func (e *Egress) release(a Ask) error {
	key := a.key()
	var was egressHold
	if err := e.egress.Held.LookupAndDelete(&key, &was); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete question: %w", err)
	}
	return e.resume(a, was)
}

// resume lets a held asker go on with its call.
func (e *Egress) resume(a Ask, was egressHold) error {
	if !a.Held {
		return nil
	}
	return e.thaw(a.Process, was.State == egressHoldStateHOLD_STOPPED)
}

func (e *Egress) eachHold(fn func(egressHoldKey, egressHold)) error {
	err := bpfobj.Each(e.egress.Held, fn)
	if err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return fmt.Errorf("list questions: %w", err)
	}
	return nil
}
