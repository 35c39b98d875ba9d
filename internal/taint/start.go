package taint

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/linux"
)

// kept is how long the taint of a container that its runtime has deleted is remembered: one of the same id may be made again,
// which is how a unit or a script restarts it (B45).
const kept = 24 * time.Hour

// keptGone is the same for a container whose runtime nobody follows, so that none says that it was deleted: its cgroup has the
// runtime's id in its name, which no other container gets. What is called by a name of somebody's choice is remembered for ever.
const keptGone = 30 * 24 * time.Hour

// table is a map of the kernel's.
type table interface {
	Lookup(key, value any) error
	Put(key, value any) error
	Delete(key any) error
	NextKey(key, next any) error // nil: the first
}

// SetStart says what each cgroup that is made directly below a guarded parent is tainted with, before anybody can enter it and
// whether or not a daemon runs (B33).
func (s *State) SetStart(parent string, bits Bits) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.ids[parent]
	if !ok {
		return fmt.Errorf("set the taint at start below %s: it is not guarded", parent)
	}
	key := startKey(id, "")
	var old uint32
	if err := ignoreNoKey(s.initial.Lookup(&key, &old)); err != nil {
		return fmt.Errorf("read the taint at start below %s: %w", parent, err)
	}
	b := s.begins[id]
	if Bits(old)&^(bits|b.more) != 0 { // first what the old bits have covered
		b.all &= bits
		s.begins[id] = b
		if err := s.keepStarts(id); err != nil {
			return err
		}
		b = s.begins[id]
	}
	if err := s.putStart(id, "", bits|b.more); err != nil {
		return err // it covers nobody yet
	}
	b.all = bits
	s.begins[id] = b
	return s.keepStarts(id)
}

// keepStarts does it for all children of a parent.
func (s *State) keepStarts(parent uint64) error {
	var errs []error
	for _, r := range s.containers {
		if s.ids[path.Dir(r.Cgroup)] == parent {
			errs = append(errs, s.keepStart(r, true))
		}
	}
	return errors.Join(errs...)
}

// begin is what every child of a parent begins with. Only what the kernel has is noted here: it covers what single ones have.
type begin struct {
	all  Bits // as the policy says
	more Bits // since there was no room for what single ones have
}

// Expect notes the taint that a container will have, as its runtime describes it, when its cgroup is made: below a guarded parent
// the kernel sets it then. What is stored of it already stays.
func (s *State) Expect(c Container, bits Bits, by, why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.containers[c.ID]
	if r == nil {
		r = &record{Container: c, Since: time.Now().UTC(), By: by, Why: why}
	}
	if r.Deleted.IsZero() && r.Bits|bits == r.Bits && r.Origin == c.Origin {
		return nil
	}
	if r.Bits|bits != r.Bits {
		r.Since, r.By, r.Why = time.Now().UTC(), by, why
		r.because(bits&^r.Bits, event.Cause{At: r.Since, Source: "start", By: by, Why: why})
	}
	r.add(bits, time.Now().UTC())
	r.Name, r.Origin, r.Alone, r.Deleted, r.Gone = c.Name, c.Origin, r.Alone || c.Alone, time.Time{}, time.Time{}
	s.containers[c.ID] = r
	if r.CgroupID != 0 {
		e, err := s.entry(r.CgroupID)
		if err != nil {
			return err
		}
		e.Taint |= uint32(r.Bits)
		if err := s.put(r.CgroupID, e); err != nil {
			return err
		}
	}
	return s.store(r)
}

// Describe says what the runtime calls a container.
func (s *State) Describe(id, name string, o Origin) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.known(id)
	if err != nil || r.Name == name && r.Origin == o && r.Deleted.IsZero() {
		return err
	}
	r.Name, r.Origin, r.Deleted = name, o, time.Time{}
	return s.store(r)
}

// Stored is the taint of all that is stored under the same runtime's id, the same pod or the same agent (G3, B45).
func (s *State) Stored(o Origin) Bits {
	s.mu.Lock()
	defer s.mu.Unlock()
	var bits Bits
	for _, r := range s.containers {
		if r.Origin.same(o) {
			bits |= r.Bits
		}
	}
	return bits
}

