package netegress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
	"weir/internal/linux"

	"weir/internal/policy"

	"weir/internal/taint"
)

const (
	sweepEvery = 100 * time.Millisecond
	sweepOver  = 500 * time.Millisecond // while all are over
	// maxLooks is how many of the frozen are looked after in one sweep: reading their signals is what costs most.
	maxLooks  = 64
	tidyEvery = 5 * time.Second
	// lingering is how long what a command has queued may still leave after its
	// last process has ended.
	lingering = 5 * time.Second
)

// record keeps the books of what the kernel did, and passes it on.
func (e *Egress) record(r *egressRecord) {
	switch r.Kind {
	case egressRecordKindRECORD_CLAIM:
		e.claimed(r)
	case egressRecordKindRECORD_SPENT:
		e.spent(r.Grant)
	case egressRecordKindRECORD_TAINT:
		e.answers(r)
	}
	e.opts.Handle.Recorded(recordOf(r))
}

// wall is the time of day at ns since boot.
func wall(boot uint64) time.Time {
	return time.Now().Add(time.Duration(boot - taint.Now())).UTC()
}

// spent ends a grant whose budget is used up; the kernel lets no more through.
func (e *Egress) spent(id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.grants[id]; g != nil && !g.over {
		if err := e.end(g, "spent"); err != nil {
			e.opts.Logger.WithError(err).Error("end grant")
		}
	}
}

// anybody is OWNER_ANYBODY of bpf/types.h.
const anybody = ^uint32(0)

// answers takes the grant of a socket that tainted its container into the books: it may finish what it began.
func (e *Egress) answers(r *egressRecord) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var kernel egressGrant
	if err := e.egress.Grants.Lookup(r.Grant, &kernel); err != nil || kernel.Owner != anybody {
		return // there is none, or it is of a verdict
	}
	g := marked(r.Grant, kernel, destOf(r.Dest))
	g.Container = r.Container
	e.keep(g.ID, g)
	e.opts.Handle.GrantChanged(g.Grant)
}

// claimed turns a claim that was taken up into a grant of marked sockets.
func (e *Egress) claimed(r *egressRecord) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.grants[r.Grant]
	if g == nil {
		return
	}
	mine := g.claims[:0]
	for _, key := range g.claims {
		if key.Kind == egressClaimKindCLAIM_PROCESS || key.Dest == r.Dest {
			_ = e.egress.Claims.Delete(&key) // gone already when it was the one that was taken
			continue
		}
		mine = append(mine, key)
	}
	g.claims = mine
	g.Kind, g.State, g.PIDs, g.root = "mark", "claimed", []int{int(r.Tgid)}, processOf(r)
	g.Root = g.root
	var kernel egressGrant
	if err := e.egress.Grants.Lookup(g.ID, &kernel); err == nil {
		g.expires = kernel.Expires
		g.Expires = wall(g.expires)
		if stale := g.stale(kernel); stale != 0 {
			if err := e.lessen(g, stale); err != nil {
				e.opts.Logger.WithError(err).Error("take cleared taint from a grant")
			}
		}
	}
	e.opts.Handle.GrantChanged(g.Grant)
}

// sweep ends what is over: grants whose time or command has ended, claims that
// nobody took, questions whose process is gone. What cannot be ended is told, once
// until it can be: it must not keep the rest from ending.
func (e *Egress) sweep(ctx context.Context) {
	tidied := time.Now()
	empty := make(chan map[uint64]string)
	var removing sync.WaitGroup
	removing.Go(func() { e.removeEach(ctx, empty) })
	defer removing.Wait()
	defer close(empty)
	failing := map[string]bool{}
	try := func(what string, f func() error) {
		err := f()
		if err != nil && !failing[what] {
			e.opts.Logger.WithError(err).Error(what)
		}
		failing[what] = err != nil
	}
	for {
		every, stirred := e.rest()
		select {
		case <-ctx.Done():
			return
		case <-stirred:
		case <-time.After(every):
		}
		try("end grants", func() error {
			found, err := e.lapse()
			if len(found) == 0 {
				return err
			}
			select {
			case empty <- found:
			default: // some are still being removed
			}
			return err
		})
		try("close sockets of grants that have ended", e.closeSockets)
		if time.Since(tidied) >= tidyEvery {
			tidied = time.Now()
			try("drop what is over", e.tidy)
		}
	}
}

// keep takes a grant into the books, and has it swept. It needs mu.
func (e *Egress) keep(id uint64, g *live) {
	e.grants[id] = g
	e.stir()
}

// stir has the sweep begin again, if it rests.
func (e *Egress) stir() {
	select {
	case e.stirred <- struct{}{}:
	default:
	}
}

