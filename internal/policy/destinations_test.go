package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDestinations(t *testing.T) {
	prefix := netip.MustParsePrefix
	all := func(protocol uint8) Rule { return Rule{protocol, 0, 65535} }
	for _, c := range []struct {
		name  string
		allow []Allow
		want  []Destination
	}{
		{"nothing", nil, nil},
		{"IPv4 is mapped", []Allow{{Prefix: prefix("10.0.0.0/8"), Protocol: TCP}},
			[]Destination{{prefix("::ffff:10.0.0.0/104"), []Rule{all(6)}}}},
		{"the longer carries the shorter", []Allow{
			{Prefix: prefix("10.1.0.0/16"), Protocol: TCP, Ports: []PortRange{{443, 443}}},
			{Prefix: prefix("10.0.0.0/8"), Protocol: UDP, Ports: []PortRange{{53, 53}}},
			{Prefix: prefix("10.1.2.0/24"), Protocol: TCP, Ports: []PortRange{{22, 22}}},
			{Prefix: prefix("10.2.0.0/16"), Protocol: Any},
		}, []Destination{
			{prefix("::ffff:10.0.0.0/104"), []Rule{{17, 53, 53}}},
			{prefix("::ffff:10.1.0.0/112"), []Rule{{6, 443, 443}, {17, 53, 53}}},
			{prefix("::ffff:10.1.2.0/120"), []Rule{{6, 22, 22}, {6, 443, 443}, {17, 53, 53}}},
			{prefix("::ffff:10.2.0.0/112"), []Rule{all(0)}},
		}},
		{"one prefix twice", []Allow{
			{Prefix: prefix("2001:db8::/32"), Protocol: TCP, Ports: []PortRange{{80, 90}}},
			{Prefix: prefix("2001:db8::/32"), Protocol: TCP, Ports: []PortRange{{91, 95}, {85, 88}, {97, 97}}},
		}, []Destination{{prefix("2001:db8::/32"), []Rule{{6, 80, 95}, {6, 97, 97}}}}},
		{"any covers", []Allow{
			{Prefix: prefix("10.0.0.0/8"), Protocol: Any, Ports: []PortRange{{100, 200}}},
			{Prefix: prefix("10.0.0.0/8"), Protocol: TCP, Ports: []PortRange{{150, 160}, {190, 210}}},
		}, []Destination{{prefix("::ffff:10.0.0.0/104"), []Rule{{0, 100, 200}, {6, 190, 210}}}}},
		{"the highest port does not wrap", []Allow{{Prefix: prefix("10.0.0.0/8"), Protocol: TCP, Ports: []PortRange{{1, 65535}, {1, 2}}}},
			[]Destination{{prefix("::ffff:10.0.0.0/104"), []Rule{{6, 1, 65535}}}}},
		{"all of IPv6 is not IPv4", []Allow{{Prefix: prefix("::/0"), Protocol: TCP}, {Prefix: prefix("10.0.0.0/8"), Protocol: UDP}}, []Destination{
			{prefix("::/0"), []Rule{all(6)}},
			{prefix("::ffff:0:0/96"), nil},
			{prefix("::ffff:10.0.0.0/104"), []Rule{all(17)}},
		}},
		{"all of both", []Allow{{Prefix: prefix("::/0"), Protocol: TCP}, {Prefix: prefix("0.0.0.0/0"), Protocol: UDP}}, []Destination{
			{prefix("::/0"), []Rule{all(6)}},
			{prefix("::ffff:0:0/96"), []Rule{all(17)}},
		}},
		{"what covers the mapped range", []Allow{{Prefix: prefix("::ffc0:0:0/90"), Protocol: TCP}}, []Destination{
			{prefix("::ffc0:0:0/90"), []Rule{all(6)}},
			{prefix("::ffff:0:0/96"), nil},
		}},
	} {
		p := Policy{Allow: c.allow}
		got, err := p.Destinations()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got, netips); diff != "" {
			t.Errorf("%s, want - got +\n%s", c.name, diff)
		}
		checkFold(t, p)
	}
}

