package main

import (
	"net/netip"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What is used of linux/io_uring.h.
const (
	uringSendmsg = 9
	uringConnect = 16
	uringSend    = 26
	uringOpenAt  = 18
	uringRead    = 22
	uringWrite   = 23
	uringSplice  = 30
	uringOpen    = 45

	uringSQPoll     = 1 << 1
	uringGetevents  = 1 << 0
	uringWakeup     = 1 << 1
	uringNeedWakeup = 1 << 0
	uringFixed      = 1 << 0 // fd is a place in the ring's own table

	uringRegisterFiles = 2

	uringOffsetSQEs = 0x10000000
)

type uringParams struct {
	sqEntries, cqEntries, flags, sqCPU, sqIdle, features, wqFD uint32
	_                                                          [3]uint32
	sq                                                         struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

type uringSQE struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	len, opFlags  uint32
	userData      uint64
	bufIndex      uint16
	personality   uint16
	addrLen       uint16 // of a datagram's destination; or what is spliced from; or a place in the ring's own table, from 1 on
	_             uint16
	_             [2]uint64
}

type uringCQE struct {
	userData uint64
	result   int32
	flags    uint32
}

// uring is a ring with room for one operation at a time (B20).
type uring struct {
	fd     int
	params uringParams
	rings  []byte
	sqes   []byte
}

func newUring(c *call) (*uring, error) {
	r := &uring{}
	if c.sqpoll {
		r.params.flags = uringSQPoll
		r.params.sqIdle = 1000
	}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&r.params)), 0)
	if errno != 0 {
		return nil, failure("io_uring_setup", errno)
	}
	r.fd = int(fd)
	size := int(max(r.params.sq.array+r.params.sqEntries*4, r.params.cq.cqes+r.params.cqEntries*uint32(unsafe.Sizeof(uringCQE{}))))
	var err error
	if r.rings, err = unix.Mmap(r.fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return nil, step("mmap", err)
	}
	size = int(r.params.sqEntries) * int(unsafe.Sizeof(uringSQE{}))
	if r.sqes, err = unix.Mmap(r.fd, uringOffsetSQEs, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return nil, step("mmap", err)
	}
	return r, c.done("open")
}

func (r *uring) word(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[offset])) }

// do runs one operation and returns its result.
func (r *uring) do(name string, sqe uringSQE) (int, error) {
	tail := atomic.LoadUint32(r.word(r.params.sq.tail))
	slot := tail & *r.word(r.params.sq.mask)
	*(*uringSQE)(unsafe.Pointer(&r.sqes[uintptr(slot)*unsafe.Sizeof(sqe)])) = sqe
	*r.word(r.params.sq.array + 4*slot) = slot
	atomic.StoreUint32(r.word(r.params.sq.tail), tail+1)
	flags := uintptr(uringGetevents)
	if r.params.flags&uringSQPoll != 0 && atomic.LoadUint32(r.word(r.params.sq.flags))&uringNeedWakeup != 0 {
		flags |= uringWakeup
	}
	for {
		_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), 1, 1, flags, 0, 0)
		if errno == 0 {
			break
		}
		if errno != unix.EINTR {
			return 0, failure("io_uring_enter", errno)
		}
	}
	head := atomic.LoadUint32(r.word(r.params.cq.head))
	for head == atomic.LoadUint32(r.word(r.params.cq.tail)) {
		runtime.Gosched()
	}
	at := r.params.cq.cqes + (head&*r.word(r.params.cq.mask))*uint32(unsafe.Sizeof(uringCQE{}))
	result := (*uringCQE)(unsafe.Pointer(&r.rings[at])).result
	atomic.StoreUint32(r.word(r.params.cq.head), head+1)
	if result < 0 {
		return 0, failure(name, unix.Errno(-result))
	}
	return int(result), nil
}

func (r *uring) connect(fd int, to netip.AddrPort) error {
	address := rawAddr(to)
	_, err := r.do("connect", uringSQE{opcode: uringConnect, fd: int32(fd), addr: pointer(address), off: uint64(len(address))})
	runtime.KeepAlive(address)
	return err
}

func (r *uring) send(fd int, text []byte) error {
	_, err := r.do("send", uringSQE{opcode: uringSend, fd: int32(fd), addr: pointer(text), len: uint32(len(text))})
	runtime.KeepAlive(text)
	return err
}

