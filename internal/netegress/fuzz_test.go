package netegress

import (
	"encoding/binary"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// FuzzDiag: whatever a message of sock_diag has, it is read within its length; its own fields come out as they are, and an attribute of another kind or
// length is nobody's cgroup or peer.
func FuzzDiag(f *testing.F) {
	attr := func(kind uint16, value ...byte) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
		return append(binary.NativeEndian.AppendUint16(b, kind), value...)
	}
	f.Add(uint32(7), attr(netlink.UNIX_DIAG_PEER, 1, 0, 0, 0))
	f.Add(uint32(7), attr(netlink.INET_DIAG_CGROUP_ID, 1, 2, 3, 4, 5, 6, 7, 8))
	f.Add(uint32(0), attr(netlink.UNIX_DIAG_PEER, 1))
	f.Add(uint32(1), []byte{1, 0, 0, 0})
	f.Add(uint32(1), []byte{255, 255, 2, 0, 9})
	f.Fuzz(func(t *testing.T, inode uint32, attrs []byte) {
		m := make([]byte, sizeofUnixMessage)
		m[0], m[1], m[2] = unix.AF_UNIX, unix.SOCK_STREAM, tcpListen
		binary.NativeEndian.PutUint32(m[4:], inode)
		ends, err := unixEnds([][]byte{attrs, append(m, attrs...)})
		if err == nil && (len(ends) == 0 || ends[len(ends)-1].inode != uint64(inode) || ends[len(ends)-1].state != tcpListen) {
			t.Fatalf("%+v, want the inode %d", ends, inode)
		}
		if err == nil && len(attrs) < 8 && ends[len(ends)-1].peer != 0 {
			t.Fatalf("the peer %d of %x", ends[len(ends)-1].peer, attrs)
		}
		if id, err := cgroupOf(append(make([]byte, sizeofDiagMessage), attrs...)); err == nil && len(attrs) < 12 {
			t.Fatalf("the cgroup %d of %x", id, attrs)
		}
	})
}
