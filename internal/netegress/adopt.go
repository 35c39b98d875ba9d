package netegress

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
	"weir/internal/linux"

	"weir/internal/taint"
)

// Adopt takes over what an earlier daemon left: its grants, and its questions,
// which it returns so that they are asked again. What is frozen and does not wait for
// an answer, or stands outside every container, goes on.
func (e *Egress) Adopt() ([]Ask, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.adoptGrants(); err != nil {
		return nil, err
	}
	var asks []Ask
	var errs []error
	waiting := map[*live]bool{}
	err := e.eachHold(func(key egressHoldKey, h egressHold) {
		if !linux.Alive(int(key.Tgid), h.Start) {
			return
		}
		a := Ask{To: destOf(key.Dest), Held: waits(h), Exec: key.Dest == egressDest{}, Process: Process{PID: int(key.Tgid), Start: h.Start}}
		if err := e.fill(&a); err != nil {
			errs = append(errs, err, e.release(a))
			return
		}
		if path, err := linux.CgroupOf(a.Process.PID); err == nil && a.Held {
			e.recognise(path, a.Process)
			if e.opens(a) { // it was let out just before
				errs = append(errs, e.release(a))
				return
			}
			if g := e.seatOf(a.Process); g != nil {
				g.waits(key)
				waiting[g] = true
			}
		}
		asks = append(asks, a)
	})
	for _, g := range e.grants {
		switch {
		case g.cgroupID != 0 && g.root.PID == 0 && !g.over:
			errs = append(errs, e.end(g, "revoked"))
		case !waiting[g]: // it was answered, and was to go on
			errs = append(errs, g.thaw())
		}
	}
	return asks, errors.Join(append(errs, err)...)
}

// marked is a grant of marked sockets, as the kernel has it.
func marked(id uint64, k egressGrant, to ...Destination) *live {
	return &live{
		Grant:   Grant{ID: id, State: "made", Kind: "mark", Container: k.Container, To: to, Bytes: k.Bytes, Expires: wall(k.Expires)},
		expires: k.Expires, bits: taint.Bits(k.Taint),
	}
}

// recognise finds the cgroup that a process was frozen in by an earlier daemon.
func (e *Egress) recognise(path string, p Process) {
	for _, g := range e.grants {
		if g.Cgroup == path && g.root.PID == 0 {
			g.root, g.Root, g.PIDs, g.frozen = p, p, []int{p.PID}, true
		}
	}
}

// fill finds out what a record of the kernel would have said of the asker.
func (e *Egress) fill(a *Ask) error {
	path, err := linux.CgroupOf(a.Process.PID)
	if err != nil {
		return fmt.Errorf("adopt question of process %d: %w", a.Process.PID, err)
	}
	if a.Process.Cgroup, err = linux.CgroupID(path); err != nil {
		return err
	}
	for _, c := range e.opts.State.List() {
		if linux.PathWithin(path, c.Cgroup) {
			a.Container, a.Taint = c.CgroupID, c.Taint
		}
	}
	if a.Container == 0 {
		return fmt.Errorf("adopt question of process %d: it is in no container", a.Process.PID)
	}
	st, err := linux.ReadStat(a.Process.PID)
	if err != nil {
		return err
	}
	a.Process.Comm = st.Comm
	if a.Process.UID, err = linux.UID(a.Process.PID); err != nil {
		return err
	}
	fd, err := linux.OpenProcess(a.Process.PID, a.Process.Start)
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
	err = bpfobj.Each(e.egress.GrantDests, func(d egressGrantDest, _ egressDestUse) {
		to[d.Grant] = append(to[d.Grant], destOf(d.Dest))
	})
	if err != nil {
		return fmt.Errorf("list destinations of grants: %w", err)
	}
	err = bpfobj.Each(e.egress.Grants, func(id uint64, k egressGrant) {
		g := marked(id, k, to[id]...)
		g.over, g.until = k.Expires == intruded, map[Destination]uint64{}
		for _, d := range g.To {
			g.until[d] = k.Expires
		}
		if k.Owner != anybody {
			g.root.PID = int(k.Owner)
		}
		if g.cgroupID = at[id]; g.cgroupID != 0 {
			g.root.PID = int(k.Top)
		}
		if e.place(g); k.Owner == anybody {
			g.Container = k.Container
		}
		delete(places, g.cgroupID)
		e.keep(id, g)
	})
	if err != nil {
		return fmt.Errorf("list grants: %w", err)
	}
	for cg := range places { // of a command that is held; or revoked in the kernel, and only the place is left
		g := &live{Grant: Grant{ID: places[cg], Kind: "cgroup", To: to[places[cg]]}, cgroupID: cg}
		e.place(g)
		e.keep(g.ID, g)
	}
	known, now := map[string]bool{}, e.newID()
	for _, g := range e.grants {
		known[g.Cgroup] = true
	}
	for _, c := range e.opts.State.List() {
		if err := e.adoptOthers(c.Cgroup, c.CgroupID, known, now); err != nil {
			return err
		}
	}
	if err := e.adoptClaims(); err != nil {
		return err
	}
	return e.loseCleared(func(container uint64) (taint.Bits, bool) {
		st, known := e.opts.State.ByCgroup(container)
		return st.Taint, known
	})
}

