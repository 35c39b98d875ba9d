package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/taint"
)

// guardSlice is the guarded parent of all sessions of weir guard.
const guardSlice = "/weir"

// guardParents are the guarded ones. Their methods may be called at the same time.
type guardParents struct {
	d       *daemon
	mu      sync.Mutex
	guarded map[string]uint64 // cgroup ids, by path
	alone   map[string]uint64 // the same of containers by themselves
	initial map[string]start
	listed  map[string]children // of parents, when all of them were listed last; Tend's alone
	rounds  int                 // of Tend
}

// children says how many a parent has, and which cgroup it is.
type children struct{ id, links uint64 }

// listEvery is how many rounds pass until children are listed though there are as many as before: their making is told, and here only
// what was lost is found.
const listEvery = 5

// start is what the kernel taints new children of a parent with.
type start struct {
	parent uint64
	bits   taint.Bits
}

// newParents guards nothing yet.
func newParents(d *daemon) *guardParents {
	return &guardParents{d: d, guarded: map[string]uint64{}, alone: map[string]uint64{}, initial: map[string]start{}, listed: map[string]children{}}
}

// List are the paths of the policy in force, and Slice.
func (p *guardParents) List() []string { return allParents(p.d.policies.Base()) }

// allParents are the paths that a policy has guarded.
func allParents(of policy.Policy) []string {
	return slices.Compact(slices.Sorted(slices.Values(append([]string{guardSlice}, of.Guard.Parents...))))
}

// Apply guards what a policy wants guarded, and makes the parent of all sessions.
func (p *guardParents) Apply(of policy.Policy) error {
	if err := errors.Join(p.check(of.Guard.Parents), p.checkAlone(of)); err != nil {
		return err
	}
	if err := p.GuardSlice(); err != nil {
		return err
	}
	for _, parent := range of.Guard.Parents {
		if err := p.guard(parent, of, map[string]uint64{}); err != nil {
			return err
		}
	}
	p.d.egress.KnowOwn()
	p.remember()
	return p.tendAlone(of, "")
}

// check refuses parents that are not there, unless they once were, or are slices of
// systemd, which come and go.
func (p *guardParents) check(parents []string) error {
	var known []string
	if err := p.d.memory.Get(keyParents, &known); err != nil {
		return err
	}
	for _, parent := range parents {
		_, err := linux.CgroupID(parent)
		switch {
		case err == nil || slices.Contains(known, parent):
		case isSlice(parent):
			p.d.opts.Logger.Warnf("guard.parents: %s is not there yet: it is made now, and guarded from its first child on", parent)
		default:
			return fmt.Errorf("guard.parents: %w", err)
		}
	}
	if slices.Equal(known, parents) {
		return nil
	}
	if err := p.d.memory.Put(keyParents, parents); err != nil {
		p.d.opts.Logger.WithError(err).Error("store parents") // they must be there at the next start
	}
	return nil
}

// GuardSlice makes the parent of all sessions, and guards it.
func (p *guardParents) GuardSlice() error {
	if _, err := linux.MakeCgroup(guardSlice); err != nil {
		return err
	}
	return p.guardParent(guardSlice)
}

// Tend guards parents that were made again, takes in containers whose making was
// not told, and forgets those that are gone.
func (p *guardParents) Tend() error {
	of := p.d.policies.Base()
	var errs []error
	if err := p.guardParent(guardSlice); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	if p.rounds++; p.rounds%listEvery != 0 && p.asBefore(of) {
		p.d.egress.KnowOwn()
		return errors.Join(errs...)
	}
	errs = append(errs, p.d.attachByHand())
	there := map[string]uint64{} // children of guarded parents
	for _, parent := range of.Guard.Parents {
		errs = append(errs, p.guard(parent, of, there))
	}
	p.d.egress.KnowOwn()
	errs = append(errs, p.tendAlone(of, ""))
	for _, c := range p.elsewhere(there) {
		if _, err := linux.CgroupID(c.Cgroup); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, p.d.state.Gone(c.ID))
		}
	}
	return errors.Join(errs...)
}

// asBefore says whether each guarded parent is the same cgroup as at the last call, with as many children, and no cgroup is guarded by itself.
func (p *guardParents) asBefore(of policy.Policy) bool {
	same := len(p.lone(of)) == 0
	for _, parent := range of.Guard.Parents {
		var now children
		var st unix.Stat_t
		if unix.Stat(linux.CgroupDir(parent), &st) == nil {
			now = children{st.Ino, st.Nlink}
		}
		same = same && now.id != 0 && now == p.listed[parent]
		p.listed[parent] = now
	}
	return same
}