func TestDestinationsErrors(t *testing.T) {
	for want, a := range map[string]Allow{
		"fold prefix invalid Prefix: not a network address":            {Protocol: TCP},
		"fold prefix 10.0.0.1/8: not a network address":                {Prefix: netip.MustParsePrefix("10.0.0.1/8"), Protocol: TCP},
		`fold prefix 10.0.0.0/8: unknown protocol ""`:                  {Prefix: netip.MustParsePrefix("10.0.0.0/8")},
		"fold prefix 10.0.0.0/8: port range 2-1 ends before it starts": {Prefix: netip.MustParsePrefix("10.0.0.0/8"), Protocol: TCP, Ports: []PortRange{{2, 1}}},
	} {
		got, err := Policy{Allow: []Allow{a}}.Destinations()
		if fmt.Sprint(err) != want || got != nil {
			t.Errorf("Destinations of %v: %v, %v, want %s", a, got, err, want)
		}
	}
}

// TestDestinationsRandom compares folded tables with what Allow says, on networks
// that nest in many ways.
func TestDestinationsRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	folded := 0
	for range 500 {
		var p Policy
		for range 1 + r.IntN(8) {
			a := Allow{Protocol: []string{TCP, UDP, Any}[r.IntN(3)]}
			addr := netip.AddrFrom4([4]byte{10, byte(r.IntN(2)), byte(r.IntN(2)) << 7, 0})
			if r.IntN(3) == 0 {
				addr = netip.AddrFrom16([16]byte{10: byte(r.IntN(2)) * 255, 11: byte(r.IntN(2)) * 255, 12: 10})
			}
			a.Prefix = netip.PrefixFrom(addr, r.IntN(addr.BitLen()+1)).Masked()
			if addr.Is4In6() && a.Prefix.Bits() >= 96 {
				continue // Parse writes these as IPv4
			}
			for range r.IntN(3) {
				low := uint16(r.IntN(6))
				a.Ports = append(a.Ports, PortRange{low, low + uint16(r.IntN(3))})
			}
			p.Allow = append(p.Allow, a)
		}
		if checkFold(t, p) {
			folded++
		}
	}
	if folded < 400 {
		t.Errorf("only %d of 500 policies were folded", folded)
	}
}

// checkFold looks addresses up as the kernel does, and compares with Allow itself.
func checkFold(t *testing.T, p Policy) bool {
	t.Helper()
	ds, err := p.Destinations()
	if err != nil {
		return false
	}
	addrs := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.1.128.1"), netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("::")}
	for i, a := range p.Allow {
		if i < 8 {
			addrs = append(addrs, a.Prefix.Addr(), a.Prefix.Addr().Next(), a.Prefix.Addr().Prev())
		}
	}
	for _, addr := range addrs {
		if !addr.IsValid() {
			continue
		}
		addr = addr.Unmap()
		for _, protocol := range []uint8{1, 6, 17} {
			for _, port := range []uint16{0, 1, 2, 3, 5, 443, 65535} {
				if protocol == 1 && port != 0 {
					continue
				}
				if got, want := lookUp(ds, addr, protocol, port), allowed(p.Allow, addr, protocol, port); got != want {
					t.Fatalf("%s protocol %d port %d: folded %t, want %t\nallow %v\nfolded %v", addr, protocol, port, got, want, p.Allow, ds)
				}
			}
		}
	}
	return true
}

func lookUp(ds []Destination, addr netip.Addr, protocol uint8, port uint16) bool {
	addr = netip.AddrFrom16(addr.As16())
	best := Destination{}
	for _, d := range ds {
		if d.Prefix.Contains(addr) && (!best.Prefix.IsValid() || d.Prefix.Bits() > best.Prefix.Bits()) {
			best = d
		}
	}
	for _, r := range best.Rules {
		if (r.Protocol == 0 || r.Protocol == protocol) && r.Low <= port && port <= r.High {
			return true
		}
	}
	return false
}

func allowed(allow []Allow, addr netip.Addr, protocol uint8, port uint16) bool {
	for _, a := range allow {
		number := map[string]uint8{TCP: 6, UDP: 17, Any: protocol}[a.Protocol]
		if !a.Prefix.Contains(addr) || number != protocol {
			continue
		}
		if len(a.Ports) == 0 {
			return true
		}
		for _, r := range a.Ports {
			if r.Low <= port && port <= r.High {
				return true
			}
		}
	}
	return false
}
