package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

var kinds = map[string]int{"stream": unix.SOCK_STREAM, "seqpacket": unix.SOCK_SEQPACKET, "dgram": unix.SOCK_DGRAM}

// pair are two ends of what -then names: a socketpair of that kind; a UDP socket on loopback, and one that sends to it; or at -path a connection, a listener, a listener with a connection
// that nobody has accepted, or a bound datagram socket. near is -1 where it is to be connected later.
func pair(c *call) (near, far int, err error) {
	if kind, ok := kinds[c.then]; ok {
		both, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		return both[0], both[1], step("socketpair", err)
	}
	if c.then == "udp" {
		return udpPair()
	}
	kind := unix.SOCK_STREAM
	if c.then == "bound" {
		kind = unix.SOCK_DGRAM
	}
	if far, err = unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, -1, step("socket", err)
	}
	os.Remove(c.path)
	if err := unix.Bind(far, unixAddr(c.path)); err != nil {
		return -1, far, step("bind", err)
	}
	if c.then == "bound" {
		return -1, far, nil
	}
	if err := unix.Listen(far, 4); err != nil || c.then == "listener" {
		return -1, far, step("listen", err)
	}
	if near, err = reach(c); err != nil || c.then == "queued" {
		return near, far, err
	}
	far, _, err = unix.Accept(far)
	return near, far, step("accept", err)
}

func udpPair() (near, far int, err error) {
	if far, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, -1, step("socket", err)
	}
	if err := unix.Bind(far, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, far, step("bind", err)
	}
	at, err := unix.Getsockname(far)
	if err != nil {
		return -1, far, step("getsockname", err)
	}
	if near, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, far, step("socket", err)
	}
	return near, far, step("connect", unix.Connect(near, at))
}

// reach connects to -path.
func reach(c *call) (int, error) {
	kind := unix.SOCK_STREAM
	if c.then == "bound" {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, step("socket", err)
	}
	return fd, step("connect", unix.Connect(fd, unixAddr(c.path)))
}

// unixLeave hands one end to who listens at -to, and then sends on the other (B64). With -n 0 it does not wait until the end was taken.
func unixLeave(c *call) error {
	near, far, err := pair(c)
	if err != nil {
		return err
	}
	out, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return step("socket", err)
	}
	if err := unix.Connect(out, unixAddr(c.to)); err != nil {
		return step("connect", err)
	}
	if err := unix.Sendmsg(out, []byte("."), unix.UnixRights(far), nil, 0); err != nil {
		return step("sendmsg", err)
	}
	unix.Close(far)
	if c.n > 0 {
		if _, err := unix.Read(out, make([]byte, 1)); err != nil {
			return step("read", err)
		}
	}
	return sendLate(c, near)
}

func sendLate(c *call, near int) error {
	if err := c.done("connect"); err != nil {
		return err
	}
	if near < 0 {
		var err error
		if near, err = reach(c); err != nil {
			return err
		}
	}
	return c.send(near)
}

// unixFetched says where the far end is, which somebody outside fetches (B64).
func unixFetched(c *call) error {
	near, far, err := pair(c)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, "end", os.Getpid(), far)
	if err := c.proceed(); err != nil {
		return err
	}
	unix.Close(far)
	return sendLate(c, near)
}

// fetch is the other side: it takes the descriptor -fd of the process -pid and carries what comes there to -to.
func fetch(c *call) error {
	pidfd, err := unix.PidfdOpen(c.pid, 0)
	if err != nil {
		return step("pidfd_open", err)
	}
	fd, err := unix.PidfdGetfd(pidfd, c.fd, 0)
	if err != nil {
		return step("pidfd_getfd", err)
	}
	fmt.Fprintln(c.out, "fetched")
	return carryOn(c, fd)
}

// carry takes a descriptor that is handed in at -path, after a line, and carries what comes there to -to.
func carry(c *call) error {
	peer, err := meet(c)
	if err != nil {
		return err
	}
	if err := c.proceed(); err != nil {
		return err
	}
	fd, err := received(peer)
	if err != nil {
		return err
	}
	return carryOn(c, fd)
}

func carryOn(c *call, fd int) error {
	out, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return step("socket", err)
	}
	if err := unix.Connect(out, unixAddr(c.to)); err != nil {
		return step("connect", err)
	}
	if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listens != 0 {
		if fd, _, err = unix.Accept(fd); err != nil {
			return step("accept", err)
		}
	}
	b := make([]byte, 1<<16)
	n, err := unix.Read(fd, b)
	if err != nil || n == 0 {
		return step("read", err)
	}
	_, err = unix.Write(out, b[:n])
	return step("write", err)
}

