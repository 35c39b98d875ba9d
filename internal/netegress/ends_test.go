package netegress

import (
	"fmt"
	"net"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHeard(t *testing.T) { // B60
	const established, closed, own, ours, other = 1, 7, 11, 12, 13
	inside := map[uint64]bool{own: true, ours: true}
	for _, c := range []struct {
		what        string
		kind, state uint8
		inode, peer uint64
		want        bool
	}{
		{"stream to the container itself", unix.SOCK_STREAM, established, own, ours, true},
		{"stream to somebody outside", unix.SOCK_STREAM, established, own, other, false},
		{"stream that waits to be accepted", unix.SOCK_SEQPACKET, established, own, 0, false},
		{"stream that is not connected", unix.SOCK_STREAM, closed, own, 0, false},
		{"listener", unix.SOCK_STREAM, tcpListen, own, 0, true},
		{"datagrams", unix.SOCK_DGRAM, closed, own, 0, true},
		{"datagrams to somebody outside", unix.SOCK_DGRAM, established, own, other, true},
		{"somebody's outside", unix.SOCK_STREAM, established, other, own, false},
		{"nobody's", unix.SOCK_STREAM, established, 0, own, false},
	} {
		if got := heard(end{kind: c.kind, state: c.state, inode: c.inode, peer: c.peer}, inside); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestListUnix(t *testing.T) { // B60
	both, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// named ones come between
	for i := range 40 {
		l, err := net.Listen("unix", fmt.Sprintf("%s/%0*d", dir, i+1, i))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	inside := openedSockets([]int{os.Getpid()})
	all, err := listUnix()
	if err != nil {
		t.Fatal(err)
	}
	listeners := 0
	for _, s := range all {
		if inside[s.inode] && s.state == tcpListen {
			listeners++
		}
	}
	if listeners != 40 {
		t.Errorf("%d listeners, want 40", listeners)
	}
	for i, fd := range both {
		cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(all, func(s end) bool { return s.cookie == cookie })
		if at < 0 || all[at].kind != unix.SOCK_SEQPACKET || !heard(all[at], inside) {
			t.Errorf("end %d is not listed: %v", i, all)
		}
		unix.Close(fd)
	}
}
