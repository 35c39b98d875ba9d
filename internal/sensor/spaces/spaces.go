package spaces

import (
	"context"
	"maps"
	"os"
	"time"

	"weir/internal/cgroup"
	"weir/internal/procfs"
	"weir/internal/taint"
)

// Files are the kernel's lists of secret files.
type Files interface {
	Listed() bool                        // there are any
	Knows(space uint64) bool             // a mount namespace has been looked at
	Refresh(others map[uint64]int) error // looks at this one and others, each by one of its processes
}

// Spaces are the mount namespaces that guarded processes run in.
type Spaces struct {
	files  Files
	list   func() []taint.Status
	fail   func(what string, err error)
	own    uint64        // of this process
	unseen chan struct{} // a process runs in one that has not been looked at
}

// New looks at nothing yet. list gives the containers; fail tells what could not be done.
func New(f Files, list func() []taint.Status, fail func(what string, err error)) *Spaces {
	s := &Spaces{files: f, list: list, fail: fail, unseen: make(chan struct{}, 1)}
	s.own, _ = procfs.Namespace(os.Getpid(), "mnt")
	return s
}

// lookEvery is how often the inodes of secret files are looked up again: files are made and replaced.
const lookEvery = 2 * time.Second

// Run keeps the kernel's lists of secret files up to date, in every mount namespace that something guarded runs in.
func (s *Spaces) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failing := false
	for {
		err := s.files.Refresh(s.others())
		if err != nil && !failing { // told once, until it succeeds
			s.fail("look for secret files", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.unseen:
		}
	}
}

// others are the mount namespaces of guarded processes other than this process's own, each with one process.
func (s *Spaces) others() map[uint64]int {
	found := map[uint64]int{}
	if !s.files.Listed() {
		return found
	}
	for _, c := range s.list() {
		pids, err := cgroup.Tree(c.Cgroup)
		if err != nil {
			continue // it has just been removed
		}
		maps.Copy(found, procfs.Namespaces(pids, "mnt"))
	}
	delete(found, s.own)
	return found
}

// Saw has a process's mount namespace that is new looked at soon.
func (s *Spaces) Saw(pid int) {
	if !s.files.Listed() {
		return
	}
	if ns, err := procfs.Namespace(pid, "mnt"); err != nil || ns == s.own || s.files.Knows(ns) {
		return
	}
	select {
	case s.unseen <- struct{}{}:
	default: // it is looked at soon anyhow
	}
}
