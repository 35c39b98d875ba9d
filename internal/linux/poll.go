package linux

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Poll says which of the events (unix.POLLIN and the like) a descriptor has; POLLHUP and POLLERR are always looked for.
func Poll(fd uintptr, events int16) (int16, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		if _, err := unix.Poll(fds, 0); !errors.Is(err, unix.EINTR) {
			return fds[0].Revents, err
		}
	}
}

// HungUp says whether the peer has closed both directions, or the connection is closed here.
func HungUp(conn *net.UnixConn) bool {
	hup := true
	err := OnFD(conn, func(fd int) error {
		has, err := Poll(uintptr(fd), 0)
		hup = err == nil && has&(unix.POLLHUP|unix.POLLERR) != 0
		return nil
	})
	return hup || err != nil
}

// OnFD runs f with the descriptor of a connection or file, which stays open meanwhile.
func OnFD(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}
