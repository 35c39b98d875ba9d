package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// loopbackAttempts send to a loopback address what does not stay there.
func loopbackAttempts() map[string]attempt {
	return map[string]attempt{
		"udp-tied":   func(c *call) error { return tied(c, unix.SOCK_DGRAM, unix.IPPROTO_UDP, 0) },
		"tcp-tied":   func(c *call) error { return tied(c, unix.SOCK_STREAM, unix.IPPROTO_TCP, unix.MSG_FASTOPEN) },
		"udp-source": udpSource,
		"dns-source": func(c *call) error { return ask(c, udpSource) },
	}
}

// tied sends with a socket that leaves by a device, whatever the address (B54). -by says what ties it.
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
	case "pktinfo":
		if family == unix.AF_INET6 {
			control = unix.PktInfo6(&unix.Inet6Pktinfo{Ifindex: uint32(dev.Index)})
		} else {
			control = unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: int32(dev.Index)})
		}
	default:
		err = fmt.Errorf("-by %s: want device, index, unicast or pktinfo", c.by)
	}
	if err != nil {
		return step("setsockopt", err)
	}
	return step("sendmsg", unix.Sendmsg(fd, c.say, control, sa, flags))
}

// udpSource sends from an address that is not this machine's, which hears what the kernel or a service answers (B55, B56). -by says how.
func udpSource(c *call) error {
	to, _, err := c.ip()
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
	fd, err := c.open(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1); err != nil {
		return step("setsockopt", err)
	}
	var control []byte
	switch c.by {
	case "bind":
		if err := unix.Bind(fd, &unix.SockaddrInet6{Addr: from.As16()}); err != nil {
			return step("bind", err)
		}
	case "pktinfo":
		control = unix.PktInfo6(&unix.Inet6Pktinfo{Addr: from.As16()})
	default:
		return fmt.Errorf("-by %s: want bind or pktinfo", c.by)
	}
	return step("sendmsg", unix.Sendmsg(fd, c.say, control, sa, 0))
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
