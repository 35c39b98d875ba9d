package main

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const consolePaste = 3 // of TIOCLINUX

// terminalAttempts type on the terminal that they were started on, for whoever reads there later (B52).
func terminalAttempts() map[string]attempt {
	plain := func(request, arg uint32) unix.Errno { return ioctl(unix.SYS_IOCTL, uint64(request), arg) }
	return map[string]attempt{
		"type": func(c *call) error { return typeText(c, plain) },
		"type-thread": func(c *call) error {
			done := make(chan error)
			go func() {
				runtime.LockOSThread() // another than the first
				done <- typeText(c, plain)
			}()
			return <-done
		},
		"type-console": func(*call) error {
			mem, err := low(1)
			if err != nil {
				return err
			}
			mem[0] = consolePaste
			return failure("TIOCLINUX", plain(unix.TIOCLINUX, place(mem)))
		},
	}
}

func ioctl(nr uintptr, request uint64, arg uint32) unix.Errno {
	_, _, errno := unix.Syscall(nr, 0, uintptr(request), uintptr(arg))
	return errno
}

func typeText(c *call, do func(request, arg uint32) unix.Errno) error {
	mem, err := low(1)
	if err != nil {
		return err
	}
	for _, b := range fmt.Appendf(nil, "%s\n", c.say) {
		mem[0] = b
		if errno := do(unix.TIOCSTI, place(mem)); errno != 0 {
			return failure("TIOCSTI", errno)
		}
	}
	return nil
}

// low is memory below 4 GiB.
func low(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_32BIT)
	return mem, step("mmap", err)
}

func place(mem []byte) uint32 { return uint32(uintptr(unsafe.Pointer(&mem[0]))) }
