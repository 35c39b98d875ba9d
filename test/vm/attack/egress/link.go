package main

import (
	"encoding/binary"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

func linkAttempts() map[string]attempt {
	return map[string]attempt{
		"packet":       packetRaw,
		"packet-dgram": packetDatagram,
		"packet-ring":  packetRing,
	}
}

// packetSocket opens a packet socket that receives nothing (protocol 0).
func packetSocket(c *call, kind int) (int, *unix.SockaddrLinklayer, netip.AddrPort, error) {
	to, _, err := c.ip()
	if err != nil {
		return -1, nil, to, err
	}
	dev, err := net.InterfaceByName(c.dev)
	if err != nil {
		return -1, nil, to, step("find -dev", err)
	}
	mac, err := net.ParseMAC(c.mac)
	if err != nil {
		return -1, nil, to, step("read -mac", err)
	}
	fd, err := c.open(unix.AF_PACKET, kind, 0)
	if err != nil {
		return -1, nil, to, err
	}
	sa := &unix.SockaddrLinklayer{Protocol: swap(etherType(to)), Ifindex: dev.Index, Halen: 6}
	copy(sa.Addr[:], mac)
	return fd, sa, to, nil
}

func etherType(to netip.AddrPort) uint16 {
	if to.Addr().Is6() {
		return unix.ETH_P_IPV6
	}
	return unix.ETH_P_IP
}

func swap(v uint16) uint16 { return v<<8 | v>>8 }

// packetRaw sends a whole frame (B18).
func packetRaw(c *call) error {
	fd, sa, to, err := packetSocket(c, unix.SOCK_RAW)
	if err != nil {
		return err
	}
	b, err := frame(c, sa, to)
	if err != nil {
		return err
	}
	return step("sendto", unix.Sendto(fd, b, 0, sa))
}

func packetDatagram(c *call) error {
	fd, sa, to, err := packetSocket(c, unix.SOCK_DGRAM)
	if err != nil {
		return err
	}
	source, err := sourceFor(to)
	if err != nil {
		return err
	}
	return step("sendto", unix.Sendto(fd, ipPacket(source, to, c.say), 0, sa))
}

func frame(c *call, sa *unix.SockaddrLinklayer, to netip.AddrPort) ([]byte, error) {
	source, err := sourceFor(to)
	if err != nil {
		return nil, err
	}
	b := append(append([]byte{}, sa.Addr[:6]...), 2, 0, 0, 0, 0, 9)
	b = binary.BigEndian.AppendUint16(b, etherType(to))
	return append(b, ipPacket(source, to, c.say)...), nil
}

// packetRing leaves the frame in memory that is shared with the kernel and sends nothing but a kick.
func packetRing(c *call) error {
	const (
		size    = 4096
		request = 1 // TP_STATUS_SEND_REQUEST
		header  = 32
	)
	fd, sa, to, err := packetSocket(c, unix.SOCK_RAW)
	if err != nil {
		return err
	}
	ring := &unix.TpacketReq{Block_size: size, Block_nr: 1, Frame_size: size, Frame_nr: 1}
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_TX_RING, ring); err != nil {
		return step("setsockopt", err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		return step("bind", err)
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return step("mmap", err)
	}
	b, err := frame(c, sa, to)
	if err != nil {
		return err
	}
	h := (*unix.TpacketHdr)(unsafe.Pointer(&mem[0]))
	h.Len = uint32(len(b))
	copy(mem[header:], b)
	h.Status = request
	if err := c.done("open"); err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, 0, 0, 0)
	return failure("sendto", errno)
}
