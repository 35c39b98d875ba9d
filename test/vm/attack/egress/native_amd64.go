package main

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func nativeAttempts() map[string]attempt {
	return map[string]attempt{
		"x32-tcp":      func(c *call) error { return otherEntry(c, x32Call, unix.SOCK_STREAM) },
		"x32-udp":      func(c *call) error { return otherEntry(c, x32Call, unix.SOCK_DGRAM) },
		"int80-tcp":    func(c *call) error { return otherEntry(c, int80Call, unix.SOCK_STREAM) },
		"int80-udp":    func(c *call) error { return otherEntry(c, int80Call, unix.SOCK_DGRAM) },
		"type-x32":     func(c *call) error { return typeText(c, x32Ioctl) },
		"type-high":    func(c *call) error { return typeText(c, highIoctl) },
		"twin":         twin,
		"file-uring":   func(c *call) error { return tellFile(c, uringFile) },
		"file-fixed":   fixedFile,
		"uring-tcp":    uringTCP,
		"uring-udp":    uringUDP,
		"uring-sendto": uringSendto,
		"uring-socket": uringSocket,
		"uring-late":   uringLate,
		"xdp":          xdp,
	}
}

// int80 makes a system call through the 32-bit entry; pointers must lie below 4 GiB.
func int80(nr, a, b, c, d, e uint32) int32

// twinSend starts a process that shares all memory, which sends text and ends. It returns the process's id.
//
//go:noescape
func twinSend(stack uintptr, fd int, text *byte, n int, address *byte, length int) int

// entry is a way into the kernel: op is socket, connect or sendto with arguments that fit in 32 bits.
type entry func(op int, a, b, c, d, e, f uint32) unix.Errno

const (
	opSocket = iota
	opConnect
	opSendto
)

// x32Call sets the bit of the x32 interface (B41).
func x32Call(result *uint32) entry {
	nr := [...]uintptr{unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_SENDTO}
	return func(op int, a, b, c, d, e, f uint32) unix.Errno {
		r, _, errno := unix.RawSyscall6(0x40000000|nr[op], uintptr(a), uintptr(b), uintptr(c), uintptr(d), uintptr(e), uintptr(f))
		*result = uint32(r)
		return errno
	}
}

// int80Call uses socketcall(2), which only the 32-bit entry has.
func int80Call(result *uint32) entry {
	const socketcall = 102
	calls := [...]uint32{1, 3, 11}
	return func(op int, a, b, c, d, e, f uint32) unix.Errno {
		mem, err := low(64)
		if err != nil {
			return unix.ENOMEM
		}
		for i, v := range []uint32{a, b, c, d, e, f} {
			binary.NativeEndian.PutUint32(mem[4*i:], v)
		}
		r := int80(socketcall, calls[op], place(mem), 0, 0, 0)
		if r < 0 {
			return unix.Errno(-r)
		}
		*result = uint32(r)
		return 0
	}
}

// x32Ioctl is numbered for x32 alone.
func x32Ioctl(request, arg uint32) unix.Errno { return ioctl(0x40000000|514, uint64(request), arg) }

// highIoctl has more bits in its request than the kernel takes.
func highIoctl(request, arg uint32) unix.Errno {
	return ioctl(unix.SYS_IOCTL, 1<<32|uint64(request), arg)
}

func otherEntry(c *call, enter func(*uint32) entry, kind int) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	address, err := low(64)
	if err != nil {
		return err
	}
	text, err := low(len(c.say))
	if err != nil {
		return err
	}
	length := uint32(copy(address, rawAddr(to)))
	copy(text, c.say)
	var fd uint32
	call := enter(&fd)
	if errno := call(opSocket, uint32(family), uint32(kind), 0, 0, 0, 0); errno != 0 {
		return failure("socket", errno)
	}
	if err := c.done("socket"); err != nil {
		return err
	}
	sent := fd
	if kind == unix.SOCK_STREAM {
		if errno := call(opConnect, sent, place(address), length, 0, 0, 0); errno != 0 {
			return failure("connect", errno)
		}
		if err := c.done("connect"); err != nil {
			return err
		}
	}
	return failure("sendto", call(opSendto, sent, place(text), uint32(len(c.say)), 0, place(address), length))
}

// twin lets another process that shares this one's memory send (B30).
func twin(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	if err != nil {
		return err
	}
	stack, err := low(1 << 16)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	address := rawAddr(to)
	pid := twinSend(uintptr(unsafe.Pointer(&stack[0]))+1<<16-64, fd, &c.say[0], len(c.say), &address[0], len(address))
	if pid < 0 {
		return failure("clone", unix.Errno(-pid))
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return step("wait", err)
	}
	if status.ExitStatus() != 0 {
		return failure("twin's sendto", unix.Errno(status.ExitStatus()))
	}
	return nil
}
