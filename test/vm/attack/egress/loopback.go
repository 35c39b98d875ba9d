package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopbackAttempts send to a loopback address what does not stay there.
func loopbackAttempts() map[string]attempt {
	return map[string]attempt{
		"udp-tied":   func(c *call) error { return tied(c, unix.SOCK_DGRAM, unix.IPPROTO_UDP, 0) },
		"tcp-tied":   func(c *call) error { return tied(c, unix.SOCK_STREAM, unix.IPPROTO_TCP, unix.MSG_FASTOPEN) },
		"udp-away":   func(c *call) error { return tied(c, unix.SOCK_DGRAM, unix.IPPROTO_UDP, connects) },
		"tcp-away":   func(c *call) error { return tied(c, unix.SOCK_STREAM, unix.IPPROTO_TCP, connects) },
		"udp-source": func(c *call) error { return sourced(c, unix.SOCK_DGRAM, unix.IPPROTO_UDP) },
		"tcp-source": func(c *call) error { return sourced(c, unix.SOCK_STREAM, unix.IPPROTO_TCP) },
		"dns-source": func(c *call) error {
			return ask(c, func(c *call) error { return sourced(c, unix.SOCK_DGRAM, unix.IPPROTO_UDP) })
		},
		"udp-group": func(c *call) error { return grouped(c, unix.SOCK_DGRAM, unix.IPPROTO_UDP) },
		"tcp-group": func(c *call) error { return grouped(c, unix.SOCK_STREAM, unix.IPPROTO_TCP) },
	}
}

// connects, as flags of tied: it connects before it sends.
const connects = -1

var limited = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// source is -from, with a port that the kernel chooses.
func (c *call) source() (unix.Sockaddr, error) {
	from, err := netip.ParseAddr(c.from)
	if err != nil {
		return nil, fmt.Errorf("read -from: %w", err)
	}
	return sockaddr(netip.AddrPortFrom(from, 0))
}

// tied sends with a socket that leaves by a device, whatever the address (B54, B89). -by says what ties it.
func tied(c *call, kind, proto, flags int) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	dev, err := net.InterfaceByName(c.dev)
	if err != nil {
		return step("find "+c.dev, err)
	}
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	fd, err := c.open(family, kind, proto)
	if err != nil {
		return err
	}
	index := binary.NativeEndian.Uint32(binary.BigEndian.AppendUint32(nil, uint32(dev.Index))) // as the options have it
	var control []byte
	switch c.by {
	case "device":
		err = unix.BindToDevice(fd, c.dev)
	case "index":
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, dev.Index)
	case "unicast":
		level, option := unix.IPPROTO_IP, unix.IP_UNICAST_IF
		if family == unix.AF_INET6 {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_UNICAST_IF
		}
		err = unix.SetsockoptInt(fd, level, option, int(index))
	case "pktinfo", "later":
		if family == unix.AF_INET6 {
			control = unix.PktInfo6(&unix.Inet6Pktinfo{Ifindex: uint32(dev.Index)})
		} else {
			control = unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: int32(dev.Index)})
		}
	case "route":
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DONTROUTE, 1)
	case "message":
		flags = unix.MSG_DONTROUTE
	case "group":
		level, option := unix.IPPROTO_IP, unix.IP_MULTICAST_IF
		if family == unix.AF_INET6 && !to.Addr().Is4In6() {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF
			err = unix.SetsockoptInt(fd, level, option, dev.Index)
		} else {
			err = unix.SetsockoptIPMreqn(fd, level, option, &unix.IPMreqn{Ifindex: int32(dev.Index)})
		}
	case "bound":
		var own unix.Sockaddr
		if own, err = c.source(); err == nil {
			err = unix.Bind(fd, own)
		}
	case "kept": // the kernel chooses it for another destination
		other := netip.AddrPortFrom(netip.MustParseAddr(c.from), 9)
		err = rawConnect(fd, rawAddr(other))
	case "named", "named-later":
		var from netip.Addr
		if from, err = netip.ParseAddr(c.from); err == nil {
			control = unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: from.As4()})
		}
	case "mark":
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, c.n)
	case "address": // by its scope
	case "sticky":
		info := append(make([]byte, 16), binary.NativeEndian.AppendUint32(nil, uint32(dev.Index))...)
		err = unix.SetsockoptString(fd, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, string(info))
	default:
		err = fmt.Errorf("-by %s: want device, index, unicast, pktinfo, later, route, message, sticky, group, bound, kept, named, named-later, mark or address", c.by)
	}
	if err != nil {
		return step("setsockopt", err)
	}
	if to.Addr() == limited {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
			return step("setsockopt", err)
		}
	}
	if c.full {
		if err := fill(fd); err != nil {
			return err
		}
	}
	if err := c.done("tie"); err != nil {
		return err
	}
	if c.then == "plain" {
		if err := sendPlain(c, family, kind, proto, sa); err != nil {
			return err
		}
	}
	if strings.HasSuffix(c.by, "later") {
		return sendmmsg(fd, c.say, to, control)
	}
	if flags == connects {
		if err := unix.Connect(fd, sa); err != nil {
			return step("connect", err)
		}
		sa, flags = nil, 0
	}
	return step("sendmsg", unix.Sendmsg(fd, c.say, control, sa, flags))
}