// Discard notes that the runtime has deleted a container: its taint is forgotten some time after its cgroup is gone.
func (s *State) Discard(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.known(id)
	if err != nil {
		return err
	}
	r.Deleted = time.Now().UTC()
	if r.CgroupID == 0 && r.Bits == 0 {
		delete(s.containers, id)
		return s.erase(id)
	}
	return s.store(r)
}

// forgetGone notes which containers are gone, and forgets those that are so for long.
func (s *State) forgetGone() error {
	var over []string
	for id, r := range s.containers {
		switch {
		case r.CgroupID == 0 && r.Gone.IsZero():
			r.Gone, r.unsaved = time.Now().UTC(), true
		case r.CgroupID != 0 && !r.Gone.IsZero(): // it stands again
			r.Gone, r.unsaved = time.Time{}, true
		}
		if r.over(time.Now()) {
			over = append(over, id)
		}
	}
	if len(over) == 0 {
		return nil
	}
	if err := s.erase(over...); err != nil {
		return err
	}
	for _, id := range over {
		delete(s.containers, id)
	}
	return nil
}

// sweepStarts does so, counts the containers that the kernel knows by name, and drops what the kernel has for children of parents
// that are gone.
func (s *State) sweepStarts() error {
	errs := []error{s.forgetGone()}
	known := map[uint64]bool{}
	for _, id := range s.ids {
		known[id] = true
	}
	var stale []cgroupInitialTaintKey
	named := 0
	errs = append(errs, s.eachStart(func(key cgroupInitialTaintKey, _ Bits) {
		if key.Name[0] != 0 {
			named++
		}
		if known[key.Parent] {
			return
		}
		if _, err := linux.CgroupPath(key.Parent); err != nil {
			stale = append(stale, key)
		}
	}))
	s.named = named // stale ones are not counted the next time
	for _, key := range stale {
		errs = append(errs, ignoreNoKey(s.initial.Delete(&key)))
	}
	return errors.Join(errs...)
}

// eachStart gives f all that the kernel has. f changes nothing of it.
func (s *State) eachStart(f func(key cgroupInitialTaintKey, bits Bits)) error {
	var key, next cgroupInitialTaintKey
	err := s.initial.NextKey(nil, &next)
	for ; err == nil; err = s.initial.NextKey(&key, &next) {
		key = next
		var bits uint32
		if err := s.initial.Lookup(&key, &bits); err != nil {
			return fmt.Errorf("read a taint at start: %w", err)
		}
		f(key, Bits(bits))
	}
	if err := ignoreNoKey(err); err != nil {
		return fmt.Errorf("list taint at start: %w", err)
	}
	return nil
}

// keepStart puts a container's stored taint where the kernel looks when its cgroup is made again. more says that what is there
// must not be lessened.
func (s *State) keepStart(r *record, more bool) error {
	id, ok := s.ids[path.Dir(r.Cgroup)]
	if !ok || r.Session {
		return nil
	}
	bits := r.Bits
	if more {
		key := startKey(id, path.Base(r.Cgroup))
		var old uint32
		if s.initial.Lookup(&key, &old) == nil {
			bits |= Bits(old)
		}
	}
	return s.putOwn(id, path.Base(r.Cgroup), bits)
}

// namedMost is how many children have an entry of their own. More are remembered than fit where many come with ever new names:
// then all children of their parent begin with what is remembered.
const namedMost = 15 << 10 // of the map's 16 Ki: parents have room

// putOwn notes what a child begins with, if it is more than all begin with.
func (s *State) putOwn(parent uint64, name string, bits Bits) error {
	if b := s.begins[parent]; bits&^(b.all|b.more) == 0 {
		bits = 0
	}
	key := startKey(parent, name)
	var old uint32
	had := s.initial.Lookup(&key, &old) == nil
	if bits != 0 && !had && s.named >= namedMost {
		return s.widen(parent, name, bits)
	}
	switch err := s.putStart(parent, name, bits); {
	case errors.Is(err, unix.E2BIG):
		return s.widen(parent, name, bits)
	case err != nil:
		return err
	case bits != 0 && !had:
		s.named++
	case bits == 0 && had:
		s.named--
	}
	return nil
}

