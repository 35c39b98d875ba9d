package main

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func tcpAttempts() map[string]attempt {
	return map[string]attempt{
		"tcp":              func(c *call) error { return stream(c, unix.IPPROTO_TCP) },
		"mptcp":            func(c *call) error { return stream(c, unix.IPPROTO_MPTCP) },
		"fastopen":         fastOpen,
		"fastopen-sendmsg": fastOpenSendmsg,
		"fastopen-connect": fastOpenConnect,
		"tcp-repair":       tcpRepair,
		"send-fd":          func(c *call) error { return sendInherited(c) },
		"serve":            serve,
		"hold":             hold,
	}
}

// stream connects and sends.
func stream(c *call, proto int) error {
	fd, err := dial(c, proto)
	if err != nil {
		return err
	}
	return c.send(fd)
}

func dial(c *call, proto int) (int, error) {
	to, family, err := c.ip()
	if err != nil {
		return -1, err
	}
	sa, err := sockaddr(to)
	if err != nil {
		return -1, err
	}
	fd, err := c.open(family, unix.SOCK_STREAM, proto)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, sa); err != nil {
		return -1, step("connect", err)
	}
	return fd, c.done("connect")
}

// fastOpen sends data with the first packet, without connect (B15).
func fastOpen(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_STREAM, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	return rawSendto(fd, c.say, unix.MSG_FASTOPEN, rawAddr(to))
}

func fastOpenSendmsg(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_STREAM, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	return step("sendmsg", unix.Sendmsg(fd, c.say, nil, sa, unix.MSG_FASTOPEN))
}

// fastOpenConnect defers the connection to the first write.
func fastOpenConnect(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_STREAM, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return step("setsockopt", err)
	}
	if err := rawConnect(fd, rawAddr(to)); err != nil {
		return err
	}
	if err := c.done("connect"); err != nil {
		return err
	}
	return c.send(fd)
}

// tcpRepair makes an established socket without a handshake and sends on it.
func tcpRepair(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_STREAM, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1); err != nil {
		return step("setsockopt", err)
	}
	if err := rawConnect(fd, rawAddr(to)); err != nil {
		return err
	}
	// struct tcp_repair_window: where the peer's and the own window begin, and how wide they are
	window := [5]uint32{0, 1 << 15, 1 << 15, 1 << 15, 0}
	if _, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_REPAIR_WINDOW,
		uintptr(unsafe.Pointer(&window)), unsafe.Sizeof(window), 0); errno != 0 {
		return failure("setsockopt", errno)
	}
	// without the usual probe, which the peer would answer with a reset
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, unix.TCP_REPAIR_OFF_NO_WP); err != nil {
		return step("setsockopt", err)
	}
	if err := c.done("connect"); err != nil {
		return err
	}
	return c.send(fd)
}

// sendInherited uses a descriptor that an older process opened (B44).
func sendInherited(c *call) error {
	if err := c.done("open"); err != nil {
		return err
	}
	return c.send(c.fd)
}

// hold keeps a connected socket open for another process to take, and says where it is.
func hold(c *call) error {
	fd, err := dial(c, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "holding %d %d\n", os.Getpid(), fd)
	return c.proceed()
}

// serve answers a peer that connects in (B46).
func serve(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_STREAM, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return step("setsockopt", err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		return step("bind", err)
	}
	if err := unix.Listen(fd, c.n); err != nil {
		return step("listen", err)
	}
	if err := c.pause(); err != nil {
		return err
	}
	got, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(c.after.Milliseconds()))
	if err != nil || got == 0 {
		return step("accept", unix.ETIMEDOUT)
	}
	peer, _, err := unix.Accept(fd)
	if err != nil {
		return step("accept", err)
	}
	return c.send(peer)
}

// send puts the text on a connected socket by the means of -by.
func (c *call) send(fd int) error {
	var err error
	switch c.by {
	case "write":
		_, err = unix.Write(fd, c.say)
	case "writev":
		_, err = unix.Writev(fd, [][]byte{c.say})
	case "send":
		err = unix.Send(fd, c.say, 0)
	case "oob":
		err = unix.Send(fd, c.say, unix.MSG_OOB)
	case "sendmsg":
		err = unix.Sendmsg(fd, c.say, nil, nil, 0)
	case "zerocopy":
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1); err == nil {
			err = unix.Send(fd, c.say, unix.MSG_ZEROCOPY)
		}
	case "sendfile":
		err = bySendfile(fd, c.say)
	case "splice":
		err = bySplice(fd, c.say)
	case "vmsplice":
		err = byVmsplice(fd, c.say)
	case "aio":
		err = byAIO(fd, c.say)
	case "uring":
		err = byUring(fd, c.say)
	default:
		return fmt.Errorf("-by %s: unknown", c.by)
	}
	return step(c.by, err)
}

func bySendfile(fd int, text []byte) error {
	file, err := unix.MemfdCreate("text", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := unix.Pwrite(file, text, 0); err != nil {
		return err
	}
	_, err = unix.Sendfile(fd, file, nil, len(text))
	return err
}

func bySplice(fd int, text []byte) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	if _, err := unix.Write(p[1], text); err != nil {
		return err
	}
	_, err := unix.Splice(p[0], nil, fd, nil, len(text), 0)
	return err
}

func byVmsplice(fd int, text []byte) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	iov := []unix.Iovec{{Base: &text[0]}}
	iov[0].SetLen(len(text))
	if _, err := unix.Vmsplice(p[1], iov, 0); err != nil {
		return err
	}
	_, err := unix.Splice(p[0], nil, fd, nil, len(text), 0)
	return err
}

// iocb is struct iocb of linux/aio_abi.h.
type iocb struct {
	_      uint64
	_      [2]uint32
	opcode uint16
	_      uint16
	fd     uint32
	buf, n uint64
	_      [3]uint64
}

// byAIO writes through the old asynchronous interface.
func byAIO(fd int, text []byte) error {
	const pwrite = 1
	var ctx uintptr
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&ctx)), 0); errno != 0 {
		return errno
	}
	cb := &iocb{opcode: pwrite, fd: uint32(fd), buf: uint64(uintptr(unsafe.Pointer(&text[0]))), n: uint64(len(text))}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, ctx, 1, uintptr(unsafe.Pointer(&cb))); errno != 0 {
		return errno
	}
	var done struct{ data, obj, res, res2 int64 }
	_, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, ctx, 1, 1, uintptr(unsafe.Pointer(&done)), 0, 0)
	runtime.KeepAlive(cb)
	runtime.KeepAlive(text)
	switch {
	case errno != 0:
		return errno
	case done.res < 0:
		return unix.Errno(-done.res)
	}
	return nil
}
