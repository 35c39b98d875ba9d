package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// kernelSaid tells the addresses in a frame that the other kernel sent by itself, each in brackets: arp(ADDR) and nd(ADDR) are
// asked for, igmp(ADDR) and mld(ADDR) are groups or their sources, and leave(ADDR) is a group that nobody wants any more. It is
// empty for other frames.
func kernelSaid(b []byte) string {
	if len(b) < 14 {
		return ""
	}
	proto, b := binary.BigEndian.Uint16(b[12:]), b[14:]
	switch {
	case proto == unix.ETH_P_ARP && len(b) >= 28 && b[7] == 1:
		return said("arp", b[24:28])
	case proto == unix.ETH_P_IP && len(b) >= 20 && b[9] == unix.IPPROTO_IGMP:
		if b = b[min(len(b), int(b[0]&15)*4):]; len(b) >= 8 && b[0] == 0x22 {
			return memberships("igmp", b, 4)
		}
	case proto == unix.ETH_P_IPV6 && len(b) >= 48:
		next, rest := b[6], b[40:]
		if next == unix.IPPROTO_HOPOPTS {
			next, rest = rest[0], rest[min(len(rest), 8+int(rest[1])*8):]
		}
		switch {
		case next != unix.IPPROTO_ICMPV6 || len(rest) < 8:
		case rest[0] == 135 && len(rest) >= 24:
			return said("nd", rest[8:24])
		case rest[0] == 143:
			return memberships("mld", rest, 16)
		}
	}
	return ""
}

// memberships reads a report of IGMPv3 or MLDv2, which differ in the size of addresses alone.
func memberships(what string, b []byte, size int) string {
	const toInclude = 3
	var all strings.Builder
	count := int(binary.BigEndian.Uint16(b[6:]))
	b = b[8:]
	for range count {
		if len(b) < 4+size {
			break
		}
		sources, aux := int(binary.BigEndian.Uint16(b[2:])), int(b[1])*4
		if b[0] == toInclude && sources == 0 {
			all.WriteString(said("leave", b[4:4+size]))
		}
		all.WriteString(said(what, b[4:4+size]))
		b = b[4+size:]
		for range sources {
			if len(b) < size {
				return all.String()
			}
			all.WriteString(said(what, b[:size]))
			b = b[size:]
		}
		b = b[min(len(b), aux):]
	}
	return all.String()
}

func said(what string, addr []byte) string {
	a, _ := netip.AddrFromSlice(addr) // 4 or 16 bytes
	return fmt.Sprintf("%s(%s)", what, a)
}