// byUring has a thread of the kernel splice the text.
func byUring(fd int, text []byte) error {
	r, err := newUring(&call{})
	if err != nil {
		return err
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	if _, err := unix.Write(p[1], text); err != nil {
		return err
	}
	const none = ^uint64(0)
	_, err = r.do("splice", uringSQE{opcode: uringSplice, fd: int32(fd), off: none, addr: none, len: uint32(len(text)), addrLen: uint16(p[0])})
	return err
}

// pointer is where b lies; it is on the heap, which does not move.
func pointer(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// uringTCP connects and sends through the ring.
func uringTCP(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	r, err := newUring(c)
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := r.connect(fd, to); err != nil {
		return err
	}
	if err := c.done("connect"); err != nil {
		return err
	}
	return r.send(fd, c.say)
}

// uringSocket makes even the socket through the ring.
func uringSocket(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	r, err := newUring(c)
	if err != nil {
		return err
	}
	fd, err := r.do("socket", uringSQE{opcode: uringOpen, fd: int32(family), off: unix.SOCK_STREAM})
	if err != nil {
		return err
	}
	if err := r.connect(fd, to); err != nil {
		return err
	}
	return r.send(fd, c.say)
}

// uringLate connects as everybody does and sends through the ring.
func uringLate(c *call) error {
	fd, err := dial(c, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	c.wait = ""
	r, err := newUring(c)
	if err != nil {
		return err
	}
	return r.send(fd, c.say)
}

func uringUDP(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	r, err := newUring(c)
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	address := rawAddr(to)
	m := &struct {
		unix.Msghdr
		iov unix.Iovec
	}{}
	m.iov.Base = &c.say[0]
	m.iov.SetLen(len(c.say))
	m.Name, m.Namelen, m.Iov, m.Iovlen = &address[0], uint32(len(address)), &m.iov, 1
	_, err = r.do("sendmsg", uringSQE{opcode: uringSendmsg, fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(m))), len: 1})
	runtime.KeepAlive(m)
	return err
}

// uringSendto names the destination in a plain send.
func uringSendto(c *call) error {
	to, family, err := c.ip()
	if err != nil {
		return err
	}
	r, err := newUring(c)
	if err != nil {
		return err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	address := rawAddr(to)
	_, err = r.do("send", uringSQE{opcode: uringSend, fd: int32(fd), addr: pointer(c.say), len: uint32(len(c.say)), off: pointer(address), addrLen: uint16(len(address))})
	runtime.KeepAlive(address)
	return err
}

// uringFile opens a file through the ring.
func uringFile(c *call) (int, error) {
	r, err := newUring(c)
	if err != nil {
		return -1, err
	}
	return r.openFile(c, 0)
}

// openFile opens the file at -path; place: in the ring's own table, from 1 on, or 0: as a descriptor.
func (r *uring) openFile(c *call, place uint16) (int, error) {
	path := append([]byte(c.path), 0)
	fd, err := r.do("open", uringSQE{opcode: uringOpenAt, fd: unix.AT_FDCWD, addr: pointer(path), len: 0o600, opFlags: uint32(c.flags()), addrLen: place})
	runtime.KeepAlive(path)
	return fd, err
}

// fixedFile has the file in the ring alone, and reads or writes it there: no descriptor is ever of it.
func fixedFile(c *call) error {
	r, err := newUring(&call{})
	if err != nil {
		return err
	}
	none := [1]int32{-1}
	if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), uringRegisterFiles, uintptr(unsafe.Pointer(&none)), 1, 0, 0); errno != 0 {
		return failure("io_uring_register", errno)
	}
	if _, err := r.openFile(c, 1); err != nil {
		return err
	}
	io, text := uringSQE{opcode: uringWrite, flags: uringFixed}, c.say
	socket := -1
	if !c.write {
		if socket, err = datagrams(c); err != nil {
			return err
		}
		io.opcode, text = uringRead, make([]byte, most)
	}
	if err := c.done("open"); err != nil {
		return err
	}
	io.addr, io.len = pointer(text), uint32(len(text))
	n, err := r.do("read or write", io)
	runtime.KeepAlive(text)
	if err != nil || c.write {
		return err
	}
	_, err = unix.Write(socket, text[:n])
	return step("write", err)
}
