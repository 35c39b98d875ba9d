//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// operation does something n times. It runs alone, see there: system calls only, nothing new in memory.
type operation func(n int) unix.Errno

func operations() map[string]operation {
	return map[string]operation{
		"exec": execute(), "connect": connect(), "udp": send(), "bulk": bulk(), "open": open(),
		"ask-allowed": ask(allowedName, true), "ask-again": ask(allowedName, false), "ask-unknown": ask(unknownName, true),
		"rate-again": rate(allowedName), "rate-unknown": rate(unknownName),
	}
}

// alone runs an operation in a process of one thread, and gives the time in ns: whatever the runtime's other threads do would
// count too. Such a process, a fork of this one, can do no more than system calls.
func alone(do operation, n int) (int64, error) {
	if do == nil {
		return 0, errors.New("no such operation")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	defer r.Close()
	var answer struct {
		took  int64
		errno int64
	}
	fd, text := w.Fd(), uintptr(unsafe.Pointer(&answer))
	pid, err := forkOnly()
	if err != nil {
		return 0, err
	}
	if pid == 0 {
		rest() // who gave the order
		start := monotonic()
		answer.errno = int64(do(n))
		answer.took = monotonic() - start
		unix.RawSyscall(unix.SYS_WRITE, fd, text, unsafe.Sizeof(answer))
		exit()
	}
	w.Close()
	data, readErr := io.ReadAll(r)
	if err := errors.Join(readErr, reap(pid)); err != nil {
		return 0, err
	}
	if uintptr(len(data)) != unsafe.Sizeof(answer) {
		return 0, fmt.Errorf("answer of %d bytes", len(data))
	}
	if errno := binary.NativeEndian.Uint64(data[8:]); errno != 0 {
		return 0, unix.Errno(errno)
	}
	return int64(binary.NativeEndian.Uint64(data)), nil
}

// forkOnly is fork; the child, 0, has this thread only and must end with exit.
func forkOnly() (int, error) {
	runtime.Gosched() // a wish to preempt, left from the last system call, would stop the child for ever
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0, fmt.Errorf("fork: %w", errno)
	}
	return int(pid), nil
}

func exit() {
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

func rest() {
	pause := unix.Timespec{Nsec: 20_000_000}
	unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
}

// monotonic is the time in ns of a clock that all processes share.
func monotonic() int64 { return now(unix.CLOCK_MONOTONIC) }

// boottime is the clock of the kernel's start times.
func boottime() uint64 { return uint64(now(unix.CLOCK_BOOTTIME)) }

func now(clock uintptr) int64 {
	var ts unix.Timespec
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

const program = "/bin/true"

// environment is about as large as that of a login.
func environment() []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}
	for i := range 20 {
		env = append(env, fmt.Sprintf("BENCH_VARIABLE_%d=%s", i, strings.Repeat("value ", 5)))
	}
	return env
}

// execute forks, executes a program and waits for its end.
func execute() operation {
	path := must(syscall.BytePtrFromString(program))
	argv := must(syscall.SlicePtrFromStrings([]string{program}))
	env := must(syscall.SlicePtrFromStrings(environment()))
	return func(n int) unix.Errno {
		for range n {
			pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if errno != 0 {
				return errno
			}
			if pid == 0 {
				unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
			}
			var status uint32
			if _, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, pid, uintptr(unsafe.Pointer(&status)), 0, 0, 0, 0); errno != 0 {
				return errno
			}
			if status != 0 {
				return unix.ECHILD
			}
		}
		return 0
	}
}

// must is for texts of this program, which have no zero bytes.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func socket(kind uintptr) (uintptr, unix.Errno) {
	fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	return fd, errno
}

func dial(to *unix.RawSockaddrInet4) (uintptr, unix.Errno) {
	fd, errno := socket(unix.SOCK_STREAM)
	if errno != 0 {
		return 0, errno
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to)); errno != 0 {
		hangUp(fd)
		return 0, errno
	}
	return fd, 0
}

// hangUp closes a descriptor whose fate nobody cares about.
func hangUp(fd uintptr) { unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0) }

func sendTo(fd uintptr, text *[64]byte, to *unix.RawSockaddrInet4) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(text)), uintptr(len(text)), 0,
		uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to))
	return errno
}

// connect connects over TCP and closes.
func connect() operation {
	to := address(allowed, acceptAt)
	return func(n int) unix.Errno {
		for range n {
			fd, errno := dial(to)
			if errno != 0 {
				return errno
			}
			hangUp(fd)
		}
		return 0
	}
}

// send sends datagrams of 64 bytes on a socket that is not connected.
func send() operation {
	to, text := address(allowed, dropAt), new([64]byte)
	return func(n int) unix.Errno {
		fd, errno := socket(unix.SOCK_DGRAM)
		for i := 0; i < n && errno == 0; i++ {
			errno = sendTo(fd, text, to)
		}
		hangUp(fd)
		return errno
	}
}

// bulk sends n MiB over one connection, and waits until the other end has read them.
func bulk() operation {
	to, data := address(allowed, readAt), make([]byte, 128<<10)
	return func(n int) unix.Errno {
		fd, errno := dial(to)
		if errno != 0 {
			return errno
		}
		defer hangUp(fd)
		for left := n << 20; left > 0; {
			sent, _, errno := unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&data[0])), uintptr(min(left, len(data))))
			if errno != 0 {
				return errno
			}
			left -= int(sent)
		}
		unix.RawSyscall(unix.SYS_SHUTDOWN, fd, unix.SHUT_WR, 0)
		_, _, errno = unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&data[0])), 1)
		return errno
	}
}

// open opens a file and closes it.
func open() operation {
	path := must(syscall.BytePtrFromString("/etc/hostname"))
	return func(n int) unix.Errno {
		for range n {
			fd, _, errno := unix.RawSyscall6(unix.SYS_OPEN, uintptr(unsafe.Pointer(path)), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0, 0)
			if errno != 0 {
				return errno
			}
			hangUp(fd)
		}
		return 0
	}
}
