package daemon

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"weir/internal/linux"
	"weir/internal/taint"
)

// spaceFiles are the kernel's lists of secret files.
type spaceFiles interface {
	Listed() bool            // there are any
	Knows(space uint64) bool // a mount namespace has been looked at
	// Refresh looks at this process's mount namespace and at those that are due, each by one of its processes. What it
	// knows of others stays; it forgets those that are not named.
	Refresh(others map[uint64]int, due map[uint64]bool) error
	Untold() error // what failed in the others, each once
}

// mountSpaces are the mount namespaces that guarded processes run in.
type mountSpaces struct {
	files  spaceFiles
	each   func(func(taint.Container))
	fail   func(what string, err error)
	own    uint64                           // of this process
	unseen chan struct{}                    // a process runs in one that has not been looked at
	within func(path string) map[uint64]int // those of a container other than own, each with one process

	found map[string]*looked // by container
	turns []*looked          // the same; those whose turn it is next come first
	pass  uint64             // number of the last visit

	mu  sync.Mutex
	ran map[uint64]bool // containers that have executed something since they were looked at, by cgroup
}

// looked is what was found of a container when it was last looked at.
type looked struct {
	path         string         // of its cgroup
	spaces       map[uint64]int // its namespaces, each with a process
	listed, seen uint64         // the last visits at which it was there, and was looked at
}

// newMountSpaces looks at nothing yet. each gives every container to a function that calls nothing of the giver; fail tells what could not be done.
func newMountSpaces(f spaceFiles, each func(func(taint.Container)), fail func(what string, err error)) *mountSpaces {
	s := &mountSpaces{
		files: f, each: each, fail: fail, unseen: make(chan struct{}, 1), found: map[string]*looked{}, ran: map[uint64]bool{},
	}
	s.own, _ = linux.Namespace(os.Getpid(), "mnt")
	s.within = s.namespaces
	return s
}

// lookEvery is how often the inodes of secret files are looked up again: files are made and replaced.
const lookEvery = 2 * time.Second

// inTurn is how many containers are looked at each time though they are known and execute nothing: looking at hundreds would take
// more of a processor than all else.
const inTurn = 4

// Run keeps the kernel's lists of secret files up to date, in every mount namespace that something guarded runs in.
func (s *mountSpaces) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failing := false
	for {
		due := s.visit()
		err := s.files.Refresh(s.all(), due)
		if err != nil && !failing { // told once, until it succeeds
			s.fail("look for secret files", err)
		}
		failing = err != nil
		if err := s.files.Untold(); err != nil {
			s.fail("look for secret files", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.unseen:
		}
	}
}

// visit finds the mount namespaces of those containers that are new, that have executed something, or whose turn it is.
func (s *mountSpaces) visit() map[uint64]bool {
	s.mu.Lock()
	ran := s.ran
	s.ran = map[uint64]bool{}
	s.mu.Unlock()
	due := map[uint64]bool{}
	if !s.files.Listed() {
		clear(s.found)
		s.turns = nil
		return due
	}
	for _, k := range s.now(ran) {
		if k.seen == s.pass {
			continue
		}
		k.seen, k.spaces = s.pass, s.within(k.path)
		for ns := range k.spaces {
			due[ns] = true
		}
	}
	return due
}

// now are the containers to be looked at, some of them twice. Those that are gone are forgotten.
func (s *mountSpaces) now(ran map[uint64]bool) []*looked {
	s.pass++
	var all []*looked
	s.each(func(c taint.Container) {
		k := s.found[c.ID]
		if k == nil {
			k = &looked{}
			s.found[c.ID] = k
			s.turns = append(s.turns, k)
		}
		if k.path != c.Cgroup || ran[c.CgroupID] {
			all = append(all, k)
		}
		k.path, k.listed = c.Cgroup, s.pass
	})
	gone := func(k *looked) bool { return k.listed != s.pass }
	maps.DeleteFunc(s.found, func(_ string, k *looked) bool { return gone(k) })
	s.turns = slices.DeleteFunc(s.turns, gone)
	n := min(inTurn, len(s.turns))
	all = append(all, s.turns[:n]...)
	s.turns = slices.Concat(s.turns[n:], s.turns[:n])
	return all
}

func (s *mountSpaces) namespaces(path string) map[uint64]int {
	pids, err := linux.CgroupTree(path)
	if err != nil {
		return map[uint64]int{} // it has just been removed
	}
	found := linux.Namespaces(pids, "mnt")
	delete(found, s.own)
	return found
}

// all are the namespaces of all containers.
func (s *mountSpaces) all() map[uint64]int {
	all := map[uint64]int{}
	for _, k := range s.found {
		maps.Copy(all, k.spaces)
	}
	return all
}

// Saw has a container looked at the next time, since a process of it has executed something, and soon if the mount namespace of that
// process, 0: not known, is new.
func (s *mountSpaces) Saw(container, space uint64) {
	if !s.files.Listed() {
		return
	}
	s.mu.Lock()
	s.ran[container] = true
	s.mu.Unlock()
	if space == s.own || s.files.Knows(space) {
		return
	}
	select {
	case s.unseen <- struct{}{}:
	default: // it is looked at soon anyhow
	}
}
