package taint

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"weir/internal/linux"
)

// AddParent makes the children of a cgroup containers, under the policy in slot. It returns those that may have run before.
func (s *State) AddParent(path string, slot uint32) (late []string, err error) {
	fresh, err := s.add(path, slot, cgroupStateFlagSTATE_PARENT, func(id uint64) error {
		s.parents[path] = slot
		s.ids[path] = id
		var errs []error
		for _, r := range s.containers {
			errs = append(errs, s.keepStart(r, true))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return nil, err
	}
	return s.lateBelow(path, fresh)
}

// Unwatched notes of all containers that are there that they may have run before they were guarded, and returns them.
func (s *State) Unwatched() (late []string, err error) {
	s.mu.Lock()
	parents := slices.Collect(maps.Keys(s.parents))
	s.mu.Unlock()
	for _, parent := range parents {
		more, err := s.lateBelow(parent, true)
		late = append(late, more...)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return late, err
		}
	}
	return late, nil
}

// lateBelow returns the containers below a parent that may have run before they were guarded; fresh: all that are there.
func (s *State) lateBelow(parent string, fresh bool) (late []string, err error) {
	children, err := linux.CgroupChildren(parent)
	if err != nil {
		return nil, err
	}
	for child, id := range children {
		isLate, err := s.late(id, fresh)
		if err != nil {
			return late, err
		}
		if isLate {
			late = append(late, child)
		}
	}
	return late, nil
}

// late says whether the container in a cgroup may have run before it was guarded. fresh: it is so from now on.
func (s *State) late(id uint64, fresh bool) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.entry(id)
	if err != nil || !fresh {
		return e.Flags&cgroupStateFlagSTATE_LATE != 0, err
	}
	e.Flags |= cgroupStateFlagSTATE_LATE
	return true, s.put(id, e)
}

// AddAlone makes a cgroup a container by itself, wherever it stands, which may have run before. Guard then takes it in.
func (s *State) AddAlone(path string, slot uint32) error {
	_, err := s.add(path, slot, cgroupStateFlagSTATE_ALONE|cgroupStateFlagSTATE_LATE, func(uint64) error { return nil })
	return err
}

// add gives a cgroup flags and a policy, and says whether it had none of those. What keep does comes first, under the lock.
func (s *State) add(path string, slot uint32, flags cgroupStateFlag, keep func(id uint64) error) (fresh bool, err error) {
	id, err := linux.CgroupID(path)
	if err != nil {
		return false, err
	}
	// first what the programs look at first
	if err := s.lookAt(path, id); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.entry(id)
	if err != nil {
		return false, err
	}
	fresh = e.Flags&flags == 0
	e.Flags |= flags
	e.Policy = slot
	return fresh, errors.Join(keep(id), s.put(id, e))
}

// Crowded says whether a cgroup is no container, since its children are.
func (s *State) Crowded(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, crowded := s.parents[path]
	return crowded
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
	if id, err := linux.CgroupID("/"); err != nil || id != realRoot || level >= 16 {
		return ^uint32(0)
	}
	return 1 << level
}

// filterBit is a parent's bit in the filter that walks look at, as slot_of of bpf/walk.h.
func filterBit(id uint64) uint64 { return 1 << (id * 0x9e3779b97f4a7c15 >> 58) }
