package netegress

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func destination(addr string, port uint16, proto uint8) Destination {
	return Destination{Addr: netip.MustParseAddr(addr), Port: port, Proto: proto}
}

// A mapped address is the IPv4 one, on the way in and out (B14).
func TestDestination(t *testing.T) {
	for _, addr := range []string{"192.0.2.7", "2001:db8::7"} {
		d := destination(addr, 443, protoTCP)
		if got := destOf(d.raw()); got != d {
			t.Errorf("%v came back as %v", d, got)
		}
	}
	mapped := destination("::ffff:192.0.2.7", 443, protoTCP)
	if got := destOf(mapped.raw()).Addr.String(); got != "192.0.2.7" {
		t.Errorf("%v came back as %s", mapped, got)
	}
	if e := destination("192.0.2.53", 53, protoUDP).Event(); !e.DNS || e.Protocol != "udp" {
		t.Errorf("a DNS question is told as %+v", e)
	}
	if e := destination("192.0.2.53", 0, 200).Event(); e.DNS || e.Protocol != "200" {
		t.Errorf("an unnamed protocol is told as %+v", e)
	}
}

// A DNS question opens the name servers, any other one only what was asked (G16).
func TestOpenedG16(t *testing.T) {
	resolvers := []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("192.0.2.54")}
	asked := destination("192.0.2.7", 443, protoTCP)
	compare := cmpopts.EquateComparable(netip.Addr{})
	if diff := cmp.Diff([]Destination{asked}, destinations(asked, resolvers), compare); diff != "" {
		t.Error(diff)
	}
	dns := destination("192.0.2.53", 53, protoUDP)
	want := []Destination{
		dns, destination("192.0.2.53", 53, protoTCP), destination("192.0.2.54", 53, protoUDP), destination("192.0.2.54", 53, protoTCP),
	}
	if diff := cmp.Diff(want, destinations(dns, resolvers), compare); diff != "" {
		t.Error(diff)
	}
}
