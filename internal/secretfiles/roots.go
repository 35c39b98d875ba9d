package secretfiles

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// resolveFor is how long a mount namespace may take to be looked at: a file system of its own can make that last for ever.
const resolveFor = time.Second

// maxRoots bounds the mount namespaces that are looked at: a guarded process can make as many as it likes.
const maxRoots = 128

// root is a mount namespace in which lists are looked up. Key 0 is this process's own.
type root struct {
	pid   int // one of its processes
	top   inode
	found map[uint32]nodes // by slot
	// what was found for the list before, which counts until this root has been looked at for the present one
	outdated map[uint32]outdated
	busy     bool // a look that takes long
	ill      bool // the last look for the present lists failed, which was told
	// it was looked at from different roots: what one does not have, another may
	turned bool
}

// outdated is what was found for a list, with the names that it had.
type outdated struct {
	nodes nodes
	names []string
}

func newRoot() *root { return &root{found: map[uint32]nodes{}, outdated: map[uint32]outdated{}} }

// Refresh looks all lists up again: in this process's mount namespace, and in those that are due, of the processes that are given by
// namespace. What was found in the others stays. A namespace that is not named is forgotten.
func (f *Files) Refresh(processes map[uint64]int, due map[uint64]bool) error {
	f.setting.Lock()
	defer f.setting.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.lists) == 0 {
		clear(f.roots)
		return nil
	}
	for ns := range f.roots {
		if _, ok := processes[ns]; !ok && ns != 0 {
			delete(f.roots, ns)
			f.stale = true
		}
	}
	for ns, pid := range processes {
		if f.roots[ns] == nil && len(f.roots) > maxRoots {
			continue
		}
		if f.roots[ns] == nil {
			f.roots[ns] = newRoot()
		}
		f.roots[ns].pid = pid
	}
	err := f.look(f.lists, due)
	if !f.stale {
		return err
	}
	f.stale = false
	errs := []error{err}
	for slot, l := range f.lists {
		errs = append(errs, f.apply(slot, l, f.wanted(slot)))
	}
	err = errors.Join(append(errs, f.filter())...)
	f.stale = f.stale || err != nil
	return err
}

// Untold is what failed in other mount namespaces than this process's: each is given once, until a look there succeeds or a list is
// set anew. What was found there before stays.
func (f *Files) Untold() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.untold
	f.untold = nil
	return err
}

// Knows says whether a mount namespace is looked at.
func (f *Files) Knows(ns uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.roots[ns] != nil
}

// Listed says whether any policy lists a secret file.
func (f *Files) Listed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.lists) > 0
}

// outdate takes what was found for a slot's list, in all roots, for what its next one stands for until that has been looked up: a root may
// be slow to answer, and what was secret is not to be open meanwhile. undo is for a list that is not put in force.
func (f *Files) outdate(slot uint32, names []string) (undo func()) {
	type both struct {
		found nodes
		last  outdated
	}
	was := map[*root]both{}
	for _, r := range f.roots {
		was[r] = both{r.found[slot], r.outdated[slot]}
		if found := r.found[slot]; found != nil {
			r.outdated[slot] = outdated{found, names}
		}
		delete(r.found, slot)
		r.ill = false
	}
	return func() {
		for r, w := range was {
			delete(r.found, slot)
			if w.found != nil {
				r.found[slot] = w.found
			}
			r.outdated[slot] = w.last
		}
	}
}

// in has the bits of names as another list numbers them; those that it does not have are left out.
func (o outdated) in(names []string) nodes {
	all := nodes{}
	for id, node := range o.nodes {
		bits := node.Names
		node.Names = 0
		for i, name := range o.names {
			if at := slices.Index(names, name); at >= 0 && bits>>i&1 != 0 {
				node.Names |= 1 << at
			}
		}
		if node != (filesSecretNode{}) {
			all[id] = node
		}
	}
	return all
}

// unfind forgets what was found for a slot's list, in all roots.
func (f *Files) unfind(slot uint32) {
	for _, r := range f.roots {
		delete(r.found, slot)
		delete(r.outdated, slot)
		r.ill = false
	}
}