// loseCleared takes taint from grants and claims that their container, as has says, has no more: a daemon was killed when it had just cleared
// it.
func (e *Egress) loseCleared(has func(container uint64) (taint.Bits, bool)) error {
	var errs []error
	for _, g := range e.grants {
		if bits, known := has(g.Container); known && g.Container != 0 && !g.over && g.bits&^bits != 0 {
			if err := e.lose(g, g.bits&^bits); err != nil {
				e.opts.Logger.WithError(err).Error("take cleared taint from a grant")
				errs = append(errs, e.end(g, "revoked"))
			}
		}
	}
	return errors.Join(errs...)
}

// adoptAnswers takes those grants of sockets that tainted their container into the books whose record was lost, or is still to come, so that
// they end. It needs mu.
func (e *Egress) adoptAnswers() error {
	unknown := map[uint64]*live{}
	err := bpfobj.Each(e.egress.Grants, func(id uint64, k egressGrant) {
		if k.Owner == anybody && e.grants[id] == nil {
			unknown[id] = marked(id, k)
		}
	})
	if err != nil || len(unknown) == 0 {
		return err
	}
	err = bpfobj.Each(e.egress.GrantDests, func(d egressGrantDest, _ egressDestUse) {
		if g := unknown[d.Grant]; g != nil {
			g.To = append(g.To, destOf(d.Dest))
		}
	})
	for id, g := range unknown {
		e.keep(id, g)
	}
	return err
}

// adoptOthers finds those cgroups below a path that were made for a command before now, and that the kernel's books do not have
// yet, or no more: they open nothing, and are removed as soon as they are empty.
func (e *Egress) adoptOthers(path string, container uint64, known map[string]bool, now uint64) error {
	children, err := linux.CgroupChildren(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	for child := range children {
		_, number, of := strings.Cut(child[len(path):], "/"+seatName)
		id, err := strconv.ParseUint(number, 10, 64)
		if of && err == nil && id < now && !known[child] && e.grants[id] == nil {
			e.keep(id, &live{Grant: Grant{ID: id, Kind: "cgroup", Container: container, Cgroup: child}, frozen: linux.CgroupToFreeze(child), over: true})
		}
		if err := e.adoptOthers(child, container, known, now); err != nil {
			return err
		}
	}
	return nil
}

// place finds out where a grant is, and whether its command is still there.
func (e *Egress) place(g *live) {
	st, err := linux.ReadStat(g.root.PID)
	if g.cgroupID == 0 {
		if err == nil {
			g.root.Start = st.Start
		}
		if path, err := linux.CgroupOf(g.root.PID); err == nil {
			g.Container = e.containerAt(path)
		}
		return
	}
	if err == nil && st.Start < g.ID { // else another process has its number: ids tell when grants were made
		g.root.Start = st.Start
	}
	g.Kind = "cgroup"
	path, err := linux.CgroupPath(g.cgroupID)
	if err != nil {
		return // removed: nothing can be in it
	}
	g.Cgroup, g.Container, g.Root = path, e.containerAt(path), g.root
	g.frozen = linux.CgroupToFreeze(path)
}

// containerAt is the id of the container that a cgroup belongs to, 0 if of none.
func (e *Egress) containerAt(path string) uint64 {
	for _, c := range e.opts.State.List() {
		if linux.PathWithin(path, c.Cgroup) {
			return c.CgroupID
		}
	}
	return 0
}

func (e *Egress) adoptClaims() error {
	err := bpfobj.Each(e.egress.Claims, func(key egressClaimKey, c egressClaim) {
		g := e.grants[c.Grant]
		if g == nil {
			g = &live{Grant: Grant{ID: c.Grant, State: "made", Kind: "claim", Container: key.Container, Bytes: c.Bytes, Expires: wall(c.Expires)}, expires: c.Expires, bits: taint.Bits(c.Taint)}
			e.keep(c.Grant, g)
		}
		g.claims = append(g.claims, key)
		if to := destOf(key.Dest); !slices.Contains(g.To, to) {
			g.To = append(g.To, to)
		}
		if key.Kind == egressClaimKindCLAIM_PROCESS && !slices.Contains(g.PIDs, int(uint32(key.Tag))) {
			g.PIDs = append(g.PIDs, int(uint32(key.Tag)))
		}
	})
	if err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	e.lastID = taint.Now()
	return nil
}
