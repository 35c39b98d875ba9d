package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// hosts says that a network namespace belongs to the user namespace that the sensor is in. Others are administered by
// whoever made theirs, which any process may: what is answered there is their word. What cannot be told is theirs.
func hosts(ns *os.File) bool {
	owner, err := unix.IoctlRetInt(int(ns.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return false // it is above the sensor's own, if it is one
	}
	defer unix.Close(owner)
	var its unix.Stat_t
	return unix.Fstat(owner, &its) == nil && ownUsers(its.Ino)
}

// ownUsers says that a user namespace is the sensor's own.
func ownUsers(ns uint64) bool {
	own, err := linux.Namespace(os.Getpid(), "user")
	return err == nil && ns == own
}

// dialer connects from a network namespace.
func dialer(ns *os.File) func(context.Context, string, netip.AddrPort) (net.Conn, error) {
	return func(ctx context.Context, network string, to netip.AddrPort) (conn net.Conn, err error) {
		err = linux.InNetwork(ns, func() error {
			conn, err = dial(ctx, network, to)
			return err
		})
		return conn, err
	}
}

// dial connects from the network namespace that the thread is in.
func dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, to.String())
}

// place is what is found out of a network namespace.
type place struct {
	cookie uint64
	six    bool // it has addresses of IPv6 only
}

// lookAt finds it out, within the namespace.
func lookAt() (place, error) {
	var p place
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return p, fmt.Errorf("make socket: %w", err)
	}
	defer unix.Close(fd)
	if p.cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err != nil {
		return p, fmt.Errorf("identify network namespace: %w", err)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return p, fmt.Errorf("list addresses: %w", err)
	}
	four := false
	for _, a := range addrs {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil || prefix.Addr().IsLoopback() || prefix.Addr().IsLinkLocalUnicast() {
			continue
		}
		four, p.six = four || prefix.Addr().Is4(), p.six || prefix.Addr().Is6()
	}
	p.six = p.six && !four
	return p, nil
}

// sockets are those on which a resolver answers: one port of loopback.
type sockets struct {
	port uint16
	six  bool
	udp  []*net.UDPConn
	tcp  []*net.TCPListener
}

const tries = 16 // for a port that is free for all

// listenOn opens them, within the namespace.
func listenOn() (*sockets, error) {
	var err error
	for range tries {
		s := &sockets{}
		if err = s.open("udp4", "tcp4", netip.AddrFrom4([4]byte{127, 0, 0, 1})); err != nil {
			s.close()
			continue
		}
		if err := s.open("udp6", "tcp6", netip.IPv6Loopback()); err == nil {
			s.six = true
		} else if !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.EAFNOSUPPORT) {
			s.close()
			continue
		}
		return s, nil
	}
	return nil, fmt.Errorf("listen for questions: %w", err)
}

func (s *sockets) open(udp, tcp string, at netip.Addr) error {
	u, err := net.ListenUDP(udp, net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, s.port)))
	if err != nil {
		return err
	}
	s.udp = append(s.udp, u)
	s.port = u.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	var l net.ListenConfig
	l.SetMultipathTCP(false) // its descriptor is not of the socket that packets come to
	t, err := l.Listen(context.Background(), tcp, netip.AddrPortFrom(at, s.port).String())
	if err != nil {
		return err
	}
	s.tcp = append(s.tcp, t.(*net.TCPListener))
	return nil
}

func (s *sockets) close() {
	for _, c := range s.udp {
		c.Close()
	}
	for _, l := range s.tcp {
		l.Close()
	}
}

// each calls f with every descriptor.
func (s *sockets) each(f func(fd uintptr) error) error {
	var errs []error
	control := func(c syscall.Conn) {
		errs = append(errs, linux.OnFD(c, func(fd int) error { return f(uintptr(fd)) }))
	}
	for _, c := range s.udp {
		control(c)
	}
	for _, l := range s.tcp {
		control(l)
	}
	return errors.Join(errs...)
}
