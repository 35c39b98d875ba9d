package netegress

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"weir/internal/bpfobj"
	"weir/internal/policy"
)

// BaseSlot is the slot of the daemon's own policy.
const BaseSlot = 0

const maxSlots = 64

// loaded is what a policy has in the kernel's maps.
type loaded struct {
	generation uint32
	prefixes   []egressPrefix
	peers      []peersUnixPeer
	listed     []string // Unix peers of the policy itself
	trusted    []packetPrefix
}

// SetPolicy puts a policy in force in a slot. Its destinations are written
// beside the old ones under a new generation; one update of the slot then
// switches over, and the old ones are deleted.
func (e *Egress) SetPolicy(slot uint32, p policy.Policy) error {
	e.find(p.AllowUnixSockets)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.setPolicy(slot, p)
}

func (e *Egress) setPolicy(slot uint32, p policy.Policy) error {
	var kernel egressPolicy
	if err := e.egress.Policies.Lookup(slot, &kernel); err != nil {
		return fmt.Errorf("read policy %d: %w", slot, err)
	}
	next := loaded{generation: kernel.Generation + 1}
	if err := e.write(slot, &next, p); err != nil {
		return errors.Join(err, e.erase(next))
	}
	kernel = egressPolicy{Mode: modeOf(p.Mode), Generation: next.generation, Used: 1}
	if p.Hold {
		kernel.Flags |= egressPolicyFlagPOLICY_HOLD
	}
	if p.Approver == policy.Person || p.Cop.Reviewer != policy.None {
		kernel.Flags |= egressPolicyFlagPOLICY_ASK
	}
	if p.Review == policy.AtExec {
		kernel.Flags |= egressPolicyFlagPOLICY_REVIEW
	}
	if p.Taint.Untrusted {
		kernel.Flags |= egressPolicyFlagPOLICY_TRUST
		kernel.ReplyBudget = p.Taint.ReplyBudget
	}
	if err := e.put(slot, kernel); err != nil {
		return errors.Join(err, e.erase(next))
	}
	old, known := e.slots[slot]
	e.slots[slot] = next
	if known {
		return e.erase(old)
	}
	return e.eraseOthers(slot, next.generation)
}

// AddPolicy puts a policy in force in a free slot and returns it.
func (e *Egress) AddPolicy(p policy.Policy) (uint32, error) {
	e.find(p.AllowUnixSockets)
	e.mu.Lock()
	defer e.mu.Unlock()
	for slot := uint32(BaseSlot + 1); slot < maxSlots; slot++ {
		var kernel egressPolicy
		if err := e.egress.Policies.Lookup(slot, &kernel); err != nil {
			return 0, fmt.Errorf("read policy %d: %w", slot, err)
		}
		if kernel.Used == 0 {
			return slot, e.setPolicy(slot, p)
		}
	}
	return 0, fmt.Errorf("no room for another policy: %d are in use: end a guard session that has its own", maxSlots)
}

// DropPolicy frees a slot, which nothing names any more.
func (e *Egress) DropPolicy(slot uint32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.slots[slot]
	delete(e.slots, slot)
	delete(e.bridges, slot)
	if err := e.put(slot, egressPolicy{Generation: old.generation + 1}); err != nil {
		return err
	}
	return e.erase(old)
}

func (e *Egress) put(slot uint32, p egressPolicy) error {
	return e.opts.State.Change(func() error {
		if err := e.egress.Policies.Put(slot, &p); err != nil {
			return fmt.Errorf("write policy %d: %w", slot, err)
		}
		return nil
	})
}

func (e *Egress) write(slot uint32, l *loaded, p policy.Policy) error {
	dests, err := p.Destinations()
	if err != nil {
		return err
	}
	for _, d := range dests {
		key := egressPrefix{Bits: 64 + uint32(d.Prefix.Bits()), Policy: slot, Generation: l.generation, Addr: d.Prefix.Addr().As16()}
		value := egressRules{Count: uint32(len(d.Rules))}
		for i, r := range d.Rules {
			value.Rule[i].Proto, value.Rule[i].Low, value.Rule[i].High = r.Protocol, r.Low, r.High
		}
		l.prefixes = append(l.prefixes, key)
		if err := e.egress.Destinations.Put(&key, &value); err != nil {
			return fmt.Errorf("write allowed destination %s: %w", d.Prefix, err)
		}
	}
	l.listed = p.AllowUnixSockets
	for _, path := range p.AllowUnixSockets {
		if err := e.putPeer(slot, l, path, e.listed(path)); err != nil {
			return err
		}
	}
	for _, path := range e.bridges[slot] {
		if err := e.putPeer(slot, l, path, own); err != nil {
			return err
		}
	}
	return e.writeTrusted(slot, l, p)
}

// writeTrusted writes the networks whose answers do not taint, and the name servers.
func (e *Egress) writeTrusted(slot uint32, l *loaded, p policy.Policy) error {
	if !p.Taint.Untrusted {
		return nil
	}
	put := func(prefix netip.Prefix, value packetTrust) error {
		key := packetPrefix{Bits: 64 + uint32(prefix.Bits()), Policy: slot, Generation: l.generation, Addr: prefix.Addr().As16()}
		l.trusted = append(l.trusted, key)
		err := e.packet.Trusted.Update(&key, value, ebpf.UpdateNoExist)
		if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
			return fmt.Errorf("write trusted network %s: %w", prefix, err)
		}
		return nil
	}
	trusted := p.Taint.TrustedPrefixes()
	for prefix, is := range trusted {
		value := packetTrustTRUST_NONE
		if is {
			value = packetTrustTRUST_ALL
		}
		if err := put(prefix, value); err != nil {
			return err
		}
	}
	for _, addr := range p.Resolvers {
		if p.Taint.Trusts(addr) {
			continue // on every port
		}
		if err := put(netip.PrefixFrom(netip.AddrFrom16(addr.As16()), 128), packetTrustTRUST_DNS); err != nil {
			return err
		}
	}
	return nil
}

func (e *Egress) erase(l loaded) error {
	if len(l.prefixes)+len(l.peers)+len(l.trusted) > 0 {
		bpfobj.WaitRCU()
	}
	return errors.Join(bpfobj.Delete(e.egress.Destinations, l.prefixes...), bpfobj.Delete(e.peers.UnixPeers, l.peers...), bpfobj.Delete(e.packet.Trusted, l.trusted...))
}

// eraseOthers deletes what an earlier daemon had in a slot.
func (e *Egress) eraseOthers(slot, generation uint32) error {
	is := func(s, g uint32) bool { return s == slot && g != generation }
	var old loaded
	var errs [3]error
	old.prefixes, errs[0] = bpfobj.Keys(e.egress.Destinations, func(k egressPrefix, _ egressRules) bool { return is(k.Policy, k.Generation) })
	old.peers, errs[1] = bpfobj.Keys(e.peers.UnixPeers, func(k peersUnixPeer, _ peersUnixListed) bool { return is(k.Policy, k.Generation) })
	old.trusted, errs[2] = bpfobj.Keys(e.packet.Trusted, func(k packetPrefix, _ packetTrust) bool { return is(k.Policy, k.Generation) })
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("list old policy: %w", err)
	}
	return e.erase(old)
}

func modeOf(m policy.Mode) egressMode {
	switch m {
	case policy.Observe:
		return egressModeMODE_OBSERVE
	case policy.Seal:
		return egressModeMODE_SEAL
	}
	return egressModeMODE_ENFORCE
}