// parked puts a descriptor where no process has it open, and waits before it takes it back (B61).
func parked(c *call, fd int) (int, error) {
	both, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, step("socketpair", err)
	}
	if err := unix.Sendmsg(both[0], []byte("."), unix.UnixRights(fd), nil, 0); err != nil {
		return -1, step("sendmsg", err)
	}
	unix.Close(fd)
	if err := c.done("open"); err != nil {
		return -1, err
	}
	return received(both[1])
}

func tcpParked(c *call) error {
	fd, err := dial(c, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	if fd, err = parked(c, fd); err != nil {
		return err
	}
	return c.send(fd)
}

func unixParked(c *call) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return step("socket", err)
	}
	if err := unix.Connect(fd, unixAddr(c.to)); err != nil {
		return step("connect", err)
	}
	if fd, err = parked(c, fd); err != nil {
		return err
	}
	return c.send(fd)
}

// unixOwn is no attempt: it talks to itself, and to a child, as programs do that have several processes. What it made before the pause
// and what it makes afterwards must go on.
func unixOwn(c *call) error {
	child, far, err := startEcho()
	if err != nil {
		return err
	}
	defer func() { unix.Close(far); _ = child.Wait() }()
	made := []string{"stream", "seqpacket", "dgram", "connection", "bound"}
	path := c.path
	var ends [][2]int
	more := func() error {
		for _, c.then = range made {
			c.path = fmt.Sprintf("%s.%d", path, len(ends))
			near, far, err := pair(c)
			if near < 0 && err == nil {
				near, err = reach(c)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", c.then, err)
			}
			ends = append(ends, [2]int{near, far})
		}
		return nil
	}
	if err := more(); err != nil {
		return err
	}
	if err := c.done("open"); err != nil {
		return err
	}
	if err := more(); err != nil {
		return err
	}
	for i, e := range ends {
		name := fmt.Sprintf("%s %d", made[i%len(made)], i/len(made))
		if err := comes(c.say, e[0], e[1]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if made[i%len(made)] == "bound" {
			continue // it knows nobody to answer
		}
		if err := comes(c.say, e[1], e[0]); err != nil {
			return fmt.Errorf("%s, back: %w", name, err)
		}
		// now the child has the other end
		if err := unix.Sendmsg(far, []byte("."), unix.UnixRights(e[1]), nil, 0); err != nil {
			return fmt.Errorf("%s: hand it over: %w", name, err)
		}
		unix.Close(e[1])
		if err := comes(c.say, e[0], e[0]); err != nil {
			return fmt.Errorf("%s, from the child: %w", name, err)
		}
	}
	return comes(c.say, far, far)
}

// comes says something at one end, and hears it at the other.
func comes(what []byte, near, far int) error {
	if _, err := unix.Write(near, what); err != nil {
		return step("write", err)
	}
	b := make([]byte, len(what)+1)
	n, err := unix.Read(far, b)
	if err == nil && !bytes.Equal(b[:n], what) {
		return fmt.Errorf("read %q: %w", b[:n], unix.EBADMSG)
	}
	return step("read", err)
}

// startEcho has a child at the other end of a socketpair, as Node and browsers have.
func startEcho() (*exec.Cmd, int, error) {
	both, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, step("socketpair", err)
	}
	end := os.NewFile(uintptr(both[1]), "end")
	defer end.Close()
	child := exec.Command("/proc/self/exe", "unix-echo")
	child.ExtraFiles, child.Stderr = []*os.File{end}, os.Stderr
	return child, both[0], step("start", child.Start())
}

// unixEcho answers on descriptor 3 what it is told there, and on what is handed to it.
func unixEcho(*call) error { return answer(3) }

func answer(fd int) error {
	b, rights := make([]byte, 1<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, rn, _, _, err := unix.Recvmsg(fd, b, rights, 0)
		if err != nil || n == 0 {
			return step("recvmsg", err)
		}
		messages, err := unix.ParseSocketControlMessage(rights[:rn])
		if err != nil {
			return step("read rights", err)
		}
		if len(messages) == 0 {
			if _, err := unix.Write(fd, b[:n]); err != nil {
				return step("write", err)
			}
			continue
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			return step("read rights", err)
		}
		go func() { _ = answer(fds[0]) }()
	}
}
