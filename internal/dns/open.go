package dns

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weir/internal/bpfobj"
	"weir/internal/taint"
)

// Lead has an address of the pool lead to a real one under a grant that is about to be
// made.
func (s *Redirect) Lead(grant, container uint64, from, to netip.Addr) error {
	key, value := namesFakeTargetKey{Grant: grant, Container: container, Addr: from.As16()}, namesFakeTarget{Addr: to.As16()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.objects.FakeTargets.Put(&key, &value); err != nil {
		return fmt.Errorf("write the address of a name: %w", err)
	}
	if grant != 0 && !slices.Contains(s.targets[grant], key) {
		s.targets[grant] = append(s.targets[grant], key)
	}
	return nil
}

// Ended forgets where names led under a grant that is over.
func (s *Redirect) Ended(grant uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.targets[grant]
	delete(s.targets, grant)
	if grant == 0 {
		return nil
	}
	return bpfobj.Delete(s.objects.FakeTargets, keys...)
}

// Lease implements names.Host.
func (h host) Lease(name string, addrs []netip.Addr, until time.Time) error {
	h.of.leasing.Lock()
	defer h.of.leasing.Unlock()
	for _, a := range addrs {
		if h.of.leases[a] == nil {
			h.of.leases[a] = map[string]time.Time{}
		}
		h.of.leases[a][name] = until
		if err := h.writeLease(h.of, a); err != nil {
			return err
		}
	}
	return nil
}

// writeLease tells the kernel what is open of an address: what the policy opens to the
// names that lead there.
func (s *Redirect) writeLease(b *containerDNS, a netip.Addr) error {
	key := namesLeaseKey{Container: b.container, Addr: a.As16()}
	p := b.policy.Load()
	var value namesLease
	var until time.Time
	now := time.Now()
	for name, end := range b.leases[a] {
		rules := p.NameRules(name)
		if len(rules) == 0 || end.Before(now) {
			delete(b.leases[a], name)
			continue
		}
		if end.After(until) {
			until = end
		}
		for _, r := range rules {
			if int(value.Rules.Count) < len(value.Rules.Rule) {
				at := &value.Rules.Rule[value.Rules.Count]
				at.Proto, at.Low, at.High = r.Protocol, r.Low, r.High
				value.Rules.Count++
			}
		}
	}
	if len(b.leases[a]) == 0 {
		delete(b.leases, a)
		return bpfobj.Delete(s.objects.DnsLeases, key)
	}
	value.Expires = taint.Now() + uint64(time.Until(until))
	if err := s.objects.DnsLeases.Put(&key, &value); err != nil {
		return fmt.Errorf("open the addresses of a name: %w", err)
	}
	return nil
}

// expire closes what was open for an answer that is over.
func (s *Redirect) expire(b *containerDNS) {
	b.leasing.Lock()
	defer b.leasing.Unlock()
	now := time.Now()
	for a, all := range b.leases {
		over := false
		for _, end := range all {
			over = over || end.Before(now)
		}
		if over {
			if err := s.writeLease(b, a); err != nil {
				s.opts.Logger.WithError(err).Error("close the addresses of a name")
			}
		}
	}
}

// renewed is how long connections to names that are still allowed have to be seen under a new policy.
const renewed = time.Minute

// PolicyChanged judges anew what is open, under the policies that are in force now.
func (s *Redirect) PolicyChanged() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, b := range s.containers {
		s.refresh(b)
		for _, r := range b.open {
			r.Forget()
		}
		b.leasing.Lock()
		for a, all := range b.leases {
			for name, end := range all {
				if soon := time.Now().Add(renewed); end.Before(soon) {
					all[name] = soon
				}
			}
			errs = append(errs, s.writeLease(b, a))
		}
		b.leasing.Unlock()
	}
	return errors.Join(errs...)
}

func (s *Redirect) dropLeases(which func(namesLeaseKey) bool) error {
	keys, err := bpfobj.Keys(s.objects.DnsLeases, func(key namesLeaseKey, _ namesLease) bool { return which(key) })
	if err != nil {
		return fmt.Errorf("list addresses of allowed names: %w", err)
	}
	return bpfobj.Delete(s.objects.DnsLeases, keys...)
}