// fill leaves a socket no room for what it is noted to have: its filter takes all of it.
func fill(fd int) error {
	one := unix.SockFilter{Code: unix.BPF_LD | unix.BPF_ABS} // several of the kernel's own instructions
	attach := func(n int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil && err != unix.ENOENT {
			return err
		}
		filter := append(slices.Repeat([]unix.SockFilter{one}, n), unix.SockFilter{Code: unix.BPF_RET, K: 0xffffffff})
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	}
	least := 0
	for most := 4095; most-least > 1; {
		n := (most + least) / 2
		if err := attach(n); err == nil {
			least = n
		} else if err == unix.ENOMEM {
			most = n
		} else {
			return step("setsockopt", err)
		}
	}
	return step("setsockopt", attach(least))
}

// sendPlain sends with a socket that chooses nothing, on the processor that goes on with what comes next: a verdict is remembered there.
func sendPlain(c *call, family, kind, proto int, sa unix.Sockaddr) error {
	runtime.LockOSThread()
	var cpu uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return failure("getcpu", errno)
	}
	var one unix.CPUSet
	one.Set(int(cpu))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return step("sched_setaffinity", err)
	}
	fd, err := unix.Socket(family, kind, proto)
	if err != nil {
		return step("socket", err)
	}
	return step("sendto", unix.Sendto(fd, []byte("plain"), 0, sa))
}

// sourced sends from an address that is not this machine's, which hears what the kernel or a service answers (B55, B56). -by says how.
func sourced(c *call, kind, proto int) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	from, err := netip.ParseAddr(c.from)
	if err != nil {
		return fmt.Errorf("read -from: %w", err)
	}
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	own, err := sockaddr(netip.AddrPortFrom(from, 0))
	if err != nil {
		return err
	}
	fd, err := c.open(family, kind, proto)
	if err != nil {
		return err
	}
	level, option, control := unix.IPPROTO_IP, unix.IP_TRANSPARENT, unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: own4(from)})
	if family == unix.AF_INET6 {
		level, option, control = unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, unix.PktInfo6(&unix.Inet6Pktinfo{Addr: from.As16()})
	}
	if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
		return step("setsockopt", err)
	}
	switch c.by {
	case "bind":
		control = nil
		if err := unix.Bind(fd, own); err != nil {
			return step("bind", err)
		}
		if family == unix.AF_INET6 { // the source stays all the same
			if err := unix.SetsockoptInt(fd, level, option, 0); err != nil {
				return step("setsockopt", err)
			}
		}
	case "pktinfo":
	default:
		return fmt.Errorf("-by %s: want bind or pktinfo", c.by)
	}
	if err := c.done("open"); err != nil {
		return err
	}
	if kind == unix.SOCK_STREAM {
		return join(fd, c.say, to)
	}
	return step("sendmsg", unix.Sendmsg(fd, c.say, control, sa, 0))
}

func own4(a netip.Addr) (b [4]byte) {
	if a.Is4() {
		b = a.As4()
	}
	return b
}

// grouped sends to a port on which it listens itself, among others: a filter chooses who of them hears it (B63). -n says who, by when he came.
func grouped(c *call, kind, proto int) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	own, err := unix.Socket(family, kind, proto)
	if err != nil {
		return step("socket", err)
	}
	if err := unix.SetsockoptInt(own, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return step("setsockopt", err)
	}
	if err := unix.Bind(own, sa); err != nil {
		return step("bind", err)
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.Listen(own, 16); err != nil {
			return step("listen", err)
		}
	}
	if err := c.done("open"); err != nil {
		return err
	}
	choose := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: uint32(c.n)}
	err = unix.SetsockoptSockFprog(own, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: 1, Filter: &choose})
	if err != nil && !errors.Is(err, unix.EPERM) { // where it may not choose, the kernel does
		return step("setsockopt", err)
	}
	sent := false
	for range 16 { // each from a port of its own
		fd, e := unix.Socket(family, kind, proto)
		if e != nil {
			return step("socket", e)
		}
		if kind == unix.SOCK_STREAM {
			err = join(fd, c.say, to)
		} else {
			err = step("sendto", unix.Sendto(fd, c.say, 0, sa))
		}
		sent = sent || err == nil
	}
	if sent {
		return nil
	}
	return err
}

// join sends data with the first packet of a connection, and does not wait for an answer.
func join(fd int, text []byte, to netip.AddrPort) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return step("setsockopt", err)
	}
	if err := rawConnect(fd, rawAddr(to)); err != nil {
		return err
	}
	return step("send", unix.Send(fd, text, unix.MSG_DONTWAIT))
}

// ask sends the text as a name that is asked for, in one label: so it stands in the answer as it is.
func ask(c *call, send attempt) error {
	const (
		head = "\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" // one question, and to look it up for us
		tail = "\x00\x00\x01\x00\x01"                             // of type A and class IN
	)
	c.say = slices.Concat([]byte(head), []byte{byte(len(c.say))}, c.say, []byte(tail))
	return send(c)
}
