package netegress

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"weir/internal/cgroup"
	"weir/internal/netegress/family"
	"weir/internal/procfs"
	"weir/internal/taint"
)

func (a Ask) key() egressHoldKey {
	return egressHoldKey{Tgid: uint32(a.Process.PID), Dest: a.To.raw()}
}

// Refuse carries out a verdict that denies: the process gets EPERM, now and for
// every further try to reach the same destination, for refusalStands. A held one
// is woken for it.
func (e *Egress) Refuse(a Ask) error {
	err := e.change(a.key(), func(h *egressHold) bool {
		if h.Start != a.Process.Start {
			return false
		}
		h.Verdict, h.Since = egressHoldVerdictHOLD_DENIED, taint.Now()
		return true
	})
	if err != nil {
		return err
	}
	return e.wake(a)
}

// change writes a question back if fn says so; that it is gone is no error. Only
// one at a time, or a verdict could be overwritten.
func (e *Egress) change(key egressHoldKey, fn func(*egressHold) bool) error {
	e.wakeMu.Lock()
	defer e.wakeMu.Unlock()
	var h egressHold
	err := e.egress.Holds.Lookup(&key, &h)
	if err == nil && fn(&h) {
		err = e.egress.Holds.Update(&key, &h, ebpf.UpdateExist)
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("change question: %w", err)
	}
	return nil
}

// excuse is for the other threads of a process that is woken for one: that their
// calls are tried again is not their family's doing (B38).
func (e *Egress) excuse(a Ask) error {
	var others []egressHoldKey
	err := e.eachHold(func(key egressHoldKey, h egressHold) {
		if int(key.Tgid) == a.Process.PID && h.Restarts > 0 {
			others = append(others, key)
		}
	})
	for _, key := range others {
		err = errors.Join(err, e.change(key, func(h *egressHold) bool {
			h.Restarts = 0
			return true
		}))
	}
	return err
}

// Forgive drops all refusals that stand, after the mode has changed.
func (e *Egress) Forgive() error { return e.dropHolds(refused) }

func refused(_ egressHoldKey, h egressHold) bool { return h.Verdict == egressHoldVerdictHOLD_DENIED }

// dropHolds deletes the questions that over picks.
func (e *Egress) dropHolds(over func(egressHoldKey, egressHold) bool) error {
	var gone []egressHoldKey
	err := e.eachHold(func(key egressHoldKey, h egressHold) {
		if over(key, h) {
			gone = append(gone, key)
		}
	})
	if err != nil {
		return err
	}
	for _, key := range gone {
		if err := deleted(e.egress.Holds.Delete(&key)); err != nil {
			return fmt.Errorf("delete question: %w", err)
		}
	}
	return nil
}

// Wake drops the question without an answer: the call is judged anew.
func (e *Egress) Wake(a Ask) error { return e.release(a) }

// Kill carries out a denial of a command that has not begun.
func (e *Egress) Kill(a Ask) error {
	key := a.key()
	return errors.Join(family.Kill(a.Process.PID, a.Process.Start), deleted(e.egress.Holds.Delete(&key)))
}

func (e *Egress) release(a Ask) error {
	key := a.key()
	if err := deleted(e.egress.Holds.Delete(&key)); err != nil {
		return fmt.Errorf("delete question: %w", err)
	}
	return e.wake(a)
}

func (e *Egress) eachHold(fn func(egressHoldKey, egressHold)) error {
	var key egressHoldKey
	var h egressHold
	it := e.egress.Holds.Iterate()
	for it.Next(&key, &h) {
		fn(key, h)
	}
	if err := it.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return fmt.Errorf("list questions: %w", err)
	}
	return nil
}

// Adopt takes over what an earlier daemon left: its grants, and its questions,
// which it returns so that they are asked again. What is held by a process that
// stands outside every container is released.
func (e *Egress) Adopt() ([]Ask, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.adoptGrants(); err != nil {
		return nil, err
	}
	var asks []Ask
	var errs []error
	err := e.eachHold(func(key egressHoldKey, h egressHold) {
		if h.Verdict != egressHoldVerdictHOLD_PENDING || !procfs.Alive(int(key.Tgid), h.Start) {
			return
		}
		a := Ask{To: destOf(key.Dest), Held: h.Stopped != 0, Exec: key.Dest == egressDest{}, Process: Process{PID: int(key.Tgid), Start: h.Start}}
		if err := e.fill(&a); err != nil {
			errs = append(errs, err, e.release(a))
			return
		}
		asks = append(asks, a)
	})
	return asks, errors.Join(append(errs, err)...)
}