// wanted is what a slot's list stands for in all roots.
func (f *Files) wanted(slot uint32) nodes {
	all := nodes{}
	for _, r := range f.roots {
		for id, node := range r.found[slot] {
			all.add(id, node)
		}
		for id, node := range r.outdated[slot].in(f.lists[slot].names) {
			all.add(id, node)
		}
	}
	return all
}

// look resolves lists in this process's root and in those that are due (nil: all) at the same time, and waits for those that answer soon; the others are late for a later
// Refresh. Its callers hold f.setting and f.mu, which is free while it waits. An error is about this process's own root.
func (f *Files) look(lists map[uint32]*list, due map[uint64]bool) error {
	if f.roots[0] == nil {
		f.roots[0] = newRoot()
	}
	results := make(chan error, len(f.roots))
	asked := 0
	for ns, r := range f.roots {
		if !r.busy && (ns == 0 || due == nil || due[ns]) {
			r.busy = true
			asked++
			pid, lists := r.pid, maps.Clone(lists) // f.mu is held now
			go func() { results <- f.lookIn(r, pid, lists) }()
		}
	}
	f.mu.Unlock()
	defer f.mu.Lock()
	late := time.After(resolveFor)
	var errs []error
	for range asked {
		select {
		case err := <-results:
			errs = append(errs, err)
		case <-late:
			return errors.Join(append(errs, f.stuck())...)
		}
	}
	return errors.Join(append(errs, f.stuck())...) // of an earlier look
}

var errStuck = errors.New("look for secret files: a file system does not answer")

func (f *Files) stuck() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own := f.roots[0]; own != nil && own.busy {
		return errStuck
	}
	return nil
}

// settle waits until this process's own root is not being looked at any more. Its callers hold f.setting and f.mu, which is free while it waits.
func (f *Files) settle() error {
	f.mu.Unlock()
	defer f.mu.Lock()
	for end := time.Now().Add(5 * resolveFor); ; time.Sleep(10 * time.Millisecond) {
		if err := f.stuck(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// lookIn keeps what it finds, also when nobody waits any more.
func (f *Files) lookIn(r *root, pid int, lists map[uint32]*list) error {
	found, top, whole, err := f.inView(pid, lists)
	f.mu.Lock()
	defer f.mu.Unlock()
	r.busy = false
	return f.keep(r, pid, lists, found, top, whole, err)
}

// keep takes in what a look found in a root, from its top on. whole: all could be looked at.
func (f *Files) keep(r *root, pid int, lists map[uint32]*list, found map[uint32]nodes, top inode, whole bool, err error) error {
	if err != nil && pid != 0 { // what was found before stays
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH) && !r.ill { // else its process has ended
			r.ill, f.untold = true, errors.Join(f.untold, fmt.Errorf("in the mount namespace of process %d: %w", pid, err))
		}
		return nil
	}
	if err != nil {
		return err
	}
	r.ill = false
	r.turned = r.turned || r.top != (inode{}) && r.top != top
	f.stale = f.stale || r.top != top
	r.top = top
	for slot, nodes := range found {
		if f.lists[slot] == lists[slot] {
			now := sticky(nodes, r.found[slot], r.turned || !whole)
			f.stale = f.stale || !maps.Equal(now, r.found[slot])
			r.found[slot] = now
			if whole {
				f.stale = f.stale || len(r.outdated[slot].nodes) > 0
				delete(r.outdated, slot)
			}
		}
	}
	return nil
}

// sticky adds the directories that were found before: who moves one, or mounts something over it, does not make it less secret. Files are
// looked for anew, unless it is from another root, or some could not be looked at.
func sticky(now, before nodes, files bool) nodes {
	for id, node := range before {
		if len(now) >= maxFound {
			break
		}
		if !files {
			node.Self = 0
		}
		if node != (filesSecretNode{}) {
			now.add(id, node)
		}
	}
	return now
}

func (f *Files) inView(pid int, lists map[uint32]*list) (all map[uint32]nodes, top inode, whole bool, err error) {
	v, err := viewOf(pid, f.number)
	if err != nil {
		return nil, inode{}, false, err
	}
	defer v.close()
	if top, err = v.ask(v.fd); err != nil {
		return nil, top, false, err
	}
	all = map[uint32]nodes{}
	for slot, l := range lists {
		if all[slot], err = v.resolve(l.files); err != nil {
			return nil, top, false, err
		}
	}
	return all, top, !v.failed, nil
}
