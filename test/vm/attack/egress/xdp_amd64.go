package main

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// xdp sends a frame from memory shared with the driver, past the whole network stack (B18).
func xdp(c *call) error {
	const size, slots = 4096, 4
	to, _, err := c.ip()
	if err != nil {
		return err
	}
	dev, err := net.InterfaceByName(c.dev)
	if err != nil {
		return step("find -dev", err)
	}
	mac, err := net.ParseMAC(c.mac)
	if err != nil {
		return step("read -mac", err)
	}
	fd, err := c.open(unix.AF_XDP, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	mem, err := unix.Mmap(-1, 0, slots*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return step("mmap", err)
	}
	umem := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&mem[0]))), Len: uint64(len(mem)), Size: size}
	if _, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_UMEM_REG,
		uintptr(unsafe.Pointer(&umem)), unsafe.Sizeof(umem), 0); errno != 0 {
		return failure("setsockopt", errno)
	}
	for _, ring := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_TX_RING} {
		if err := unix.SetsockoptInt(fd, unix.SOL_XDP, ring, slots); err != nil {
			return step("setsockopt", err)
		}
	}
	var off unix.XDPMmapOffsets
	length := uint32(unsafe.Sizeof(off))
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&off)), uintptr(unsafe.Pointer(&length)), 0); errno != 0 {
		return failure("getsockopt", errno)
	}
	tx, err := unix.Mmap(fd, unix.XDP_PGOFF_TX_RING, int(off.Tx.Desc)+slots*int(unsafe.Sizeof(unix.XDPDesc{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return step("mmap", err)
	}
	sa := &unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(dev.Index)}
	if err := unix.Bind(fd, sa); err != nil {
		return step("bind", err)
	}
	if err := c.done("open"); err != nil {
		return err
	}
	link := &unix.SockaddrLinklayer{}
	copy(link.Addr[:], mac)
	b, err := frame(c, link, to)
	if err != nil {
		return err
	}
	copy(mem, b)
	*(*unix.XDPDesc)(unsafe.Pointer(&tx[off.Tx.Desc])) = unix.XDPDesc{Addr: 0, Len: uint32(len(b))}
	*(*uint32)(unsafe.Pointer(&tx[off.Tx.Producer])) = 1
	_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return failure("sendto", errno)
}