// rest is how long nothing needs to be swept, and what says before that something does; nil: nothing does.
func (e *Egress) rest() (time.Duration, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.closing) > 0 || len(e.saw) > 0 {
		return sweepEvery, nil
	}
	for _, g := range e.grants {
		if !g.over {
			return sweepEvery, nil
		}
	}
	if len(e.grants) > 0 {
		return sweepOver, nil
	}
	return tidyEvery, e.stirred
}

// lapse ends what is over. It gives the cgroups of grants that have ended and are empty, by grant.
func (e *Egress) lapse() (empty map[uint64]string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := taint.Now()
	empty = map[uint64]string{}
	errs := []error{e.wakeParents(now)}
	looks := 0
	for id, g := range e.grants { // in another order each time
		switch {
		case g.late:
			errs = append(errs, g.thaw())
		case g.frozen && looks < maxLooks:
			looks++
			errs = append(errs, e.lookAfter(g))
		}
		switch {
		case g.over:
			if g.Cgroup == "" {
				errs = append(errs, e.forget(id))
			} else if !linux.CgroupPopulated(g.Cgroup) {
				empty[id] = g.Cgroup
			}
		case g.State != "" && g.expires <= now && !e.taken(g, now):
			errs = append(errs, e.end(g, "expired"))
		case g.root.PID != 0 && g.Kind != "claim" && !e.running(g):
			errs = append(errs, e.finish(g, now))
		default:
			errs = append(errs, e.shut(g, now))
		}
	}
	return empty, errors.Join(errs...)
}

// shut closes the destinations whose own time is over: approving one more does not prolong them.
func (e *Egress) shut(g *live, now uint64) error {
	var errs []error
	for d, until := range g.until {
		if until > now {
			continue
		}
		if err := bpfobj.Delete(e.egress.GrantDests, egressGrantDest{Grant: g.ID, Dest: d.raw()}); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(g.until, d)
		g.To = slices.DeleteFunc(slices.Clone(g.To), func(o Destination) bool { return o == d })
	}
	return errors.Join(errs...)
}

// ending are the signals by which somebody asks a process to end.
const ending = 1<<(unix.SIGHUP-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGQUIT-1) | 1<<(unix.SIGTERM-1)

// lookAfter has a held process do what a signal asks of it: its handler runs once its call has failed. One without a handler
// ends, frozen or not.
func (e *Egress) lookAfter(g *live) error {
	if is, err := linux.PendingSignals(g.root.PID); err == nil && is.Handled&ending != 0 {
		return e.fail(g.root, g.calls...)
	}
	return unstop(g.root, false)
}

// taken says whether a claim was taken up just before it would have expired: its record is still to come, or was lost.
func (e *Egress) taken(g *live, now uint64) bool {
	var kernel egressGrant
	if g.Kind != "claim" || e.egress.Grants.Lookup(g.ID, &kernel) != nil || kernel.Expires <= now {
		return false
	}
	g.expires, g.Expires = kernel.Expires, wall(kernel.Expires)
	return true
}

// removeEach removes the cgroups that it is sent, beside all else: commands may have made thousands below. Where one cannot be
// removed, it is a while until the next try.
func (e *Egress) removeEach(ctx context.Context, empty <-chan map[uint64]string) {
	failing := false
	for some := range empty {
		err := e.remove(some, linux.RemoveCgroupTree)
		if err != nil && !failing {
			e.opts.Logger.WithError(err).Error("remove the cgroups of grants")
		}
		if failing = err != nil; !failing {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(tidyEvery):
		}
	}
}

// remove forgets the grants whose cgroups could be removed.
func (e *Egress) remove(empty map[uint64]string, tree func(path string) error) error {
	var errs []error
	for id, path := range empty {
		if err := tree(path); err != nil {
			errs = append(errs, err)
			continue
		}
		e.mu.Lock()
		errs = append(errs, e.forget(id))
		e.mu.Unlock()
	}
	return errors.Join(errs...)
}

// forget drops a grant whose cgroup is gone.
func (e *Egress) forget(id uint64) error {
	g := e.grants[id]
	delete(e.grants, id)
	if g == nil || g.cgroupID == 0 {
		return nil
	}
	return errors.Join(e.opts.State.DropGrant(g.cgroupID), bpfobj.Delete(e.egress.Grants, id))
}

// running says whether the command that was let out is still there.
func (e *Egress) running(g *live) bool {
	if g.pidfd == nil {
		return linux.Alive(g.root.PID, g.root.Start)
	}
	has, err := linux.Poll(g.pidfd.Fd(), unix.POLLIN)
	return err != nil || has == 0
}

