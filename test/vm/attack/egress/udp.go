package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func udpAttempts() map[string]attempt {
	return map[string]attempt{
		"udp-sendto":   datagram(unix.IPPROTO_UDP, sendtoAddr),
		"udp-sendmsg":  datagram(unix.IPPROTO_UDP, sendmsgAddr),
		"udp-sendmmsg": datagram(unix.IPPROTO_UDP, sendmmsgAddr),
		"udp-unspec":   datagram(unix.IPPROTO_UDP, sendtoUnspec),
		"udp-cork":     datagram(unix.IPPROTO_UDP, sendtoCorked),
		"udp-gso":      datagram(unix.IPPROTO_UDP, sendtoSegments),
		"udp-other":    datagram(unix.IPPROTO_UDP, sendtoOther),
		"udplite":      datagram(unix.IPPROTO_UDPLITE, sendtoAddr),
		"udp-in4":      udpIn4,
		"udp-connect":  udpConnect,
		"udp-shared":   udpShared,
		"udp-race":     udpRace,
		"udp-many":     udpMany,
		"udp-turns":    udpTurns,
		"udp-first":    udpFirst,
		"udp-portless": udpPortless,
		"serve-udp":    serveUDP,
	}
}

// datagram sends with a socket that is not connected (B13).
func datagram(proto int, send func(fd int, text []byte, to netip.AddrPort) error) attempt {
	return func(c *call) error {
		to, family, err := c.ip()
		if err != nil {
			return err
		}
		fd, err := c.open(family, unix.SOCK_DGRAM, proto)
		if err != nil {
			return err
		}
		return send(fd, c.say, to)
	}
}

// udpShared sends to a broadcast address, which every socket there hears. Its own is what a search for one finds (B26).
func udpShared(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return err
	}
	for _, option := range []int{unix.SO_REUSEADDR, unix.SO_BROADCAST} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1); err != nil {
			return step("setsockopt", err)
		}
	}
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, sa); err != nil {
		return step("bind", err)
	}
	if c.by == "write" {
		return step("sendto", unix.Sendto(fd, c.say, 0, sa))
	}
	if err := unix.Connect(fd, sa); err != nil {
		return step("connect", err)
	}
	return c.send(fd)
}

// udpMany sends to -n addresses, from that of -to on, and says how many were refused (B95).
func udpMany(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return err
	}
	refused := 0
	for range c.n {
		if err = sendtoAddr(fd, c.say, to); err != nil {
			refused++
		}
		to = netip.AddrPortFrom(to.Addr().Next(), to.Port())
	}
	fmt.Fprintln(c.out, "refused to", refused)
	return errors.Join(err, c.done("open"))
}

// udpRace sends from two sockets at the same moment, each from a processor of its own, then once more from each: -n times, each when it is
// told to (B94). What is sent says which time, socket and datagram it is.
func udpRace(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	for round := range c.n {
		if err := c.proceed(); err != nil {
			return err
		}
		var ready atomic.Int32
		var ended sync.WaitGroup
		var failed [2]error
		for i := range failed {
			late := max(0, (round%64-32)*(2*i-1)) * 50 // now the one, now the other
			ended.Go(func() { failed[i] = raceOne(&ready, i, late, family, sa, fmt.Sprintf("%s.%d.%d.", c.say, round, i)) })
		}
		ended.Wait()
		fmt.Fprintln(c.out, "round", round, failed)
	}
	return nil
}

func raceOne(ready *atomic.Int32, cpu, late, family int, to unix.Sockaddr, text string) error {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return step("sched_setaffinity", err)
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return step("socket", err)
	}
	first, second := []byte(text+"first"), []byte(text+"second")
	ready.Add(1)
	for ready.Load() < 2 {
		continue // it is to be the same moment
	}
	for range late {
		ready.Load()
	}
	if err := unix.Sendto(fd, first, 0, to); err != nil {
		return step("sendto", err)
	}
	return step("sendto", unix.Sendto(fd, second, 0, to))
}

