package sensor

import (
	"errors"
	"fmt"
	"slices"

	"weir/internal/cgroup"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/sensor/store"
)

func loadPolicy(path string) (policy.Policy, error) {
	if path == "" {
		return policy.Default(), nil
	}
	return policy.Load(path)
}

func (d *daemon) current() policy.Policy {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.policy
}

// mode is what is in force: what weir mode said, or the policy's.
func (d *daemon) mode() policy.Mode {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sealed != "" {
		return d.sealed
	}
	return d.policy.Mode
}

// policyFor is the policy of a container: its own, or the daemon's.
func (d *daemon) policyFor(id string) policy.Policy {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, ok := d.own[id]; ok {
		return p
	}
	return d.policy
}

// applyPolicy puts a policy in force: what can fail first, and what opens
// something last, in one step.
func (d *daemon) applyPolicy(p policy.Policy) error {
	if err := d.checkParents(p.Guard.Parents); err != nil {
		return err
	}
	if err := d.guardSlice(); err != nil {
		return err
	}
	for _, parent := range p.Guard.Parents {
		if err := d.guard(parent, p); err != nil {
			return err
		}
	}
	if err := d.setPolicy(netegress.BaseSlot, p); err != nil {
		return err
	}
	return d.restorePolicies()
}

// checkParents refuses parents that are not there, unless they once were: those are
// guarded when they are made again.
func (d *daemon) checkParents(parents []string) error {
	var known []string
	if err := d.memory.Get(store.Parents, &known); err != nil {
		return err
	}
	for _, parent := range parents {
		if _, err := cgroup.ID(parent); err != nil && !slices.Contains(known, parent) {
			return fmt.Errorf("guard.parents: %w", err)
		}
	}
	if slices.Equal(known, parents) {
		return nil
	}
	if err := d.memory.Put(store.Parents, parents); err != nil {
		d.opts.Logger.WithError(err).Error("store parents") // they must be there at the next start
	}
	return nil
}

// guardSlice makes the parent of all sessions, and guards it.
func (d *daemon) guardSlice() error {
	if _, err := cgroup.Make(Slice); err != nil {
		return err
	}
	return d.guardParent(Slice)
}

// setPolicy puts one policy in force in a slot; what taints comes first.
func (d *daemon) setPolicy(slot uint32, p policy.Policy) error {
	if err := d.files.Set(slot, p.Taint.SecretFiles); err != nil {
		return err
	}
	return d.egress.SetPolicy(slot, d.inMode(p))
}

// restorePolicies takes up the policies of sessions that an earlier daemon served.
func (d *daemon) restorePolicies() error {
	for _, st := range d.state.List() {
		if st.Text == "" || !st.Session {
			continue
		}
		p, err := policy.Parse("policy of "+st.ID, []byte(st.Text))
		if err != nil {
			return err
		}
		d.mu.Lock()
		d.own[st.ID] = p
		d.mu.Unlock()
		if err := d.setPolicy(st.Policy, p); err != nil {
			return err
		}
	}
	return nil
}

// inMode is a policy in the mode that is in force for all.
func (d *daemon) inMode(p policy.Policy) policy.Policy {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sealed != "" {
		p.Mode = d.sealed
	}
	if p.Taint.Untrusted {
		p.Resolvers = resolvers(p.Resolvers) // they are trusted
	}
	return p
}

// applyPolicies writes all policies anew.
func (d *daemon) applyPolicies() error {
	errs := []error{d.egress.SetPolicy(netegress.BaseSlot, d.inMode(d.current()))}
	own := d.sessions()
	for _, st := range d.state.List() {
		if p, ok := own[st.ID]; ok {
			errs = append(errs, d.egress.SetPolicy(st.Policy, d.inMode(p)))
		}
	}
	return errors.Join(errs...)
}
