package main

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What golang.org/x/sys/unix does not name.
const (
	l2tpProtocol  = 115
	tipcAddrName  = 2
	tipcUserStart = 64
)

func familyAttempts() map[string]attempt {
	return map[string]attempt{
		"socket":       onlySocket,
		"sctp":         func(c *call) error { return stream(c, unix.IPPROTO_SCTP) },
		"sctp-many":    sctpMany,
		"dccp":         dccp,
		"l2tp":         l2tp,
		"vsock":        vsock,
		"tipc":         tipc,
		"netlink-peer": netlinkPeer,
		"alg":          alg,
		"vsock-call":   vsockCall,
		"vsock-serve":  vsockServe,
		"tipc-bind":    tipcBind,
	}
}

// onlySocket opens a socket of -family, -type and -proto (B19).
func onlySocket(c *call) error {
	_, err := c.open(c.family, c.kind, c.proto)
	return err
}

// sctpMany sends on a socket that is never connected: the association comes with the first message.
func sctpMany(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP)
	if err != nil {
		return err
	}
	return rawSendto(fd, c.say, 0, rawAddr(to))
}

func dccp(c *call) error {
	const solDCCP, service = 269, 2
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_DCCP, unix.IPPROTO_DCCP)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, solDCCP, service, int(swap32(1))); err != nil {
		return step("setsockopt", err)
	}
	if err := rawConnect(fd, rawAddr(to)); err != nil {
		return err
	}
	if err := c.done("connect"); err != nil {
		return err
	}
	return c.send(fd)
}

func swap32(v uint32) uint32 {
	return binary.NativeEndian.Uint32(binary.BigEndian.AppendUint32(nil, v))
}

// l2tp sends IP packets of protocol 115 from a datagram socket.
func l2tp(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, l2tpProtocol)
	if err != nil {
		return err
	}
	own, err := sourceFor(to)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrL2TPIP{Addr: own.As4(), ConnId: 7}); err != nil {
		return step("bind", err)
	}
	return step("sendto", unix.Sendto(fd, c.say, 0, &unix.SockaddrL2TPIP{Addr: to.Addr().As4(), ConnId: 7}))
}

// vsockDial reaches a hypervisor or another process of the machine: -to CID:PORT.
func vsockDial(c *call) (int, error) {
	cid, port, ok := strings.Cut(c.to, ":")
	a, err := strconv.ParseUint(cid, 10, 32)
	b, err2 := strconv.ParseUint(port, 10, 32)
	if !ok || err != nil || err2 != nil {
		return -1, fmt.Errorf("read -to %q: want CID:PORT", c.to)
	}
	fd, err := c.open(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrVM{CID: uint32(a), Port: uint32(b)}); err != nil {
		return -1, step("connect", err)
	}
	return fd, c.done("connect")
}

func vsock(c *call) error {
	fd, err := vsockDial(c)
	if err != nil {
		return err
	}
	return c.send(fd)
}

// vsockCall makes a call on a connected socket that sends no text, but has the kernel tell the other side something (B62). -by says which.
func vsockCall(c *call) error {
	const bufferSize = 0 // SO_VM_SOCKETS_BUFFER_SIZE
	fd, err := vsockDial(c)
	if err != nil {
		return err
	}
	switch c.by {
	case "setsockopt":
		err = unix.SetsockoptUint64(fd, unix.AF_VSOCK, bufferSize, 1<<17)
	case "getsockopt":
		_, err = unix.GetsockoptUint64(fd, unix.AF_VSOCK, bufferSize)
	case "recv":
		if _, _, err = unix.Recvfrom(fd, make([]byte, 100), unix.MSG_DONTWAIT); err == unix.EAGAIN {
			err = nil
		}
	case "shutdown":
		err = unix.Shutdown(fd, unix.SHUT_WR)
	default:
		return fmt.Errorf("-by %s: want setsockopt, getsockopt, recv or shutdown", c.by)
	}
	return step(c.by, err)
}

// vsockServe waits for a connection, which it does not get (B62).
func vsockServe(c *call) error {
	fd, err := c.open(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: unix.VMADDR_PORT_ANY}); err != nil {
		return step("bind", err)
	}
	if err := c.done("connect"); err != nil {
		return err
	}
	if err := unix.Listen(fd, 1); err != nil {
		return step("listen", err)
	}
	if err := c.done("open"); err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	if _, _, err = unix.Accept4(fd, 0); err == unix.EAGAIN {
		err = nil
	}
	return step("accept", err)
}

// tipcSocket opens one, and gives the address of a service of the node: -to NUMBER.
func tipcSocket(c *call) (int, *unix.SockaddrTIPC, error) {
	service, err := strconv.ParseUint(c.to, 10, 32)
	if err != nil {
		return -1, nil, fmt.Errorf("read -to: %w", err)
	}
	fd, err := c.open(unix.AF_TIPC, unix.SOCK_RDM, 0)
	return fd, &unix.SockaddrTIPC{Scope: 1, Addr: &unix.TIPCServiceName{Type: tipcUserStart + uint32(service), Instance: 1}}, err
}

// tipc sends a datagram to a service.
func tipc(c *call) error {
	fd, sa, err := tipcSocket(c)
	if err != nil {
		return err
	}
	return step("sendto", unix.Sendto(fd, c.say, 0, sa))
}

// tipcBind publishes a name, which the kernel tells all who wait for it (B62).
func tipcBind(c *call) error {
	fd, sa, err := tipcSocket(c)
	if err != nil {
		return err
	}
	return step("bind", unix.Bind(fd, sa))
}

// netlinkPeer sends to another process's netlink socket rather than to the kernel: -to PORT.
func netlinkPeer(c *call) error {
	id, err := strconv.ParseUint(c.to, 10, 32)
	if err != nil {
		return fmt.Errorf("read -to: %w", err)
	}
	fd, err := c.open(unix.AF_NETLINK, unix.SOCK_RAW, c.proto)
	if err != nil {
		return err
	}
	return step("sendto", unix.Sendto(fd, c.say, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: uint32(id)}))
}

// alg drives the kernel's own ciphers.
func alg(c *call) error {
	fd, err := c.open(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		return err
	}
	return step("bind", unix.Bind(fd, &unix.SockaddrALG{Type: "hash", Name: "sha256"}))
}