// broadcaster is a socket that may send to a broadcast address.
func (c *call) broadcaster() (int, netip.AddrPort, error) {
	to, family, err := c.ip()
	if err != nil {
		return -1, to, err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return -1, to, err
	}
	return fd, to, step("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1))
}

// udpTurns sends for as long as -after says, on a socket that another thread connects to itself and to -to in turn: what is judged of a
// send is not what it reads afterwards (B141).
func udpTurns(c *call) error {
	fd, to, err := c.broadcaster()
	if err != nil {
		return err
	}
	own := rawAddr(netip.AddrPortFrom(loopbackLike(to.Addr()), 9))
	if err := rawConnect(fd, own); err != nil {
		return err
	}
	if err := c.done("open"); err != nil {
		return err
	}
	var over atomic.Bool
	var ended sync.WaitGroup
	var failed error
	ended.Go(func() {
		for !over.Load() {
			if err := rawConnect(fd, rawAddr(to)); err != nil {
				failed = err
			}
			if c.by == "reset" { // it is not connected in between
				_ = rawConnect(fd, make([]byte, unix.SizeofSockaddrInet6))
			}
			if err := rawConnect(fd, own); err != nil {
				failed = err
			}
		}
	})
	for end := time.Now().Add(c.after); time.Now().Before(end); {
		_ = unix.Send(fd, c.say, unix.MSG_DONTWAIT) // most are refused
	}
	over.Store(true)
	ended.Wait()
	return failed
}

// udpFirst does the same with sockets that are connected once, while another thread sends already.
func udpFirst(c *call) error {
	var failed error
	for end := time.Now().Add(c.after); time.Now().Before(end); {
		fd, to, err := c.broadcaster()
		if err != nil {
			return err
		}
		var over atomic.Bool
		var ended sync.WaitGroup
		ended.Go(func() {
			for last := false; !last; {
				last = over.Load()
				if err := unix.Send(fd, c.say, unix.MSG_DONTWAIT); err != nil && err != unix.EDESTADDRREQ {
					failed = step("send", err)
				}
			}
		})
		runtime.Gosched()
		err = rawConnect(fd, rawAddr(to))
		over.Store(true)
		ended.Wait()
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return failed
}

// udpPortless is connected to port 0, to which nobody listens, but the kernel sends (B141).
func udpPortless(c *call) error {
	fd, to, err := c.broadcaster()
	if err != nil {
		return err
	}
	if err := rawConnect(fd, rawAddr(netip.AddrPortFrom(to.Addr(), 0))); err != nil {
		return err
	}
	return step("send", unix.Send(fd, c.say, 0))
}

// loopbackLike is a loopback address for a socket of the family that reaches a.
func loopbackLike(a netip.Addr) netip.Addr {
	switch {
	case a.Is4():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case a.Is4In6():
		return netip.AddrFrom16(netip.AddrFrom4([4]byte{127, 0, 0, 1}).As16())
	}
	return netip.IPv6Loopback()
}

func sendtoAddr(fd int, text []byte, to netip.AddrPort) error {
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	return step("sendto", unix.Sendto(fd, text, 0, sa))
}

func sendmsgAddr(fd int, text []byte, to netip.AddrPort) error {
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	return step("sendmsg", unix.Sendmsg(fd, text, nil, sa, 0))
}

// sendmmsgAddr sends two datagrams in one call.
func sendmmsgAddr(fd int, text []byte, to netip.AddrPort) error {
	return sendmmsg(fd, text, to, nil)
}

// sendmmsg sends two datagrams in one call, the second with control messages.
func sendmmsg(fd int, text []byte, to netip.AddrPort, control []byte) error {
	address := rawAddr(to)
	iov := unix.Iovec{Base: &text[0]}
	iov.SetLen(len(text))
	type mmsghdr struct {
		unix.Msghdr
		_ uint32
	}
	var m [2]mmsghdr
	for i := range m {
		m[i].Name, m[i].Namelen = &address[0], uint32(len(address))
		m[i].Iov = &iov
		m[i].SetIovlen(1)
	}
	if len(control) > 0 {
		m[1].Control = &control[0]
		m[1].SetControllen(len(control))
	}
	sent, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), uintptr(len(m)), 0, 0, 0)
	if errno == 0 && int(sent) < len(m) {
		errno = unix.EPERM // of the second
	}
	return failure("sendmmsg", errno)
}

// sendtoUnspec names no family, which IPv4 takes for its own.
func sendtoUnspec(fd int, text []byte, to netip.AddrPort) error {
	address := rawAddr(to)
	binary.NativeEndian.PutUint16(address, unix.AF_UNSPEC)
	return rawSendto(fd, text, 0, address)
}

// sendtoCorked names the destination with the first of two parts.
func sendtoCorked(fd int, text []byte, to netip.AddrPort) error {
	if err := rawSendto(fd, text, unix.MSG_MORE, rawAddr(to)); err != nil {
		return err
	}
	return step("setsockopt", unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_CORK, 0))
}

func sendtoSegments(fd int, text []byte, to netip.AddrPort) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, len(text)); err != nil {
		return step("setsockopt", err)
	}
	return rawSendto(fd, append(append([]byte{}, text...), text...), 0, rawAddr(to))
}

// sendtoOther connects to the own machine and sends elsewhere.
func sendtoOther(fd int, text []byte, to netip.AddrPort) error {
	own := netip.AddrPortFrom(netip.IPv6Loopback(), to.Port())
	if to.Addr().Is4() {
		own = netip.MustParseAddrPort("127.0.0.1:9")
	}
	if err := rawConnect(fd, rawAddr(own)); err != nil {
		return err
	}
	// bound to the loopback address now, from where nothing can leave: the source is chosen anew
	if err := rawConnect(fd, make([]byte, unix.SizeofSockaddrInet6)); err != nil {
		return err
	}
	return rawSendto(fd, text, 0, rawAddr(to))
}

// udpIn4 gives a socket of IPv6 an address of IPv4 (B14).
func udpIn4(c *call) error {
	to, _, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return err
	}
	return rawSendto(fd, c.say, 0, rawAddr(to))
}

func udpConnect(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return err
	}
	if err := rawConnect(fd, rawAddr(to)); err != nil {
		return err
	}
	if err := c.done("connect"); err != nil {
		return err
	}
	return c.send(fd)
}

// serveUDP answers the first datagram that comes (B46).
func serveUDP(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	sa, err := sockaddr(to)
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, sa); err != nil {
		return step("bind", err)
	}
	if err := c.pause(); err != nil {
		return err
	}
	wait := unix.NsecToTimeval(c.after.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return step("setsockopt", err)
	}
	_, from, err := unix.Recvfrom(fd, make([]byte, 100), 0)
	if err != nil {
		return step("recvfrom", err)
	}
	return step("sendto", unix.Sendto(fd, c.say, 0, from))
}
