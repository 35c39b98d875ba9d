package netegress

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/policy"
)

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
		to    netip.AddrPort
		proto uint8
		want  bool
	}{
		{netip.MustParseAddrPort("10.9.9.9:443"), unix.IPPROTO_TCP, true},
		{netip.MustParseAddrPort("10.9.9.9:443"), unix.IPPROTO_UDP, false},
		{netip.MustParseAddrPort("10.9.9.9:80"), unix.IPPROTO_TCP, false},
		{netip.MustParseAddrPort("10.1.2.3:443"), unix.IPPROTO_TCP, true},
		{netip.MustParseAddrPort("10.1.2.3:53"), unix.IPPROTO_UDP, true},
		{netip.MustParseAddrPort("11.1.2.3:443"), unix.IPPROTO_TCP, false},
		{netip.MustParseAddrPort("[fd12::1]:8100"), unix.IPPROTO_TCP, true},
		{netip.MustParseAddrPort("[fd12::1]:8101"), unix.IPPROTO_TCP, false},
		{netip.MustParseAddrPort("[fe12::1]:8000"), unix.IPPROTO_TCP, false},
	} {
		if got := policy.Opens(dests, c.to, c.proto); got != c.want {
			t.Errorf("%v, protocol %d: %v, want %v", c.to, c.proto, got, c.want)
		}
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
		if got := keep(c.s, unix.IPPROTO_TCP, nil, inside); got != c.want {
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
	r := destroyRequest{2, unix.IPPROTO_TCP, s}
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
