package taint

import (
	"errors"
	"strings"

	"weir/internal/cgroup"
)

// AddParent makes the children of a cgroup containers, under the policy in slot.
func (s *State) AddParent(path string, slot uint32) error {
	return s.add(path, slot, cgroupStateFlagSTATE_PARENT, func(id uint64) error {
		s.parents[path] = slot
		s.ids[path] = id
		var errs []error
		for _, r := range s.containers {
			errs = append(errs, s.keepStart(r, true))
		}
		return errors.Join(errs...)
	})
}

// AddAlone makes a cgroup a container by itself, wherever it stands. Guard then takes it in.
func (s *State) AddAlone(path string, slot uint32) error {
	return s.add(path, slot, cgroupStateFlagSTATE_ALONE, func(uint64) error { return nil })
}

// add gives a cgroup a flag and a policy. What keep does comes first, under the lock.
func (s *State) add(path string, slot uint32, flag cgroupStateFlag, keep func(id uint64) error) error {
	id, err := cgroup.ID(path)
	if err != nil {
		return err
	}
	// first what the programs look at first
	if err := s.lookAt(path, id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.entry(id)
	if err != nil {
		return err
	}
	e.Flags |= flag
	e.Policy = slot
	return errors.Join(keep(id), s.put(id, e))
}

// lookAt has the programs look at a cgroup on their way down.
func (s *State) lookAt(path string, id uint64) error {
	return s.configure(func(c *cgroupSettings) error {
		c.Levels |= levels(path)
		c.Parents |= filterBit(id)
		return nil
	})
}

// levels has the bit of a parent's level below the root. Where it cannot be told,
// because it is too deep or the root that is mounted is not the real one, it has
// all of them, and no level is passed over.
func levels(path string) uint32 {
	const realRoot = 1 // the id of a hierarchy's root
	level := len(strings.FieldsFunc(path, func(r rune) bool { return r == '/' }))
	if id, err := cgroup.ID("/"); err != nil || id != realRoot || level >= 16 {
		return ^uint32(0)
	}
	return 1 << level
}

// filterBit is a parent's bit in the filter that walks look at, as slot_of of bpf/walk.h.
func filterBit(id uint64) uint64 { return 1 << (id * 0x9e3779b97f4a7c15 >> 58) }
