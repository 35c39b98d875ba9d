package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/test/vm/wire"
)

const tipcUserStart = 64 // as egress has it

// listen opens a socket, reports from then on what comes to it, and says where it is if the kernel chose.
func (r *receiver) listen(o wire.Order) (string, error) {
	switch o.Net {
	case "tcp", "tcp-group", "mptcp":
		return "", r.listenTCP(o)
	case "udp", "udp-shared", "udp-group":
		return "", r.listenUDP(o)
	case "sctp":
		return "", r.listenIP(o, unix.SOCK_STREAM, unix.IPPROTO_SCTP)
	case "dccp":
		return "", r.listenIP(o, unix.SOCK_DCCP, unix.IPPROTO_DCCP)
	case "unix", "unixpacket":
		kind := unix.SOCK_STREAM
		if o.Net == "unixpacket" {
			kind = unix.SOCK_SEQPACKET
		}
		unlink(o.At)
		return "", r.listenRaw(o, unix.AF_UNIX, kind, 0, &unix.SockaddrUnix{Name: o.At}, true)
	case "unixgram":
		unlink(o.At)
		return "", r.listenRaw(o, unix.AF_UNIX, unix.SOCK_DGRAM, 0, &unix.SockaddrUnix{Name: o.At}, false)
	}
	n, err := strconv.Atoi(o.At)
	if err != nil {
		return "", fmt.Errorf("read at: %w", err)
	}
	switch o.Net {
	case "vsock":
		return "", r.listenRaw(o, unix.AF_VSOCK, unix.SOCK_STREAM, 0, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: uint32(n)}, true)
	case "tipc":
		// unix.SockaddrTIPC cannot say a service name for bind without a range of its own
		name := &unix.TIPCServiceRange{Type: tipcUserStart + uint32(n), Lower: 1, Upper: 1}
		return "", r.listenRaw(o, unix.AF_TIPC, unix.SOCK_RDM, 0, &unix.SockaddrTIPC{Scope: 2, Addr: name}, false)
	case "netlink":
		return r.listenNetlink(o, n)
	}
	return "", fmt.Errorf("net %q: unknown", o.Net)
}

func unlink(path string) {
	if !strings.HasPrefix(path, "@") {
		os.Remove(path)
	}
}

// listenTCP takes data that comes with the first packet as well.
func (r *receiver) listenTCP(o wire.Order) error {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		switch o.Net {
		case "tcp":
			return set(c, unix.IPPROTO_TCP, unix.TCP_FASTOPEN, 16)
		case "tcp-group":
			return errors.Join(set(c, unix.IPPROTO_TCP, unix.TCP_FASTOPEN, 16), set(c, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
		}
		return nil
	}}
	config.SetMultipathTCP(o.Net == "mptcp")
	l, err := config.Listen(context.Background(), "tcp", o.At)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go r.drain(o, conn)
		}
	}()
	return nil
}

// set sets an option of a socket before it is bound.
func set(c syscall.RawConn, level, option, value int) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }); e != nil {
		return e
	}
	return err
}

// listenUDP leaves the port to others too, if it is to be shared.
func (r *receiver) listenUDP(o wire.Order) error {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		switch o.Net {
		case "udp-shared":
			return set(c, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		case "udp-group":
			return set(c, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
		return nil
	}}
	conn, err := config.ListenPacket(context.Background(), "udp", o.At)
	if err != nil {
		return err
	}
	go r.packets(o, conn)
	return nil
}

// drain reports all that a connection says.
func (r *receiver) drain(o wire.Order, conn net.Conn) {
	defer conn.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := conn.Read(b)
		if n > 0 {
			r.say(wire.Arrival{Via: o.Net, At: o.At, Text: printable(b[:n])})
		}
		if err != nil {
			return
		}
	}
}

func (r *receiver) packets(o wire.Order, conn net.PacketConn) {
	b := make([]byte, 1<<16)
	for {
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		r.say(wire.Arrival{Via: o.Net, At: o.At, Text: printable(b[:n])})
	}
}

func (r *receiver) listenIP(o wire.Order, kind, proto int) error {
	at, err := netip.ParseAddrPort(o.At)
	if err != nil {
		return err
	}
	if at.Addr().Is4() {
		return r.listenRaw(o, unix.AF_INET, kind, proto, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}, true)
	}
	return r.listenRaw(o, unix.AF_INET6, kind, proto, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}, true)
}

// listenRaw serves the families that package net does not know.
func (r *receiver) listenRaw(o wire.Order, family, kind, proto int, at unix.Sockaddr, accepts bool) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if proto == unix.IPPROTO_DCCP {
		const solDCCP, service = 269, 2
		if err := unix.SetsockoptInt(fd, solDCCP, service, 1<<24); err != nil {
			return fmt.Errorf("setsockopt: %w", err)
		}
	}
	if err := unix.Bind(fd, at); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if !accepts {
		go r.receive(o, fd)
		return nil
	}
	if err := unix.Listen(fd, 16); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	go r.accept(o, fd)
	return nil
}

// receive reports what a socket gets, and what stands in files that come with it.
func (r *receiver) receive(o wire.Order, fd int) {
	defer unix.Close(fd)
	b, rights := make([]byte, 1<<16), make([]byte, unix.CmsgSpace(4))
	for {
		n, rn, _, _, err := unix.Recvmsg(fd, b, rights, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		r.say(wire.Arrival{Via: o.Net, At: o.At, Text: printable(b[:n])})
		messages, err := unix.ParseSocketControlMessage(rights[:rn])
		if err != nil || len(messages) == 0 {
			continue
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) == 0 {
			continue
		}
		if n, err := unix.Pread(fds[0], b, 0); err == nil {
			r.say(wire.Arrival{Via: "file", At: o.At, Text: printable(b[:n])})
		}
		if kept(o, r, fds[0]) {
			_, _ = unix.Write(fd, []byte(".")) // it is here
			continue
		}
		unix.Close(fds[0])
	}
}

// kept goes on hearing what comes to a socket that was handed over, if it is one.
func kept(o wire.Order, r *receiver, fd int) bool {
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	switch {
	case err != nil:
		return false
	case listens != 0:
		go r.accept(o, fd)
	default:
		go r.receive(o, fd)
	}
	return true
}

// accept hears whoever connects.
func (r *receiver) accept(o wire.Order, fd int) {
	for {
		peer, _, err := unix.Accept(fd)
		if err != nil {
			r.say(wire.Arrival{Via: o.Net, At: o.At, Error: err.Error()})
			return
		}
		go r.receive(o, peer)
	}
}

// listenNetlink takes messages from other processes; the address is the port that the kernel chose.
func (r *receiver) listenNetlink(o wire.Order, proto int) (string, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return "", fmt.Errorf("socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return "", fmt.Errorf("bind: %w", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return "", fmt.Errorf("getsockname: %w", err)
	}
	go r.receive(o, fd)
	return strconv.Itoa(int(name.(*unix.SockaddrNetlink).Pid)), nil
}

// dial connects to somebody who listens, says hello and reports the first answer. The answer to the order does not wait for it.
func (r *receiver) dial(o wire.Order) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial(o.Net, o.At)
	if err != nil {
		return err
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	go r.drain(wire.Order{Net: "dial", At: o.At}, conn)
	return nil
}
