package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ip reads -to. An IPv4-mapped address stays one of IPv6.
func (c *call) ip() (netip.AddrPort, int, error) {
	to, err := netip.ParseAddrPort(c.to)
	if err != nil {
		return to, 0, fmt.Errorf("read -to: %w", err)
	}
	if to.Addr().Is4() {
		return to, unix.AF_INET, nil
	}
	return to, unix.AF_INET6, nil
}

func sockaddr(to netip.AddrPort) (unix.Sockaddr, error) {
	if to.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, nil
	}
	scope, err := zone(to.Addr())
	return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16(), ZoneId: scope}, err
}

func zone(a netip.Addr) (uint32, error) {
	if a.Zone() == "" {
		return 0, nil
	}
	dev, err := net.InterfaceByName(a.Zone())
	if err != nil {
		return 0, fmt.Errorf("read scope: %w", err)
	}
	return uint32(dev.Index), nil
}

// rawAddr is a sockaddr_in or sockaddr_in6 as the kernel reads it, for calls that lie in it or that have no wrapper.
func rawAddr(to netip.AddrPort) []byte {
	port := binary.BigEndian.AppendUint16(nil, to.Port())
	if to.Addr().Is4() {
		b := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
		b = append(append(b, port...), to.Addr().AsSlice()...)
		return append(b, make([]byte, 8)...)
	}
	b := binary.NativeEndian.AppendUint16(nil, unix.AF_INET6)
	b = append(append(b, port...), 0, 0, 0, 0)
	b = append(b, to.Addr().AsSlice()...)
	return append(b, 0, 0, 0, 0)
}

// rawSendto is sendto(2) with any address.
func rawSendto(fd int, p []byte, flags int, address []byte) error {
	_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), uintptr(flags),
		uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	return failure("sendto", errno)
}

// rawConnect is connect(2) with any address.
func rawConnect(fd int, address []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	return failure("connect", errno)
}

// failure is nil for errno 0.
func failure(name string, errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return step(name, errno)
}
