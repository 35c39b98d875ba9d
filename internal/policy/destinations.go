package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// MaxRules is how many rules one Destination can have: what the kernel's map
// value holds.
const MaxRules = 16

// Protocol numbers of Rule, as in an IP header.
const (
	protocolAny uint8 = 0
	protocolTCP uint8 = 6
	protocolUDP uint8 = 17
)

// Rule opens one range of ports of one protocol.
type Rule struct {
	Protocol  uint8  // IPPROTO_*; 0: any protocol, a packet without ports counts as port 0
	Low, High uint16 // both included
}

// Destination is one entry of a longest-prefix match: Rules are all that is open
// below Prefix, whatever shorter prefixes say. No rules: nothing is open.
type Destination struct {
	Prefix netip.Prefix // always IPv6; IPv4 as ::ffff:a.b.c.d/96+n
	Rules  []Rule       // at most MaxRules, sorted, without overlaps
}

// Opens says whether destinations, as Destinations gives them, have a rule for this in the longest prefix that has the address.
func Opens(all []Destination, to netip.AddrPort, protocol uint8) bool {
	best, addr := Destination{}, netip.AddrFrom16(to.Addr().As16())
	for _, d := range all {
		if d.Prefix.Contains(addr) && (!best.Prefix.IsValid() || d.Prefix.Bits() > best.Prefix.Bits()) {
			best = d
		}
	}
	return slices.ContainsFunc(best.Rules, func(r Rule) bool {
		return (r.Protocol == protocolAny || r.Protocol == protocol) && to.Port() >= r.Low && to.Port() <= r.High
	})
}

// mapped holds all of IPv4 in an IPv6 table.
var mapped = netip.MustParsePrefix("::ffff:0:0/96")

// Destinations folds Allow for a longest-prefix match: the kernel sees only the
// longest entry, so each carries the rules of every shorter prefix of Allow that
// covers it. An IPv6 prefix never opens IPv4, also where its bits cover the
// mapped range. The result is sorted by prefix. It fails on a prefix with more
// than MaxRules rules, which Parse refuses already.
func (p Policy) Destinations() ([]Destination, error) {
	ds, _, err := fold(p.Allow)
	return ds, err
}

// fold also returns the index in allow of the entry that an error is about.
func fold(allow []Allow) ([]Destination, int, error) {
	type entry struct {
		Allow
		six  netip.Prefix
		four bool
	}
	var entries []entry
	first := make(map[netip.Prefix]int) // the first Allow of each prefix
	order := []netip.Prefix{}
	blockFour := false
	for i, a := range allow {
		if a.Name != "" {
			continue
		}
		six, four, err := to6(a.Prefix)
		if err != nil {
			return nil, i, err
		}
		entries = append(entries, entry{a, six, four})
		if _, seen := first[six]; !seen {
			first[six] = i
			order = append(order, six)
		}
		blockFour = blockFour || !four && six.Overlaps(mapped)
	}
	if _, seen := first[mapped]; blockFour && !seen {
		order = append(order, mapped) // with no rules: ::/0 must not open 0.0.0.0/0
	}

	var ds []Destination
	for _, prefix := range order {
		four := isMapped(prefix)
		var rules []Rule
		for _, e := range entries {
			if e.four != four || e.six.Bits() > prefix.Bits() || !e.six.Contains(prefix.Addr()) {
				continue
			}
			rs, err := e.rules()
			if err != nil {
				return nil, first[e.six], err
			}
			rules = append(rules, rs...)
		}
		rules = merge(rules)
		if len(rules) > MaxRules {
			i := first[prefix]
			return nil, i, fmt.Errorf("allow.ports: %d port ranges are open in %s, at most %d are accepted: use wider ranges", len(rules), allow[i].Prefix, MaxRules)
		}
		ds = append(ds, Destination{prefix, rules})
	}
	slices.SortFunc(ds, func(a, b Destination) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	return ds, 0, nil
}

// to6 writes a prefix as IPv6 and says whether it is IPv4.
func to6(p netip.Prefix) (six netip.Prefix, four bool, err error) {
	if !p.IsValid() || p != p.Masked() {
		return p, false, fmt.Errorf("fold prefix %s: not a network address", p)
	}
	if p.Addr().Is4() {
		return netip.PrefixFrom(netip.AddrFrom16(p.Addr().As16()), p.Bits()+96), true, nil
	}
	return p, isMapped(p), nil
}

func isMapped(p netip.Prefix) bool { return p.Bits() >= mapped.Bits() && mapped.Contains(p.Addr()) }

func (a Allow) rules() ([]Rule, error) {
	var protocol uint8
	switch a.Protocol {
	case TCP:
		protocol = protocolTCP
	case UDP:
		protocol = protocolUDP
	case Any:
		protocol = protocolAny
	default:
		return nil, fmt.Errorf("fold prefix %s: unknown protocol %s", a.Prefix, yamlQuote(a.Protocol))
	}
	if len(a.Ports) == 0 {
		return []Rule{{protocol, 0, 65535}}, nil
	}
	var rules []Rule
	for _, r := range a.Ports {
		if r.Low > r.High {
			return nil, fmt.Errorf("fold prefix %s: port range %s ends before it starts", a.Prefix, r)
		}
		rules = append(rules, Rule{protocol, r.Low, r.High})
	}
	return rules, nil
}

// merge sorts rules, joins those of one protocol that touch, and drops those
// that a rule for any protocol covers.
func merge(rules []Rule) []Rule {
	slices.SortFunc(rules, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Low, b.Low), cmp.Compare(a.High, b.High))
	})
	var out []Rule
	for _, r := range rules {
		if n := len(out); n > 0 && out[n-1].Protocol == r.Protocol && int(r.Low) <= int(out[n-1].High)+1 {
			out[n-1].High = max(out[n-1].High, r.High)
			continue
		}
		out = append(out, r)
	}
	anys := slices.DeleteFunc(slices.Clone(out), func(r Rule) bool { return r.Protocol != protocolAny })
	return slices.DeleteFunc(out, func(r Rule) bool {
		return r.Protocol != protocolAny && slices.ContainsFunc(anys, func(a Rule) bool { return a.Low <= r.Low && r.High <= a.High })
	})
}