// fill finds out what a record of the kernel would have said of the asker.
func (e *Egress) fill(a *Ask) error {
	path, err := cgroup.Of(a.Process.PID)
	if err != nil {
		return fmt.Errorf("adopt question of process %d: %w", a.Process.PID, err)
	}
	if a.Process.Cgroup, err = cgroup.ID(path); err != nil {
		return err
	}
	for _, c := range e.opts.State.List() {
		if cgroup.Below(path, c.Cgroup) {
			a.Container, a.Taint = c.CgroupID, c.Taint
		}
	}
	if a.Container == 0 {
		return fmt.Errorf("adopt question of process %d: it is in no container", a.Process.PID)
	}
	st, err := procfs.ReadStat(a.Process.PID)
	if err != nil {
		return err
	}
	a.Process.Comm = st.Comm
	if a.Process.UID, err = procfs.UID(a.Process.PID); err != nil {
		return err
	}
	fd, err := procfs.Open(a.Process.PID, a.Process.Start)
	if err != nil {
		return err
	}
	defer fd.Close()
	var task egressTask
	if err := e.egress.Tasks.Lookup(uint32(fd.Fd()), &task); err != nil {
		return nil // executed before the sensor ran: not known what
	}
	p := &a.Process
	p.ExecPID, p.ExecStart, p.Device, p.Inode, p.ArgvHash = int(task.ExecTgid), task.ExecStart, task.Device, task.Inode, task.ArgvHash
	return nil
}

// adoptGrants rebuilds the books from the kernel's.
func (e *Egress) adoptGrants() error {
	places, err := e.opts.State.Grants()
	if err != nil {
		return err
	}
	at := map[uint64]uint64{}
	for cg, id := range places {
		at[id] = cg
	}
	to := map[uint64][]Destination{}
	var d egressGrantDest
	var use egressDestUse
	dests := e.egress.GrantDests.Iterate()
	for dests.Next(&d, &use) {
		to[d.Grant] = append(to[d.Grant], destOf(d.Dest))
	}
	if err := dests.Err(); err != nil {
		return fmt.Errorf("list destinations of grants: %w", err)
	}
	var id uint64
	var k egressGrant
	grants := e.egress.Grants.Iterate()
	for grants.Next(&id, &k) {
		g := &live{Grant: Grant{ID: id, State: "made", Kind: "mark", To: to[id], Bytes: k.Bytes, Expires: wall(k.Expires)}, expires: k.Expires, top: int(k.Owner), bits: taint.Bits(k.Taint)}
		if k.Owner == anybody {
			g.top = 0
		}
		if g.cgroupID = at[id]; g.cgroupID != 0 {
			g.top = int(k.Top)
		}
		e.place(g)
		delete(places, g.cgroupID)
		e.grants[id] = g
	}
	if err := grants.Err(); err != nil {
		return fmt.Errorf("list grants: %w", err)
	}
	for cg := range places { // revoked in the kernel: only the place is left
		g := &live{Grant: Grant{ID: places[cg], Kind: "cgroup", State: "revoked"}, cgroupID: cg, over: true}
		e.place(g)
		if err := e.opts.State.DropGrant(cg); err != nil {
			return err
		}
		e.grants[g.ID] = g
	}
	return e.adoptClaims()
}

// place finds out where a grant is, and whether its command is still there.
func (e *Egress) place(g *live) {
	st, err := procfs.ReadStat(g.top)
	if g.cgroupID == 0 {
		if err == nil {
			g.start = st.Start
		}
		if path, err := cgroup.Of(g.top); err == nil {
			g.Container = e.containerAt(path)
		}
		return
	}
	if err == nil && st.Start < g.ID { // else another process has its number: ids tell when grants were made
		g.start = st.Start
	}
	path, err := cgroup.Path(g.cgroupID)
	if err != nil {
		return // removed: nothing can be in it
	}
	g.Kind, g.Cgroup, g.Container = "cgroup", path, e.containerAt(path)
}

// containerAt is the id of the container that a cgroup belongs to, 0 if of none.
func (e *Egress) containerAt(path string) uint64 {
	for _, c := range e.opts.State.List() {
		if cgroup.Below(path, c.Cgroup) {
			return c.CgroupID
		}
	}
	return 0
}

func (e *Egress) adoptClaims() error {
	var key egressClaimKey
	var c egressClaim
	it := e.egress.Claims.Iterate()
	for it.Next(&key, &c) {
		g := e.grants[c.Grant]
		if g == nil {
			g = &live{Grant: Grant{ID: c.Grant, State: "made", Kind: "claim", Container: key.Container, Bytes: c.Bytes, Expires: wall(c.Expires)}, expires: c.Expires, bits: taint.Bits(c.Taint)}
			e.grants[c.Grant] = g
		}
		g.claims = append(g.claims, key)
		if to := destOf(key.Dest); !slices.Contains(g.To, to) {
			g.To = append(g.To, to)
		}
		if key.Kind == egressClaimKindCLAIM_PROCESS && !slices.Contains(g.PIDs, int(key.Tag)) {
			g.PIDs = append(g.PIDs, int(key.Tag))
		}
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	e.lastID = taint.Now()
	return nil
}