// finish ends the grant of a command that has ended. What it left running has
// lost the grant at once (B36, B37); when nothing is left, what it queued may go.
func (e *Egress) finish(g *live, now uint64) error {
	if g.State == "" {
		return e.end(g, "")
	}
	if err := e.claimUnused(g, now); err != nil {
		return errors.Join(err, e.end(g, "ended"))
	}
	if g.Kind == "cgroup" && linux.CgroupPopulated(g.Cgroup) {
		return e.end(g, "ended")
	}
	already := false
	err := e.rewrite(g.ID, func(k *egressGrant) bool {
		if already = k.Closing != 0; already {
			return false // until it expires
		}
		g.expires = min(g.expires, now+uint64(lingering))
		k.Closing, k.Expires = 1, g.expires
		return true
	})
	switch {
	case errors.Is(err, errIntruded), errors.Is(err, ebpf.ErrKeyNotExist):
		return e.end(g, "ended")
	case err != nil:
		return errors.Join(err, e.end(g, "ended"))
	case already:
		return nil
	}
	e.closing[g.ID] = closing{g.Container, true} // somebody else has what is still open (B66)
	return nil
}

// closing is a grant whose sockets are to be closed.
type closing struct {
	container uint64
	held      bool // only those that a process still has open: what its command has sent may leave
}

// closeSockets closes those that are marked with grants that have ended (B66).
func (e *Egress) closeSockets() error {
	e.mu.Lock()
	ended := e.closing
	e.closing = map[uint64]closing{}
	e.mu.Unlock()
	if len(ended) == 0 {
		return nil
	}
	cookies := map[closing]map[uint64]bool{}
	err := bpfobj.Each(e.egress.Socks, func(cookie uint64, m egressMark) {
		c, ok := ended[m.Grant]
		if !ok {
			return
		}
		if cookies[c] == nil {
			cookies[c] = map[uint64]bool{}
		}
		cookies[c][cookie] = true
	})
	var errs []error
	if err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		errs = append(errs, fmt.Errorf("list sockets of grants: %w", err))
	}
	for c, marked := range cookies {
		path, _, err := e.containerDir(c.container)
		if err != nil {
			continue // it has been removed
		}
		errs = append(errs, closeMarked(path, marked, c.held))
	}
	err = errors.Join(errs...)
	if err != nil { // the next sweep tries again
		e.mu.Lock()
		defer e.mu.Unlock()
		for id, c := range ended {
			e.closing[id] = c
		}
	}
	return err
}

// end takes a grant away: from then on its cgroup and its marks open nothing. The kernel goes on knowing the cgroup, until it is
// removed: nobody is to wait in it, frozen, without that it is found.
func (e *Egress) end(g *live, state string) error {
	var errs []error
	var kernel egressGrant
	if err := e.egress.Grants.Lookup(g.ID, &kernel); err == nil && kernel.Expires != intruded {
		g.Bytes = max(kernel.Bytes, 0)
		if kernel.Closing != 0 && state == "expired" {
			state = "ended"
		}
	}
	errs = append(errs, bpfobj.Delete(e.egress.Grants, g.ID), e.dropClaims(g))
	for _, d := range g.To {
		errs = append(errs, bpfobj.Delete(e.egress.GrantDests, egressGrantDest{Grant: g.ID, Dest: d.raw()}))
	}
	if g.pidfd != nil {
		errs = append(errs, g.pidfd.Close())
		g.pidfd = nil
	}
	if _, held := e.begins(g.root.PID); !held {
		errs = append(errs, g.thaw())
	}
	opened := g.State != ""
	g.State, g.over = state, true
	if g.Kind != "cgroup" {
		delete(e.grants, g.ID)
	}
	if opened {
		e.closing[g.ID] = closing{g.Container, false}
		e.opts.Handle.GrantChanged(g.Grant)
	}
	return errors.Join(errs...)
}

// Revoke ends the grants of a container at once, also for open sockets; with an
// id other than 0 only that one.
func (e *Egress) Revoke(container, id uint64) error {
	return e.revoke(container, func(g *live) bool { return id == 0 || g.ID == id })
}

// RevokeLesser ends the grants of a container that were given under less taint than it has, but for one: those that somebody gave since it has
// that taint stay.
func (e *Egress) RevokeLesser(container, id uint64, bits taint.Bits) error {
	return e.revoke(container, func(g *live) bool { return g.ID != id && bits&^g.bits != 0 })
}

