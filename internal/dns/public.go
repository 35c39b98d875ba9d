package dns

import (
	"net/netip"
	"slices"
)

// notPublic are the networks in which hosts of one's own and services of a cloud
// are, by IANA's registries of special addresses; those that carry an IPv4
// address in an IPv6 one are among them, since nobody checks what it is.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.88.99.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32", // the last is a cloud's metadata
	"::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2002::/16", "fc00::/7", "fe80::/9", "ff00::/8",
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Public says whether a name may lead to an address that nobody listed (B25).
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsValid() && !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}
