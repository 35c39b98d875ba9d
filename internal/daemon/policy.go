package daemon

import (
	"errors"
	"time"

	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/policy"
)

// loadPolicy also gives the digest of the file's text.
func loadPolicy(path string) (p policy.Policy, digest string, err error) {
	if path == "" {
		return policy.Default(), "", nil
	}
	text, err := linux.ReadInput(path, policy.MaxFile)
	if err == nil {
		p, err = policy.Parse(path, text)
	}
	return p, gate.Digest(string(text)), err
}

// policyStamp says which policy file is in force, and since when by the clock of who put it there.
type policyStamp struct {
	Digest string    `json:"digest"`
	At     time.Time `json:"at,omitzero"` // zero: it came with the sensor's first start
}

// stampPolicy notes a file that somebody on this node has changed: no policy that was signed before counts any more.
func (d *daemon) stampPolicy(digest string) error {
	var last policyStamp
	if err := d.memory.Get(keyPolicy, &last); err != nil || last.Digest == digest && !tooFar(last.At) {
		return err
	}
	now := policyStamp{Digest: digest}
	if last != (policyStamp{}) {
		now.At = notBefore(last.At, time.Now())
	}
	return d.memory.Put(keyPolicy, now)
}

// applyPolicy puts a policy in force: what can fail first, and what opens
// something last, in one step.
func (d *daemon) applyPolicy(p policy.Policy) error {
	if err := d.parents.Apply(p); err != nil {
		return err
	}
	if err := d.setPolicy(netegress.BaseSlot, p); err != nil {
		return err
	}
	return d.restorePolicies()
}

// setPolicy puts one policy in force in a slot; what taints comes first.
func (d *daemon) setPolicy(slot uint32, p policy.Policy) error {
	if err := d.files.Set(slot, p.Taint.SecretFiles); err != nil {
		return err
	}
	return d.tellPolicy(slot, p)
}

// tellPolicy gives one to the kernel.
func (d *daemon) tellPolicy(slot uint32, p policy.Policy) error {
	p = d.policies.InMode(p)
	if p.Mode == policy.Observe { // nothing is asked about any more
		if err := d.dns.LeadDatagrams(); err != nil {
			return err
		}
	}
	return d.egress.SetPolicy(slot, p)
}

// restorePolicies takes up the policies of sessions that an earlier daemon served.
func (d *daemon) restorePolicies() error {
	for _, st := range d.state.List() {
		if st.Text == "" || !st.Session || st.Policy == netegress.BaseSlot { // gone, and its slot with it
			continue
		}
		p, err := policy.Parse("policy of "+st.ID, []byte(st.Text))
		if err != nil {
			return err
		}
		d.policies.SetOwn(st.ID, p)
		if err := d.setPolicy(st.Policy, p); err != nil {
			return err
		}
	}
	return nil
}

// applyPolicies writes all policies anew.
func (d *daemon) applyPolicies() error {
	errs := []error{d.tellPolicy(netegress.BaseSlot, d.policies.Base())}
	own := d.policies.Own()
	for _, st := range d.state.List() {
		if p, ok := own[st.ID]; ok {
			errs = append(errs, d.tellPolicy(st.Policy, p))
		}
	}
	return errors.Join(append(errs, d.dns.PolicyChanged())...)
}
