package control

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
)

// PeerRules say who is refused.
type PeerRules struct {
	User    *uint32                                  // on a Unix socket, the only user whose processes are no strangers; nil: every user
	Process func(pid int) error                      // objects to a peer on a Unix socket; nil objects to none
	Socket  func(local, remote netip.AddrPort) error // objects to a peer on a port by its socket, as the peer sees it; nil objects to none
	Told    func()                                   // called for each who is refused; may be nil
}

// ListenUnix listens at an address and port, or on a Unix socket where at is an absolute path. What a dead sensor left there is
// replaced; anything but a socket is an error. mode is the socket's.
func ListenUnix(at string, mode fs.FileMode) (net.Listener, error) {
	if strings.HasPrefix(at, "/") {
		return listenUnix(at, mode)
	}
	return net.Listen("tcp", at)
}

func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New(path + " is there and is no socket: remove it")
	default:
		if err := os.Remove(path); err != nil { // only one sensor runs
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// LimitListener takes at most most connections of l at once, and none that the rules refuse.
func LimitListener(l net.Listener, most int, r PeerRules) net.Listener {
	return &limited{l, make(chan struct{}, most), r}
}

type limited struct {
	net.Listener
	slots chan struct{}
	rules PeerRules
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.rules.refuse(conn) {
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

// NetConn returns the connection itself, as tls.Conn does.
func (s *slot) NetConn() net.Conn { return s.Conn }

// Close implements net.Conn.
func (s *slot) Close() error {
	defer s.free()
	return s.Conn.Close()
}

// refuse says whether a peer is to be refused, or cannot be known.
func (r PeerRules) refuse(conn net.Conn) bool {
	refused := true
	switch conn := conn.(type) {
	case *net.UnixConn:
		refused = r.refuseUnix(conn)
	case *net.TCPConn:
		refused = r.refusePort(conn)
	}
	if refused && r.Told != nil {
		r.Told()
	}
	return refused
}

func (r PeerRules) refuseUnix(conn *net.UnixConn) bool {
	if r.Process == nil && r.User == nil {
		return false
	}
	p := identify(conn)
	return p.err != nil || r.User != nil && p.uid != *r.User || r.Process != nil && r.Process(p.pid) != nil
}

func (r PeerRules) refusePort(conn *net.TCPConn) bool {
	if r.Socket == nil {
		return false
	}
	local, ok1 := conn.RemoteAddr().(*net.TCPAddr)
	remote, ok2 := conn.LocalAddr().(*net.TCPAddr)
	return !ok1 || !ok2 || r.Socket(local.AddrPort(), remote.AddrPort()) != nil
}
