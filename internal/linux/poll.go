package linux

import (
	"errors"
	"net"

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
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	hup := true
	err = raw.Control(func(fd uintptr) {
		has, err := Poll(fd, 0)
		hup = err == nil && has&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return hup || err != nil
}
