package main

import (
	"encoding/binary"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"weir/test/vm/wire"
)

func openSniffer(dev string) (int, error) {
	i, err := net.InterfaceByName(dev)
	if err != nil {
		return -1, fmt.Errorf("find %s: %w", dev, err)
	}
	const all = uint16(unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open packet socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20); err != nil {
		return -1, fmt.Errorf("enlarge buffer: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index}); err != nil {
		return -1, fmt.Errorf("bind packet socket: %w", err)
	}
	return fd, nil
}

// dropped says how many frames found no room in the socket's buffer, if any: what is not heard has not arrived for a test.
func dropped(fd int) error {
	stats, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return fmt.Errorf("count what was not heard: %w", err)
	}
	if stats.Drops != 0 {
		return fmt.Errorf("%d of %d frames were not heard", stats.Drops, stats.Packets)
	}
	return nil
}

// sniff reports every packet that comes in, whoever it is for.
func (r *receiver) sniff(fd int) {
	b := make([]byte, 1<<17)
	for {
		n, from, err := unix.Recvfrom(fd, b, 0)
		if err != nil {
			r.say(wire.Arrival{Via: "packet", Error: err.Error()})
			return
		}
		if sa, ok := from.(*unix.SockaddrLinklayer); ok && sa.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if said := kernelSaid(b[:n]); said != "" {
			r.say(wire.Arrival{Via: "kernel", Text: said})
		} else if a, ok := read(b[:n]); ok {
			r.say(a)
		}
	}
}

// read finds protocol and ports of a frame. What the kernel says by itself is kernelSaid's, or not reported.
func read(b []byte) (wire.Arrival, bool) {
	if len(b) < 14 {
		return wire.Arrival{}, false
	}
	a := wire.Arrival{Via: "packet", Proto: int(binary.BigEndian.Uint16(b[12:])), Text: printable(b)}
	b = b[14:]
	switch a.Proto {
	case unix.ETH_P_ARP:
		return a, false
	case unix.ETH_P_IP:
		if len(b) < 20 || len(b) < int(b[0]&15)*4 {
			return a, true
		}
		a.Proto, a.Class = int(b[9]), int(b[1])
		a.Fragment = binary.BigEndian.Uint16(b[6:])&0x3fff != 0
		if binary.BigEndian.Uint16(b[6:])&0x1fff != 0 {
			return a, true
		}
		b = b[int(b[0]&15)*4 : max(int(b[0]&15)*4, min(len(b), int(binary.BigEndian.Uint16(b[2:]))))]
	case unix.ETH_P_IPV6:
		if len(b) < 40 {
			return a, true
		}
		a.Proto, a.Class = int(b[6]), int(binary.BigEndian.Uint16(b)>>4&0xff)
		b = b[40:]
		if a.Proto == unix.IPPROTO_ICMPV6 && len(b) > 0 && b[0] >= 130 && b[0] <= 143 {
			return a, false
		}
		if a.Proto == unix.IPPROTO_HOPOPTS && len(b) > 8 && b[0] == unix.IPPROTO_ICMPV6 {
			return a, false // multicast listener reports
		}
	default:
		return a, true
	}
	switch a.Proto {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE, unix.IPPROTO_SCTP, unix.IPPROTO_DCCP:
		if len(b) >= 4 {
			a.From, a.Port = int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:]))
		}
	}
	if a.Proto == unix.IPPROTO_TCP && len(b) >= 20 {
		a.Flags, a.Payload, a.Window = int(b[13]), len(b)-int(b[12]>>4)*4, int(binary.BigEndian.Uint16(b[14:]))
	}
	return a, true
}