// elsewhere are the containers that are no sessions, but for those in some cgroups.
func (p *guardParents) elsewhere(known map[string]uint64) []taint.Container {
	var all []taint.Container
	p.d.state.Each(func(c taint.Container) {
		if known[c.Cgroup] == 0 && !c.Session && c.CgroupID != 0 {
			all = append(all, c)
		}
	})
	return all
}

// guard makes the children of a parent containers, if it is there, and adds them to those that are there.
func (p *guardParents) guard(parent string, of policy.Policy, there map[string]uint64) error {
	err := p.guardParent(parent)
	if errors.Is(err, fs.ErrNotExist) && makeable(parent) {
		// before systemd or a runtime does, so that nothing below it starts unguarded
		if _, err = linux.MakeCgroup(parent); err == nil {
			err = p.guardParent(parent)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // until somebody makes it again
	}
	if err != nil {
		return err
	}
	if err := p.setStart(parent, of); err != nil {
		return err
	}
	children, err := linux.CgroupChildren(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	maps.Copy(there, children)
	p.d.state.Each(func(c taint.Container) {
		if children[c.Cgroup] == c.CgroupID {
			delete(children, c.Cgroup) // known
		}
	})
	var errs []error
	for child := range children {
		if err := p.admit(child, of); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// isSlice says whether a path is one that systemd gives to a slice.
func isSlice(path string) bool {
	return !slices.ContainsFunc(strings.Split(path[1:], "/"), func(name string) bool { return !strings.HasSuffix(name, ".slice") })
}

// makeable says whether a cgroup may be made for who will use it. What is below a
// service or a scope belongs to whom that is delegated to, who could not use it then.
func makeable(path string) bool {
	return !slices.ContainsFunc(strings.Split(path[1:], "/"), func(name string) bool {
		return strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope")
	})
}

// setStart has the kernel taint what is made below a parent from now on (B33).
func (p *guardParents) setStart(parent string, of policy.Policy) error {
	bits, err := taint.StartBits(of.Taint.Initial)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := start{p.guarded[parent], bits}
	if p.initial[parent] == now {
		return nil
	}
	if err := p.d.state.SetStart(parent, bits); err != nil {
		return err
	}
	p.initial[parent] = now
	return nil
}

// guardParent attaches what a parent needs. One that was made again under the same
// path is another cgroup.
func (p *guardParents) guardParent(path string) error {
	id, err := linux.CgroupID(path)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.guarded[path]
	if old == id {
		return nil
	}
	if err := p.d.egress.GuardParent(path, netegress.BaseSlot); err != nil {
		return err
	}
	p.guarded[path] = id
	if old == 0 {
		return nil
	}
	p.d.write(event.Event{Kind: event.Error, Message: "guarded parent " + path + " was made again: it is guarded again"})
	return p.d.state.DropParent(old)
}

// Made takes a new child of a guarded parent in as a container.
func (p *guardParents) Made(m taint.Move) {
	path := cgroupPath(m.Cgroup)
	if path == "" {
		return // gone already
	}
	if linux.PathWithin(path, guardSlice) {
		if err := p.d.attachHooks(); err != nil { // somebody made it by hand, or they are
			p.d.failed("attach what "+path+" needs", err)
		}
		return
	}
	parent := path[:strings.LastIndex(path, "/")]
	of := p.d.policies.Base()
	if !slices.Contains(of.Guard.Parents, parent) {
		return
	}
	if err := p.admit(path, of); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.d.failed("admit "+path, err)
	}
}

// admit takes a cgroup in as a container, with the taint that is stored under its
// path (B45), unless it is one.
func (p *guardParents) admit(path string, of policy.Policy) error {
	id, err := linux.CgroupID(path)
	if err != nil {
		return err
	}
	if _, known := p.d.state.ByCgroup(id); known {
		return nil
	}
	return p.take(taint.Container{ID: path, Cgroup: path, CgroupID: id}, of, "policy")
}

// MadeAgain guards those parents, and cgroups by themselves, that are at or below a cgroup that was made or removed.
func (p *guardParents) MadeAgain(path string) {
	of := p.d.policies.Base()
	if linux.PathWithin(guardSlice, path) {
		if err := p.guardParent(guardSlice); err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.d.failed("guard "+guardSlice, err)
		}
	}
	for _, parent := range of.Guard.Parents {
		if !linux.PathWithin(parent, path) {
			continue
		}
		if err := p.guard(parent, of, map[string]uint64{}); err != nil {
			p.d.failed("guard "+parent, err)
		}
	}
	p.d.egress.KnowOwn()
	if err := p.tendAlone(of, path); err != nil {
		p.d.failed("guard cgroups below "+path, err)
	}
}
