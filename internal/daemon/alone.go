package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/taint"
)

// Take guards a cgroup that a person names as a container by itself, and returns it. One that is a container already is returned
// as it is, with that name if there is one.
func (p *guardParents) Take(called, name, by string) (taint.Status, error) {
	at, err := linux.CgroupNamed(called)
	if err != nil {
		return taint.Status{}, err
	}
	id, err := linux.CgroupID(at)
	if err != nil {
		return taint.Status{}, err
	}
	_, known := p.d.state.ByCgroup(id)
	if !known {
		if err := p.refuse(at); err != nil {
			return taint.Status{}, err
		}
		if err := p.d.attachHooks(); err != nil {
			return taint.Status{}, err
		}
		if err := p.guardAlone(at, p.d.policies.Base(), by); err != nil {
			return taint.Status{}, err
		}
		p.d.write(event.Event{Kind: event.Error, Message: "cgroup " + at + " is guarded from now on, by " + by})
	}
	st, err := p.d.state.Find(at)
	if err != nil || name == "" || name == st.Name {
		return st, err
	}
	if err := p.d.state.Describe(st.ID, name, st.Origin); err != nil {
		return st, err
	}
	return p.d.state.Find(at)
}

// refuse says why a cgroup cannot be a container by itself.
func (p *guardParents) refuse(at string) error {
	parents := p.List()
	switch child, inside := linux.CgroupChild(at, parents); {
	case at == "/":
		return errors.New("the cgroup root is the whole host: name a cgroup below it")
	case slices.Contains(parents, at):
		return fmt.Errorf("%s is a guarded parent: its children are containers: name one of them", at)
	case inside && child != at:
		return fmt.Errorf("%s is in container %s, which is guarded", at, child)
	}
	for _, parent := range parents {
		if linux.PathWithin(parent, at) {
			return fmt.Errorf("the guarded parent %s is in %s: name another cgroup", parent, at)
		}
	}
	for _, c := range p.d.state.List() {
		switch {
		case c.Cgroup == at || c.CgroupID == 0:
		case linux.PathWithin(at, c.Cgroup):
			return fmt.Errorf("%s is in container %s, which is guarded", at, c.ID)
		case linux.PathWithin(c.Cgroup, at):
			return fmt.Errorf("container %s is in %s: name another cgroup", c.ID, at)
		}
	}
	for pid, who := range map[int]string{1: "process 1", os.Getpid(): "the sensor"} {
		if in, err := linux.CgroupOf(pid); err == nil && linux.PathWithin(in, at) {
			return fmt.Errorf("%s is in %s: name another cgroup", who, at)
		}
	}
	return nil
}

// guardAlone makes a cgroup a container by itself, with the taint that is stored of it (B45).
func (p *guardParents) guardAlone(at string, of policy.Policy, by string) error {
	id, err := linux.CgroupID(at)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.alone[at]
	if old == id {
		return nil
	}
	if err := p.d.egress.GuardAlone(at, netegress.BaseSlot); err != nil {
		return err
	}
	if err := p.take(taint.Container{ID: at, Cgroup: at, CgroupID: id, Alone: true}, of, by); err != nil {
		return err
	}
	p.alone[at] = id
	if old != 0 {
		p.d.write(event.Event{Kind: event.Error, Message: "cgroup " + at + " was made again: it is guarded again"})
	}
	return nil
}

// take writes a container into the books, with the runtime's id that its path tells where nobody else told one.
func (p *guardParents) take(c taint.Container, of policy.Policy, by string) error {
	start, err := taint.StartBits(of.Taint.Initial)
	if err != nil {
		return err
	}
	if st, err := p.d.state.Find(c.ID); err != nil || st.Origin == (taint.Origin{}) {
		c.Origin.Runtime, c.Origin.ID = runtimeOf(c.Cgroup)
	}
	if _, known := p.d.state.ByCgroup(c.CgroupID); known {
		start = 0 // what a person has cleared stays so
	}
	_, err = p.d.state.Guard(c, start, by)
	return err
}

// named are the paths of the cgroups of a policy that are containers by themselves: a unit that is not there is looked for where
// systemd puts most.
func named(of policy.Policy) []string {
	var all []string
	for _, name := range of.Guard.Cgroups {
		at, err := linux.CgroupNamed(name)
		switch {
		case err == nil:
		case path.IsAbs(name):
			at = name
		case path.Ext(name) == ".slice":
			if at, err = linux.CgroupSlice(name); err != nil {
				continue
			}
		default:
			at = "/system.slice/" + name
		}
		all = append(all, at)
	}
	return all
}

// lone are all cgroups that are to be containers by themselves, but for those of a runtime that is followed.
func (p *guardParents) lone(of policy.Policy) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.AppendSeq(named(of), maps.Keys(p.alone))
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// remember has those guarded that an earlier sensor guarded.
func (p *guardParents) remember() {
	all := p.d.state.List()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range all {
		if _, known := p.alone[c.Cgroup]; !known && c.Alone && c.Origin.Namespace == "" {
			p.alone[c.Cgroup] = 0
		}
	}
}

// forget drops one that is gone, and that neither the policy nor the books know.
func (p *guardParents) forget(at string, of policy.Policy) {
	if _, err := p.d.state.Find(at); err == nil || slices.Contains(named(of), at) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alone, at)
}

// Watched are the cgroups whose making is to be told at once.
func (p *guardParents) Watched() []string { return append(p.List(), p.lone(p.d.policies.Base())...) }

// checkAlone refuses cgroups of a policy that cannot be containers by themselves.
func (p *guardParents) checkAlone(of policy.Policy) error {
	parents := allParents(of)
	for _, name := range of.Guard.Cgroups {
		if _, err := linux.CgroupNamed(name); errors.Is(err, linux.ErrAmbiguous) {
			return fmt.Errorf("guard.cgroups: %w", err)
		}
	}
	for _, at := range named(of) {
		if linux.CgroupWithin(at, parents) {
			return fmt.Errorf("guard.cgroups: %s is at or below a guarded parent: leave it out", at)
		}
		for _, parent := range parents {
			if linux.PathWithin(parent, at) {
				return fmt.Errorf("guard.cgroups: the guarded parent %s is in %s: leave one out", parent, at)
			}
		}
		if _, err := linux.CgroupID(at); err != nil {
			p.d.opts.Logger.Warnf("guard.cgroups: %s is not there yet: it is guarded just after it is made", at)
		} else if err := p.refuse(at); err != nil {
			return fmt.Errorf("guard.cgroups: %w", err)
		}
	}
	return nil
}

// tendAlone guards those that are there, or there again; below says where, empty: all.
func (p *guardParents) tendAlone(of policy.Policy, below string) error {
	var errs []error
	for _, at := range p.lone(of) {
		if below != "" && !linux.PathWithin(at, below) {
			continue
		}
		switch err := p.guardAlone(at, of, "policy"); {
		case errors.Is(err, fs.ErrNotExist):
			p.forget(at, of)
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
