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
	pid    int // one of its processes
	top    inode
	found  map[uint32]nodes // by slot
	traces map[inode]trace  // of what was found; it is not changed
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
	var errs []error
	for slot, l := range f.lists {
		errs = append(errs, f.apply(slot, l, f.wanted(slot)))
	}
	failed := errors.Join(append(errs, f.filter())...)
	f.stale = failed != nil
	return errors.Join(err, failed)
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

// look resolves lists in this process's root and in those that are due (nil: all, and the lists are new) at the same time, and waits for those that answer soon; the others are late for a later
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
			pid, lists, before := r.pid, maps.Clone(lists), r.traces // f.mu is held now
			if due == nil {
				before = nil // what was found for other lists stays with them
			}
			go func() { results <- f.lookIn(r, pid, lists, before) }()
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
func (f *Files) lookIn(r *root, pid int, lists map[uint32]*list, before map[inode]trace) error {
	g, err := f.inView(pid, lists, before)
	f.mu.Lock()
	defer f.mu.Unlock()
	r.busy = false
	return f.keep(r, pid, lists, g, err)
}

// glance is what a look found in a root.
type glance struct {
	found  map[uint32]nodes
	traces map[inode]trace
	fates  map[inode]fate // of what was found before
	top    inode
	whole  bool  // all could be looked at
	over   error // a list stands for too much
}

// keep takes in what a look found in a root.
func (f *Files) keep(r *root, pid int, lists map[uint32]*list, g glance, err error) error {
	if err != nil && pid == 0 {
		return err
	}
	if err == nil {
		f.accept(r, lists, &g)
	}
	if pid == 0 {
		return g.over
	}
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH): // its process has ended
	case err == nil && g.over == nil:
		r.ill = false
	case !r.ill:
		r.ill, f.untold = true, errors.Join(f.untold, fmt.Errorf("in the mount namespace of process %d: %w", pid, errors.Join(err, g.over)))
	}
	return nil // what was found before stays
}

func (f *Files) accept(r *root, lists map[uint32]*list, g *glance) {
	r.turned = r.turned || r.top != (inode{}) && r.top != g.top
	f.stale = f.stale || r.top != g.top
	r.top = g.top
	for slot, nodes := range g.found {
		if f.lists[slot] != lists[slot] {
			continue
		}
		now, all := sticky(nodes, r.found[slot], g.fates, r.turned || !g.whole)
		if !all {
			g.over = errors.Join(g.over, fmt.Errorf("taint.secret_files: more than %d listed files and directories are elsewhere now: some do not count there", maxFound))
		}
		f.stale = f.stale || !maps.Equal(now, r.found[slot])
		r.found[slot] = now
		if g.whole {
			f.stale = f.stale || len(r.outdated[slot].nodes) > 0
			delete(r.outdated, slot)
		}
	}
	traces := map[inode]trace{}
	for _, nodes := range r.found {
		for id := range nodes {
			if m, ok := g.traces[id]; ok {
				traces[id] = m
			} else if m, ok := r.traces[id]; ok {
				traces[id] = m
			}
		}
	}
	r.traces = traces
}

// sticky adds what was found before and still exists: who moves a file, or removes the link that led to it, does not make it less secret.
// keep is for what is not where it was and may exist: it stays if it may be where another process's root is, or some could not be
// looked at. It says whether there was room for all.
func sticky(now, before nodes, fates map[inode]fate, keep bool) (nodes, bool) {
	room := len(now) + maxFound
	for id, node := range before {
		if fates[id] == gone || fates[id] == away && !keep {
			continue
		}
		if _, ok := now[id]; !ok && len(now) >= room {
			return now, false
		}
		if keep || node != (filesSecretNode{}) { // what led there leads there no more
			now.add(id, node)
		}
	}
	return now, true
}

func (f *Files) inView(pid int, lists map[uint32]*list, before map[inode]trace) (g glance, err error) {
	v, err := viewOf(pid, f.number)
	if err != nil {
		return g, err
	}
	defer v.close()
	return v.look(lists, before)
}

// look resolves lists, and finds out what has become of what was found before.
func (v *view) look(lists map[uint32]*list, before map[inode]trace) (g glance, err error) {
	if g.top, err = v.ask(v.fd); err != nil {
		return g, err
	}
	g.found = map[uint32]nodes{}
	for slot, l := range lists {
		found, err := v.resolve(l.files)
		g.found[slot], g.over = found, errors.Join(g.over, err)
	}
	g.traces, g.fates, g.whole = v.traces, v.fates(before), !v.failed
	return g, nil
}