func (e *Egress) revoke(container uint64, which func(*live) bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	errs := []error{e.adoptAnswers()}
	for _, g := range e.grants {
		if !g.over && g.Container == container && which(g) {
			errs = append(errs, e.end(g, "revoked"))
		}
	}
	return errors.Join(errs...)
}

// Cleared takes taint that was cleared from a container's grants and claims, and from what is asked already: when it comes again, they were not
// given for it. A grant from which it cannot be taken ends.
func (e *Egress) Cleared(container uint64, bits taint.Bits) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.adoptAnswers(), e.loseEach(container, bits))
}

// loseEach is Cleared for what is in the books.
func (e *Egress) loseEach(container uint64, bits taint.Bits) error {
	for _, bit := range []taint.Bits{taint.Corruption, taint.Secret} {
		if bits&bit != 0 {
			e.cleared[clearing{container, bit}] = taint.Now()
		}
	}
	var errs []error
	for _, g := range e.grants {
		if g.over || g.Container != container {
			continue
		}
		if err := e.lose(g, bits); err != nil {
			errs = append(errs, err, e.end(g, "revoked"))
		}
	}
	return errors.Join(errs...)
}

// lose takes taint that was cleared from a grant, and what it may be claimed for.
func (e *Egress) lose(g *live, bits taint.Bits) error {
	for i := range g.unused {
		g.unused[i].ask.Taint &^= bits
	}
	g.bits, g.cleared = g.bits&^bits, g.cleared|bits
	if g.State == "" {
		return nil // nothing is open yet
	}
	return e.lessen(g, bits)
}

// clearing is a bit that was cleared of a container's taint.
type clearing struct {
	container uint64
	bit       taint.Bits
}

// clearedSince is what was cleared of a container's taint since then.
func (e *Egress) clearedSince(container, then uint64) (bits taint.Bits) {
	for _, bit := range []taint.Bits{taint.Corruption, taint.Secret} {
		if at, ok := e.cleared[clearing{container, bit}]; ok && at >= then {
			bits |= bit
		}
	}
	return bits
}

// stale is what was cleared while a claim was being taken, and the kernel's grant has all the same. More than the daemon gave it is no sign of that:
// a program adds what it lets the grant's own packets taint with (check_trust of bpf/packet.bpf.c).
func (g *live) stale(kernel egressGrant) taint.Bits { return taint.Bits(kernel.Taint) & g.cleared }

// lessen tells the kernel that a grant is not for some taint any more.
func (e *Egress) lessen(g *live, bits taint.Bits) error {
	for _, key := range g.claims { // first: one that is taken now becomes a grant
		var claim egressClaim
		err := e.egress.Claims.Lookup(&key, &claim)
		if err == nil && taint.Bits(claim.Taint)&bits != 0 {
			claim.Taint &^= uint32(bits)
			err = e.egress.Claims.Update(&key, &claim, ebpf.UpdateExist)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("write claim: %w", err)
		}
	}
	err := e.rewrite(g.ID, func(k *egressGrant) bool {
		has := taint.Bits(k.Taint)&bits != 0
		k.Taint &^= uint32(bits) // what is charged meanwhile is not counted
		return has
	})
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// Grants lists what is open or can be claimed, with the bytes that are left.
func (e *Egress) Grants() []Grant {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []Grant
	for _, g := range e.grants {
		if g.over || g.State == "" {
			continue
		}
		told := g.Grant
		var kernel egressGrant
		if e.egress.Grants.Lookup(g.ID, &kernel) == nil && kernel.Expires != intruded {
			told.Bytes = max(kernel.Bytes, 0)
		}
		all = append(all, told)
	}
	return all
}

// tidy drops questions and remembered grants of processes that are gone.
func (e *Egress) tidy() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := drop(e.egress.Held, func(key egressHoldKey, h egressHold) bool { return !linux.Alive(int(key.Tgid), h.Start) })
	err = errors.Join(err, e.adoptAnswers())
	e.queues.Clear() // who waits in one goes on waiting
	for c, all := range e.commands {
		if all[len(all)-1].until <= taint.Now() {
			delete(e.commands, c)
		}
	}
	return err
}

// CloseSockets closes the TCP and UDP sockets of a container that are older than its
// taint, and returns how many: see socket.Close.
func (e *Egress) CloseSockets(path string, p policy.Policy) (int, error) {
	return closeSockets(path, p, e.granted)
}

// granted says whether a socket is marked with a grant that lives: one that was given before was ended before.
func (e *Egress) granted(cookie uint64) bool {
	var m egressMark
	var g egressGrant
	return e.egress.Socks.Lookup(cookie, &m) == nil && e.egress.Grants.Lookup(m.Grant, &g) == nil && g.Expires > taint.Now()
}
