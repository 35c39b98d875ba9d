package policy

import (
	"fmt"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"
)

const maxTrusted = 1024

// trusted reads the networks whose answers are not input that somebody else controls.
func (p *parser) trusted(n *yaml.Node, into *[]netip.Prefix) {
	var texts []string
	p.Texts(n, "taint.trusted_networks", "networks such as 10.0.0.0/8, and addresses", maxTrusted, &texts, func(s string) (string, string) {
		network, wrong := network(s)
		if wrong != "" {
			return s, wrong
		}
		*into = append(*into, network)
		return network.String(), ""
	})
}

// network reads a prefix without host bits, or one address. IPv4 is never written as IPv6.
func network(s string) (netip.Prefix, string) {
	prefix, err := netip.ParsePrefix(s)
	if a, aerr := netip.ParseAddr(s); aerr == nil && a.Zone() == "" {
		prefix, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil {
		return prefix, "not a network such as 192.0.2.0/24 or 2001:db8::/32"
	}
	if a := prefix.Addr(); a.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
	}
	if m := prefix.Masked(); m != prefix {
		return prefix, fmt.Sprintf("it has bits set after its first %d: did you mean %s?", prefix.Bits(), m)
	}
	return prefix, ""
}

// Trusts says whether an address is in Trusted.
func (t Taint) Trusts(a netip.Addr) bool {
	return slices.ContainsFunc(t.TrustedNetworks, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// TrustedPrefixes is Trusted for a longest-prefix match in which IPv4 stands as ::ffff:a.b.c.d. Where an IPv6 network covers those,
// all of IPv4 is an entry of its own with false: it is not meant.
func (t Taint) TrustedPrefixes() map[netip.Prefix]bool {
	all := map[netip.Prefix]bool{}
	covered := false
	for _, p := range t.TrustedNetworks {
		if p.Addr().Is4() {
			all[netip.PrefixFrom(netip.AddrFrom16(p.Addr().As16()), p.Bits()+96)] = true
			continue
		}
		all[p] = true
		covered = covered || p.Bits() < mapped.Bits() && p.Overlaps(mapped)
	}
	if covered && !all[mapped] {
		all[mapped] = false
	}
	return all
}
