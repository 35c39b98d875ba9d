package main

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of arch/x86/entry/syscalls/syscall_64.tbl.
const (
	x32Bit    = 0x40000000
	x32Execve = 520
)

// execX32 lays everything out below 4 GiB, where x32's pointers reach.
func execX32() error {
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_32BIT)
	if err != nil {
		return fmt.Errorf("map low memory: %w", err)
	}
	base := uint32(uintptr(unsafe.Pointer(&page[0])))
	at := 64
	text := func(s string) uint32 {
		p := base + uint32(at)
		at += copy(page[at:], s+"\x00")
		return p
	}
	path := text("/proc/self/exe")
	for i, arg := range []string{"execs", "report", "x32"} {
		binary.NativeEndian.PutUint32(page[i*4:], text(arg))
	}
	_, _, errno := unix.RawSyscall(x32Bit+x32Execve, uintptr(path), uintptr(base), uintptr(base+12))
	return fmt.Errorf("execute itself as x32: %w", errno)
}