// own is what one child begins with.
type own struct {
	key  cgroupInitialTaintKey
	bits Bits
}

// widen has all children of a parent begin with bits, too, since there is no room for what the named one has. Those that this covers
// are taken out, once it is written.
func (s *State) widen(parent uint64, name string, bits Bits) error {
	b := s.begins[parent]
	b.more |= bits
	all := b.all | b.more // and what SetStart has not taken back yet
	var covered []own
	err := s.eachStart(func(key cgroupInitialTaintKey, has Bits) {
		switch {
		case key.Parent != parent:
		case key.Name[0] == 0:
			all |= has
		case has&^(b.all|b.more) == 0:
			covered = append(covered, own{key, has})
		}
	})
	if err != nil {
		return err
	}
	err = s.putStart(parent, "", all)
	if errors.Is(err, unix.E2BIG) && len(covered) > 0 {
		err = s.putInstead(covered[0], all)
	}
	if err != nil {
		return err
	}
	s.begins[parent] = b
	s.logger.Errorf("taint at start: there is no room to remember %q beside %d others: all that begins where it was is tainted %v from now on", name, s.named, b.more.Names())
	var errs []error
	for _, c := range covered {
		errs = append(errs, ignoreNoKey(s.initial.Delete(&c.key)))
		s.named--
	}
	return errors.Join(errs...)
}

// putInstead notes what all children begin with in the place of what one of them does.
func (s *State) putInstead(c own, all Bits) error {
	if err := s.initial.Delete(&c.key); err != nil {
		return fmt.Errorf("make room for the taint at start of all: %w", err)
	}
	err := s.putStart(c.key.Parent, "", all)
	if err != nil {
		err = errors.Join(err, s.initial.Put(&c.key, uint32(c.bits)))
	}
	return err
}

// arriving is ARRIVING of bpf/cgroup.bpf.c, in s.
const arriving = 30

// Arrive lets processes of a runtime that were in a container's cgroup before it was guarded report to the runtime, as those that
// are moved in later may. What has ended is left out.
func (s *State) Arrive(pids []int) error {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		var t cgroupTask
		err = s.objects.Tasks.Lookup(uint32(fd), &t)
		if err == nil || isNoKey(err) {
			var exe unix.Stat_t
			if unix.Stat("/proc/"+strconv.Itoa(pid)+"/exe", &exe) == nil { // what it may execute once more
				t.Inode, t.Device, t.ArgvHash = exe.Ino, unix.Major(exe.Dev)<<20|unix.Minor(exe.Dev), 0
			}
			t.Arriving = uint32(Now()/1e9) + arriving
			err = s.objects.Tasks.Put(uint32(fd), &t)
		}
		unix.Close(fd)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("let process %d arrive: %w", pid, err)
		}
	}
	return nil
}

func (s *State) putStart(parent uint64, name string, bits Bits) error {
	key := startKey(parent, name)
	if bits == 0 {
		if err := ignoreNoKey(s.initial.Delete(&key)); err != nil {
			return fmt.Errorf("forget the taint at start of %q: %w", name, err)
		}
		return nil
	}
	if err := s.initial.Put(&key, uint32(bits)); err != nil {
		return fmt.Errorf("note the taint at start of %q: %w", name, err)
	}
	return nil
}

// startKey cuts a name as the kernel's program does, with a zero byte at the end.
func startKey(parent uint64, name string) cgroupInitialTaintKey {
	key := cgroupInitialTaintKey{Parent: parent}
	for i := 0; i < len(name) && i < len(key.Name)-1; i++ {
		key.Name[i] = int8(name[i])
	}
	return key
}

func isNoKey(err error) bool { return errors.Is(err, ebpf.ErrKeyNotExist) }

func ignoreNoKey(err error) error {
	if isNoKey(err) {
		return nil
	}
	return err
}
