package sensor

import (
	"errors"
	"fmt"

	"weir/internal/cgroup"
	"weir/internal/netegress"
	"weir/internal/policy"
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

// applyPolicy puts a policy in force: its destinations and mode first, then the
// parents that it guards.
func (d *daemon) applyPolicy(p policy.Policy) error {
	if err := d.egress.SetPolicy(netegress.BaseSlot, d.inMode(p)); err != nil {
		return err
	}
	if _, err := cgroup.Make(Slice); err != nil {
		return err
	}
	if err := d.egress.GuardParent(Slice, netegress.BaseSlot); err != nil {
		return err
	}
	for _, parent := range p.Guard.Parents {
		if err := d.egress.GuardParent(parent, netegress.BaseSlot); err != nil {
			return fmt.Errorf("guard.parents: %w", err)
		}
		children, err := cgroup.Children(parent)
		if err != nil {
			return err
		}
		for _, child := range children {
			if err := d.admit(child); err != nil {
				return err
			}
		}
	}
	return d.restorePolicies()
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
		if err := d.egress.SetPolicy(st.Policy, d.inMode(p)); err != nil {
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
	return p
}

// applyPolicies writes all policies anew, after a change of mode.
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

func (d *daemon) replacePolicy(p policy.Policy) error {
	if old := d.current(); p.Events != old.Events {
		return errors.New("events: changed: restart the sensor for that")
	}
	if err := d.applyPolicy(p); err != nil {
		return errors.Join(err, d.applyPolicy(d.current()))
	}
	d.mu.Lock()
	d.policy = p
	d.mu.Unlock()
	d.gate.Configure(p.Approver == policy.Person, seconds(p.AskSeconds), seconds(p.ClaimSeconds))
	return nil
}
