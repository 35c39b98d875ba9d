package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func unixAttempts() map[string]attempt {
	return map[string]attempt{
		"unix":           unixStream(unix.SOCK_STREAM),
		"unix-seqpacket": unixStream(unix.SOCK_SEQPACKET),
		"unix-dgram":     unixDatagram,
		"unix-connected": unixStream(unix.SOCK_DGRAM),
		"unix-pass":      unixPass,
		"unix-leave":     unixLeave,
		"unix-fetched":   unixFetched,
		"unix-parked":    unixParked,
		"unix-own":       unixOwn,
		"tcp-parked":     tcpParked,
		"fetch":          fetch,
		"carry":          carry,
		"unix-echo":      unixEcho,
		"take":           take,
		"pass":           pass,
	}
}

// unixAddr is a path, or an abstract name that begins with @.
func unixAddr(name string) unix.Sockaddr { return &unix.SockaddrUnix{Name: name} }

// unixStream leaves the container over a socket of the file system (B23).
func unixStream(kind int) attempt {
	return func(c *call) error {
		fd, err := c.open(unix.AF_UNIX, kind, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, unixAddr(c.to)); err != nil {
			return step("connect", err)
		}
		if err := c.done("connect"); err != nil {
			return err
		}
		return c.send(fd)
	}
}

func unixDatagram(c *call) error {
	fd, err := c.open(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return step("sendto", unix.Sendto(fd, c.say, 0, unixAddr(c.to)))
}

// unixPass hands a file with the text over a Unix socket, whose own payload says nothing.
func unixPass(c *call) error {
	file, err := unix.MemfdCreate("text", unix.MFD_CLOEXEC)
	if err != nil {
		return step("memfd", err)
	}
	if _, err := unix.Pwrite(file, c.say, 0); err != nil {
		return step("write", err)
	}
	fd, err := c.open(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, unixAddr(c.to)); err != nil {
		return step("connect", err)
	}
	if err := c.done("connect"); err != nil {
		return err
	}
	return step("sendmsg", unix.Sendmsg(fd, []byte("."), unix.UnixRights(file), nil, 0))
}

// meet gives a Unix stream to the other side at -path, whoever listens. Who listens waits until its input ends.
func meet(c *call) (int, error) {
	fd, err := c.open(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	if !c.listen {
		return fd, step("connect", unix.Connect(fd, unixAddr(c.path)))
	}
	if !strings.HasPrefix(c.path, "@") {
		os.Remove(c.path)
	}
	if err := unix.Bind(fd, unixAddr(c.path)); err != nil {
		return -1, step("bind", err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		return -1, step("listen", err)
	}
	fmt.Fprintln(c.out, "listening")
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: 0, Events: unix.POLLIN}}
	for ready[0].Revents == 0 {
		if ready[1].Revents != 0 {
			return -1, errors.New("accept: nobody comes")
		}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return -1, step("poll", err)
		}
	}
	peer, _, err := unix.Accept(fd)
	return peer, step("accept", err)
}

// take sends on a socket that another process opened and hands over (B22).
func take(c *call) error {
	fd, err := meet(c)
	if err != nil {
		return err
	}
	if err := c.done("connect"); err != nil {
		return err
	}
	got, err := received(fd)
	if err != nil {
		return err
	}
	if err := c.done("open"); err != nil {
		return err
	}
	return c.send(got)
}

// received is the descriptor that comes with the next message.
func received(fd int) (int, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, flags, _, err := unix.Recvmsg(fd, make([]byte, 1), rights, 0)
	if err != nil {
		return -1, step("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return -1, step("read rights", err)
	}
	if len(messages) == 0 {
		return -1, step("recvmsg", fmt.Errorf("no descriptor came (flags %#x): %w", flags, unix.EPERM))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return -1, step("read rights", errors.Join(unix.EBADF, err))
	}
	return fds[0], nil
}

// pass is the other side of take: it connects to -to and hands the socket over.
func pass(c *call) error {
	socket, err := dial(c, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	fd, err := meet(c)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, "connected")
	if err := c.done("open"); err != nil {
		return err
	}
	if err := unix.Sendmsg(fd, []byte("."), unix.UnixRights(socket), nil, 0); err != nil {
		return step("sendmsg", err)
	}
	// stay until the receiver has what was sent
	_, err = unix.Read(fd, make([]byte, 1))
	return step("read", err)
}
