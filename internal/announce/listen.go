package announce

import (
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// limited takes a bounded number of connections, and none of those that refuse.
type limited struct {
	net.Listener
	slots  chan struct{}
	refuse func(net.Conn) bool
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.refuse(conn) {
			conn.Close()
			continue
		}
		select {
		case l.slots <- struct{}{}:
			return &slot{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			conn.Close()
		}
	}
}

type slot struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (s *slot) Close() error {
	defer s.free()
	return s.Conn.Close()
}

// guarded says whether a peer is a guarded process, or cannot be known (B27, G17).
func (c *Callback) guarded(conn net.Conn) bool {
	refused := true
	switch conn := conn.(type) {
	case *net.UnixConn:
		refused = c.refusesUnix(conn)
	case *net.TCPConn:
		refused = c.refusesPort(conn)
	}
	if refused {
		c.stranger("a guarded process")
	}
	return refused
}

func (c *Callback) refusesUnix(conn *net.UnixConn) bool {
	if c.o.Refuse == nil {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	refused := true
	if err := raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			refused = c.o.Refuse(int(cred.Pid)) != nil
		}
	}); err != nil {
		return true
	}
	return refused
}

func (c *Callback) refusesPort(conn *net.TCPConn) bool {
	if c.o.RefuseSocket == nil {
		return false
	}
	local, ok1 := conn.RemoteAddr().(*net.TCPAddr)
	remote, ok2 := conn.LocalAddr().(*net.TCPAddr)
	return !ok1 || !ok2 || c.o.RefuseSocket(local.AddrPort(), remote.AddrPort()) != nil
}
