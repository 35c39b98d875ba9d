package taint

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/linux"
)

// lasting is how long the taint of a cgroup stays in force, in ns, after the
// cgroup has been removed: what its sockets have queued goes on trying to leave.
// A parent lasts longer than its containers, or a walk would not come to them.
const (
	lasting       = uint64(3600e9)
	parentLasting = 2 * lasting
)

// noPolicy is no slot of policies: to what names it nothing is open.
const noPolicy = ^uint32(0)

// gone is a cgroup that has been removed, and whose state is still in force.
type gone struct {
	at     uint64 // when it was found so, ns since boot
	parent bool
	alone  bool // programs are attached to it, too
}

// Gone drops what the kernel has of a container whose cgroup has been removed; its
// taint stays on disk, for one that is made again under the same path (B45).
func (s *State) Gone(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.known(id)
	if err != nil || r.CgroupID == 0 {
		return err
	}
	if _, err := linux.CgroupID(r.Cgroup); err == nil {
		return nil // it has been made again meanwhile
	}
	if err := s.inherit(r, r.CgroupID); err != nil {
		return err
	}
	if err := s.drop(r.CgroupID); err != nil {
		return err
	}
	r.CgroupID, r.Agent, r.Gone = 0, 0, time.Now().UTC()
	if r.Bits != 0 || r.unsaved {
		return s.store(r)
	}
	delete(s.containers, id)
	return s.erase(id)
}

// Escapes says whether a task has left its container since the machine started, or may have.
func (s *State) Escapes() (bool, error) {
	var n uint64
	if err := s.objects.Escapes.Lookup(uint32(0), &n); err != nil {
		return false, fmt.Errorf("ask whether tasks left their containers: %w", err)
	}
	return n != 0, nil
}

// InForce says whether the kernel has taint, or a container by itself, though nothing on disk may know it: also of a cgroup that has been
// removed, whose sockets may wait in a message for somebody outside.
func (s *State) InForce() (some bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.kernel.eachState(func(_ uint64, e cgroupState) {
		some = some || e.Taint != 0 || e.Flags&cgroupStateFlagSTATE_ALONE != 0
	})
	return some, err
}

// inherit takes up what a program has tainted a container's cgroup with before that was removed, and nobody could be told of.
func (s *State) inherit(r *record, cgroup uint64) error {
	e, err := s.entry(cgroup)
	if err != nil {
		return err
	}
	s.found(r, Bits(e.Taint)|s.through(cgroup), "found when its cgroup was removed")
	return nil
}

// found adds bits that a program has set, and nobody was told of.
func (s *State) found(r *record, bits Bits, why string) {
	more := bits &^ r.Bits
	if more == 0 {
		return
	}
	s.logger.Warnf("taint of %s: programs had set %v: %s", r.ID, more.Names(), why)
	r.add(more, r.Since) // it may be as old as that
	r.Since, r.By, r.Why = time.Now().UTC(), "kernel", why
	r.add(0, r.Since)
	r.because(more, event.Cause{At: r.Since, Source: "kernel", Why: why})
	r.unsaved = true
}

// drop takes a cgroup's state out of the kernel: at once if it is no parent and
// there is no taint in it, else when the last packet has been given up. Until then it has no policy of its own: the slot is another's (B96).
func (s *State) drop(id uint64) error {
	e, err := s.entry(id)
	if err != nil {
		return err
	}
	parent, alone := e.Flags&cgroupStateFlagSTATE_PARENT != 0, e.Flags&cgroupStateFlagSTATE_ALONE != 0
	if parent || e.Taint != 0 {
		s.removed[id] = gone{at: Now(), parent: parent, alone: alone}
		if e.Policy == 0 {
			return nil
		}
		e.Policy = noPolicy
		return s.put(id, e)
	}
	if alone {
		if err := s.unlink(id); err != nil {
			return err
		}
	}
	return s.delete(id)
}

func (s *State) delete(id uint64) error {
	return s.Change(func() error { return s.kernel.deleteState(id) })
}

func (o *cgroupObjects) deleteState(id uint64) error {
	if err := ignoreNoKey(o.Cgroups.Delete(id)); err != nil {
		return fmt.Errorf("delete state of cgroup %d: %w", id, err)
	}
	return nil
}

// Sweep deletes the state of cgroups that were removed long ago, and lets go of
// the programs that were attached to them.
func (s *State) Sweep() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, g := range s.removed {
		if age := Now() - g.at; age < lasting || g.parent && age < parentLasting {
			continue
		}
		if g.parent || g.alone {
			if err := s.unlink(id); err != nil {
				return err
			}
		}
		if err := s.delete(id); err != nil {
			return err
		}
		delete(s.removed, id)
	}
	return s.sweepStarts()
}

func (s *State) unlink(id uint64) error { return s.Links.Drop("-" + strconv.FormatUint(id, 10)) }

// findRemoved notes which cgroups of the kernel's books are there no more.
func (s *State) findRemoved() error {
	var all []uint64
	err := s.kernel.eachState(func(id uint64, e cgroupState) {
		if e.Flags&cgroupStateFlagSTATE_GRANT == 0 { // grants have books of their own
			all = append(all, id)
		}
	})
	if err != nil {
		return err
	}
	for _, id := range all {
		if _, err := linux.CgroupPath(id); !errors.Is(err, unix.ESTALE) && !errors.Is(err, unix.ENOENT) {
			continue
		}
		if err := s.drop(id); err != nil {
			return err
		}
	}
	return nil
}

// atOnce is how many states are read with one call.
const atOnce = 1024

func (o *cgroupObjects) eachState(f func(id uint64, e cgroupState)) error {
	ids, states := make([]uint64, atOnce), make([]cgroupState, atOnce)
	for cursor := (ebpf.MapBatchCursor{}); ; {
		n, err := o.Cgroups.BatchLookup(&cursor, ids, states, nil)
		for i := range n {
			f(ids[i], states[i])
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil // that was the last
		}
		if err != nil {
			return fmt.Errorf("list states of cgroups: %w", err)
		}
	}
}
