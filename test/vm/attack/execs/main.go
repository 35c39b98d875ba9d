// Execs executes programs in ways that are meant to deceive whoever watches:
//
//	execs report [ARG...]       prints what it is, as a line of wire.Image
//	execs race                  executes itself while another thread rewrites the argument (B01)
//	execs thread                executes itself from a thread that is not the first
//	execs memfd                 executes a copy of itself that is only in memory (B06)
//	execs deleted FILE          executes FILE after removing it (B06)
//	execs root [ARG...]         becomes user 0 first, for a setuid copy (B40)
//	execs x32                   executes itself by an x32 system call (B41)
//	execs many COUNT FILE ARG   executes FILE "true" N ARG in a new process, as fast as it can, for N from 1 to COUNT (B31)
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/test/vm/wire"
)

func main() {
	runtime.LockOSThread() // other goroutines run on other threads
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "execs:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say how: report, race, thread, memfd, deleted, root, x32 or many")
	}
	switch how := args[0]; {
	case how == "report":
		return json.NewEncoder(os.Stdout).Encode(wire.Image{PID: os.Getpid(), UID: os.Getuid(), EUID: os.Geteuid(), Argv: os.Args})
	case how == "race":
		return race()
	case how == "thread":
		return thread()
	case how == "memfd":
		return memfd()
	case how == "deleted" && len(args) == 2:
		return deleted(args[1])
	case how == "root":
		return root(args[1:])
	case how == "x32":
		return execX32()
	case how == "many" && len(args) == 4:
		return many(args[1], args[2], args[3])
	default:
		return fmt.Errorf("unknown way %q", args)
	}
}

// race flips one argument between two texts of one length for as long as execve takes.
func race() error {
	path, err := unix.BytePtrFromString("/proc/self/exe")
	if err != nil {
		return err
	}
	texts := [2]uint64{0x6c61636f6c2d2d61, 0x65746f6d65722d61} // "a--local", "a-remote"
	shared := [2]uint64{texts[0], 0}
	var started atomic.Bool
	go func() {
		for i := 0; ; i++ {
			atomic.StoreUint64(&shared[0], texts[i&1])
			started.Store(true)
		}
	}()
	for !started.Load() {
	}
	name, how := []byte("execs\x00"), []byte("report\x00")
	argv := []unsafe.Pointer{unsafe.Pointer(&name[0]), unsafe.Pointer(&how[0]), unsafe.Pointer(&shared[0]), nil}
	env := []unsafe.Pointer{nil}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	return fmt.Errorf("execute itself: %w", errno)
}

func thread() error {
	failed := make(chan error)
	go func() {
		failed <- unix.Exec("/proc/self/exe", []string{"execs", "report", "thread"}, nil)
	}()
	return <-failed
}

func memfd() error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	fd, err := unix.MemfdCreate("hidden", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	if _, err := io.Copy(f, self); err != nil {
		return fmt.Errorf("fill memfd: %w", err)
	}
	return execFD(fd, "memfd")
}

func deleted(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return execFD(fd, "deleted")
}

// execFD is execveat with AT_EMPTY_PATH.
func execFD(fd int, arg string) error {
	argv, err := syscall.SlicePtrFromStrings([]string{"execs", "report", arg})
	if err != nil {
		return err
	}
	empty, env := []byte{0}, []*byte{nil}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), uintptr(unsafe.Pointer(&argv[0])),
		uintptr(unsafe.Pointer(&env[0])), unix.AT_EMPTY_PATH, 0)
	return fmt.Errorf("execute descriptor %d: %w", fd, errno)
}

func many(count, file, arg string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return fmt.Errorf("read count: %w", err)
	}
	for i := range n {
		pid, err := syscall.ForkExec(file, []string{"true", strconv.Itoa(i + 1), arg}, nil)
		if err != nil {
			return fmt.Errorf("execute %s: %w", file, err)
		}
		if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
			return fmt.Errorf("wait for %d: %w", pid, err)
		}
	}
	return nil
}

func root(args []string) error {
	if err := unix.Setuid(0); err != nil {
		return fmt.Errorf("become user 0: %w", err)
	}
	return unix.Exec("/proc/self/exe", append([]string{"execs", "report"}, args...), nil)
}
