package runner

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	x32Bit   = 0x40000000 // of a system call's number
	x32Ioctl = 514
	i386     = 54 // ioctl there
)

// Offsets in struct seccomp_data.
const (
	atNumber  = 0
	atArch    = 4
	atRequest = 24 // low half of the second argument: the kernel takes no more of it
)

// untyped is a filter of system calls that refuses to type into a terminal, which the command shares with whoever started it: what stands
// there when it has ended, an unguarded shell would run (B52).
func untyped() []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	skip := func(equal uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: equal}
	}
	end := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	return []unix.SockFilter{
		load(atArch),
		skip(unix.AUDIT_ARCH_X86_64, 3, 0),
		skip(unix.AUDIT_ARCH_I386, 0, 11), // no other has a number that could be read here
		load(atNumber),
		skip(i386, 4, 7),
		load(atNumber),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: ^uint32(x32Bit)},
		skip(unix.SYS_IOCTL, 1, 0),
		skip(x32Ioctl, 0, 3),
		load(atRequest),
		skip(unix.TIOCSTI, 2, 0),
		skip(unix.TIOCLINUX, 1, 0),
		end(unix.SECCOMP_RET_ALLOW),
		end(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)),
		end(unix.SECCOMP_RET_KILL_PROCESS),
	}
}

// onTerminal says whether this process has a terminal that it may type into: the one that controls it, or an open one.
func onTerminal() bool {
	if fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		unix.Close(fd)
		return true
	}
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			return true
		}
	}
	return false
}

// keepHands keeps this process, in all threads, and all that it starts from typing into a terminal, for good, if it has one: the filter
// costs each system call a little. Without CAP_SYS_ADMIN it costs setuid programs their rights, which is what said tells.
func keepHands() (said string, err error) {
	if !onTerminal() {
		return "", nil
	}
	runtime.LockOSThread() // what is asked of a thread must hold for the one that asks for the filter
	defer runtime.UnlockOSThread()
	filter := untyped()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	set := func() (uintptr, unix.Errno) {
		thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
		return thread, errno
	}
	thread, errno := set()
	if errno == unix.EACCES {
		said = "without CAP_SYS_ADMIN setuid programs, such as sudo, have no effect in this session"
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return "", fmt.Errorf("give up setuid programs: %w", err)
		}
		thread, errno = set()
	}
	switch {
	case errno != 0:
		return "", fmt.Errorf("refuse to type into the terminal: %w", errno)
	case thread != 0:
		return "", fmt.Errorf("refuse to type into the terminal: thread %d has a filter of its own", thread)
	}
	return said, nil
}
