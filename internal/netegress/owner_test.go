package netegress

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// The owner of a connection on loopback is known by its cgroup, also when its socket
// is one for both families (B27).
func TestCgroup(t *testing.T) {
	own := uint64(0) // of this process; guest/session compares it with cgroups
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		local, remote := netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(conn.RemoteAddr().String())
		if got, err := SocketCgroup(local, remote); err != nil || got == 0 || own != 0 && got != own {
			t.Errorf("%s: cgroup %d, %v; want %d", at, got, err, own)
		} else {
			own = got
		}
		if _, err := SocketCgroup(netip.AddrPortFrom(local.Addr(), 1), remote); !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s: a socket that is not there: %v", at, err)
		}
		conn.Close()
	}
}
