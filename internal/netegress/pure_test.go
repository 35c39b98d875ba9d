package netegress

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"

	"weir/internal/policy"
)

func destination(addr string, port uint16, proto uint8) Destination {
	return Destination{Addr: netip.MustParseAddr(addr), Port: port, Proto: proto}
}

// What stays open at taint time is what the kernel would let through: the longest prefix decides.
func TestAllowed(t *testing.T) { // B21
	p, err := policy.Parse("test", []byte(`
allow:
  - prefix: 10.0.0.0/8
    protocol: tcp
    ports: 443
  - prefix: 10.1.0.0/16
    protocol: udp
    ports: 53
  - prefix: fd00::/8
    protocol: tcp
    ports: "8000-8100"
`))
	if err != nil {
		t.Fatal(err)
	}
	dests, err := p.Destinations()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to   Destination
		want bool
	}{
		{destination("10.9.9.9", 443, protoTCP), true},
		{destination("10.9.9.9", 443, protoUDP), false},
		{destination("10.9.9.9", 80, protoTCP), false},
		{destination("10.1.2.3", 443, protoTCP), true},
		{destination("10.1.2.3", 53, protoUDP), true},
		{destination("11.1.2.3", 443, protoTCP), false},
		{destination("fd12::1", 8100, protoTCP), true},
		{destination("fd12::1", 8101, protoTCP), false},
		{destination("fe12::1", 8000, protoTCP), false},
	} {
		if got := allowed(dests, c.to); got != c.want {
			t.Errorf("%v: %v, want %v", c.to, got, c.want)
		}
	}
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
func TestOpened(t *testing.T) {
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

func TestKeep(t *testing.T) { // B21
	socket := func(to string, port uint16, state uint8) *netlink.Socket {
		return &netlink.Socket{State: state, ID: netlink.SocketID{Destination: net.ParseIP(to), DestinationPort: port}}
	}
	for _, c := range []struct {
		what string
		s    *netlink.Socket
		want bool
	}{
		{"established outside", socket("192.0.2.7", 443, 1), false},
		{"listener", socket("0.0.0.0", 0, tcpListen), true},
		{"loopback, inside", socket("127.0.0.1", 8080, 1), true},
		{"loopback, outside", socket("127.0.0.1", 9090, 1), false},
		{"mapped loopback, inside", socket("::ffff:127.0.0.1", 8080, 1), true},
		{"mapped outside", socket("::ffff:192.0.2.7", 443, 1), false},
	} {
		inside := func() bool { return c.s.ID.DestinationPort == 8080 }
		if got := keep(c.s, protoTCP, nil, inside); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// The peer of a loopback socket is known by its ports, and is inside by its inode (B26).
func TestPeered(t *testing.T) {
	socket := func(from, to uint16, inode uint32, state uint8) *netlink.Socket {
		return &netlink.Socket{State: state, INode: inode, ID: netlink.SocketID{SourcePort: from, DestinationPort: to}}
	}
	inodes := map[uint64]bool{1: true, 2: true}
	for _, c := range []struct {
		what  string
		other *netlink.Socket
		want  bool
	}{
		{"its peer", socket(80, 1000, 2, 1), true},
		{"a stranger's peer", socket(80, 1000, 3, 1), false},
		{"the listener, which is not the peer", socket(80, 0, 2, tcpListen), false},
		{"an unconnected datagram socket", socket(80, 0, 2, 7), true},
		{"another connection", socket(80, 1001, 2, 1), false},
	} {
		s := socket(1000, 80, 1, 1)
		if got := peered(s, []*netlink.Socket{s, c.other}, inodes); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// The request has the size and the places of inet_diag_req_v2.
func TestDestroyRequest(t *testing.T) {
	s := &netlink.Socket{Family: 2, ID: netlink.SocketID{
		SourcePort: 0x1234, DestinationPort: 443, Source: net.ParseIP("10.0.0.1").To4(), Destination: net.ParseIP("192.0.2.7").To4(),
		Cookie: [2]uint32{1, 2},
	}}
	r := destroyRequest{2, protoTCP, s}
	b := r.Serialize()
	if len(b) != r.Len() {
		t.Fatalf("%d bytes, want %d", len(b), r.Len())
	}
	want := []byte{2, 6, 0, 0, 255, 255, 255, 255, 0x12, 0x34, 1, 187, 10, 0, 0, 1}
	if diff := cmp.Diff(want, b[:16]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]byte{192, 0, 2, 7}, b[28:32]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}, b[44:]); diff != "" {
		t.Error(diff)
	}
}
