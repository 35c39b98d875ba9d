package bridge

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// peer is the process that connected, as the kernel says.
type peer struct {
	pid int
	fd  *os.File // a pidfd: while it lives, pid is no other process
}

// peerOf identifies who connected. Kernels before 6.5 give no pidfd of the peer: there one is opened by its id, at once.
func peerOf(conn *net.UnixConn) (peer, error) {
	var p peer
	err := linux.OnFD(conn, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return err
		}
		pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		if errors.Is(err, unix.ENOPROTOOPT) {
			pidfd, err = unix.PidfdOpen(int(cred.Pid), 0)
		}
		if err == nil {
			p = peer{int(cred.Pid), os.NewFile(uintptr(pidfd), "pidfd")}
		}
		return err
	})
	if err != nil {
		return peer{}, fmt.Errorf("identify peer: %w", err)
	}
	return p, nil
}

// alive says whether the process that connected is still there. What was read of its id before is its own then.
func (p peer) alive() bool {
	has, err := linux.Poll(p.fd.Fd(), unix.POLLIN)
	return err == nil && has == 0
}
