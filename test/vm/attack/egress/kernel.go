package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAttempts have the kernel say something that no socket sends (B47). -to is what it says, an address, and the port counts
// for nothing.
func kernelAttempts() map[string]attempt {
	return map[string]attempt{
		"join":              func(c *call) error { return membership(c, joinOption) },
		"join-group":        func(c *call) error { return membership(c, joinGroup) },
		"join-source":       func(c *call) error { return membership(c, joinSource) },
		"join-group-source": func(c *call) error { return membership(c, joinGroupSource) },
		"leave-close":       leaveByClose,
		"request-key":       requestKey,
	}
}

// A group for those that say something by the source that they want to hear.
var (
	sourced4 = netip.MustParseAddr("232.47.0.1")
	sourced6 = netip.MustParseAddr("ff3e::4700:1")
)

type option func(fd int, said netip.Addr, dev *net.Interface) error

// membership makes the kernel report a group to the link of -dev.
func membership(c *call, set option) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	dev, err := net.InterfaceByName(c.dev)
	if err != nil {
		return step("find "+c.dev, err)
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := set(fd, to.Addr(), dev); err != nil {
		return step("setsockopt", err)
	}
	time.Sleep(c.after) // the kernel takes its time, and forgets what is closed
	return nil
}

// leaveByClose makes it report that nobody wants a group any more.
func leaveByClose(c *call) error {
	return membership(c, func(fd int, group netip.Addr, dev *net.Interface) error {
		if err := joinOption(fd, group, dev); err != nil {
			return err
		}
		if err := c.done("open"); err != nil {
			return err
		}
		return unix.Close(fd)
	})
}

func joinOption(fd int, group netip.Addr, dev *net.Interface) error {
	if group.Is4() {
		return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(dev.Index)})
	}
	return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(dev.Index)})
}

func joinGroup(fd int, group netip.Addr, dev *net.Interface) error {
	return unix.SetsockoptString(fd, level(group), unix.MCAST_JOIN_GROUP, string(request(dev, group)))
}

func joinGroupSource(fd int, said netip.Addr, dev *net.Interface) error {
	group := sourced6
	if said.Is4() {
		group = sourced4
	}
	return unix.SetsockoptString(fd, level(said), unix.MCAST_JOIN_SOURCE_GROUP, string(request(dev, group, said)))
}

// joinSource names the interface by its address (struct ip_mreq_source).
func joinSource(fd int, said netip.Addr, dev *net.Interface) error {
	addrs, err := dev.Addrs()
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			group, own, source := sourced4.As4(), p.Addr().As4(), said.As4()
			return unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_ADD_SOURCE_MEMBERSHIP, string(append(append(group[:], own[:]...), source[:]...)))
		}
	}
	return fmt.Errorf("find an address of %s", dev.Name)
}

func level(a netip.Addr) int {
	if a.Is4() {
		return unix.IPPROTO_IP
	}
	return unix.IPPROTO_IPV6
}

// request is struct group_req, or group_source_req with two addresses.
func request(dev *net.Interface, addrs ...netip.Addr) []byte {
	const storage = 128 // struct sockaddr_storage, aligned as a long is
	b := make([]byte, unsafe.Sizeof(uintptr(0)))
	binary.NativeEndian.PutUint32(b, uint32(dev.Index))
	for _, a := range addrs {
		one := make([]byte, storage)
		copy(one, rawAddr(netip.AddrPortFrom(a, 0)))
		b = append(b, one...)
	}
	return b
}

// requestKey has a program of the host asked for a name, as what mounts network file systems does.
func requestKey(c *call) error {
	runtime.LockOSThread() // whose keyring it is
	// a keyring without a name, that it may write to
	if _, _, errno := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0); errno != 0 {
		return failure("join_session_keyring", errno)
	}
	_, err := unix.RequestKey("dns_resolver", string(c.say), "", 0)
	return step("request_key", err)
}
