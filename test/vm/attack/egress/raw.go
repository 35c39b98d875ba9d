package main

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

func rawAttempts() map[string]attempt {
	return map[string]attempt{
		"raw-icmp":      rawICMP,
		"ping":          ping,
		"raw-udp":       rawUDP,
		"raw-header":    rawHeader,
		"raw-connected": rawConnected,
	}
}

// rawSocket opens a raw socket and gives the destination as raw sockets want it: without a port, which IPv6 takes for a protocol.
func rawSocket(c *call, kind, proto4, proto6 int) (int, netip.AddrPort, error) {
	to, family, err := c.ip()
	if err != nil {
		return -1, to, err
	}
	proto := proto4
	if family == unix.AF_INET6 {
		proto = proto6
	}
	fd, err := c.open(family, kind, proto)
	return fd, to, err
}

// rawICMP hides the text in an echo request (B17).
func rawICMP(c *call) error {
	fd, to, err := rawSocket(c, unix.SOCK_RAW, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6)
	if err != nil {
		return err
	}
	return rawSendto(fd, echo(to.Addr(), c.say), 0, rawAddr(netip.AddrPortFrom(to.Addr(), 0)))
}

// rawConnected writes on a raw socket that was connected before.
func rawConnected(c *call) error {
	fd, to, err := rawSocket(c, unix.SOCK_RAW, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6)
	if err != nil {
		return err
	}
	if err := rawConnect(fd, rawAddr(netip.AddrPortFrom(to.Addr(), 0))); err != nil {
		return err
	}
	if err := c.done("connect"); err != nil {
		return err
	}
	_, err = unix.Write(fd, echo(to.Addr(), c.say))
	return step("write", err)
}

// ping does the same with a datagram socket, which needs no privilege.
func ping(c *call) error {
	fd, to, err := rawSocket(c, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6)
	if err != nil {
		return err
	}
	return rawSendto(fd, echo(to.Addr(), c.say), 0, rawAddr(netip.AddrPortFrom(to.Addr(), 0)))
}

// rawUDP writes the UDP header itself.
func rawUDP(c *call) error {
	fd, to, err := rawSocket(c, unix.SOCK_RAW, unix.IPPROTO_UDP, unix.IPPROTO_UDP)
	if err != nil {
		return err
	}
	return rawSendto(fd, udpPacket(to.Port(), c.say), 0, rawAddr(netip.AddrPortFrom(to.Addr(), 0)))
}

// rawHeader writes the IP header as well.
func rawHeader(c *call) error {
	fd, to, err := rawSocket(c, unix.SOCK_RAW, unix.IPPROTO_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	source, err := sourceFor(to)
	if err != nil {
		return err
	}
	return rawSendto(fd, ipPacket(source, to, c.say), 0, rawAddr(netip.AddrPortFrom(to.Addr(), 0)))
}

func echo(to netip.Addr, text []byte) []byte {
	kind := byte(8)
	if to.Is6() {
		kind = 128 // the kernel fills in the sum of ICMPv6
	}
	b := append([]byte{kind, 0, 0, 0, 0, 7, 0, 1}, text...)
	if to.Is4() {
		binary.BigEndian.PutUint16(b[2:], checksum(b))
	}
	return b
}

// udpPacket has no checksum, which IPv4 permits and a sniffer does not mind.
func udpPacket(port uint16, text []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, 7777)
	b = binary.BigEndian.AppendUint16(b, port)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(text)))
	return append(append(b, 0, 0), text...)
}

func ipPacket(source netip.Addr, to netip.AddrPort, text []byte) []byte {
	body := udpPacket(to.Port(), text)
	if to.Addr().Is6() {
		b := []byte{0x60, 0, 0, 0, 0, 0, unix.IPPROTO_UDP, 64}
		binary.BigEndian.PutUint16(b[4:], uint16(len(body)))
		b = append(append(b, source.AsSlice()...), to.Addr().AsSlice()...)
		return append(b, body...)
	}
	b := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(body)))
	b = append(append(b, source.AsSlice()...), to.Addr().AsSlice()...)
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return append(b, body...)
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		sum += w
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// sourceFor is an own address in the network of the destination. It asks the interfaces, not a socket.
func sourceFor(to netip.AddrPort) (netip.Addr, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, step("find own address", err)
	}
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Contains(to.Addr().WithZone("")) {
			return p.Addr(), nil
		}
	}
	return netip.Addr{}, step("find own address", unix.ENETUNREACH)
}
