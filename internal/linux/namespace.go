package linux

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Namespace returns the inode of one of the process's namespaces: net, mnt, pid, user, cgroup, ipc, uts or time.
func Namespace(pid int, kind string) (uint64, error) {
	var st unix.Stat_t
	if err := byThread(pid, func(id int) error { return unix.Stat(file(id, "ns", kind), &st) }); err != nil {
		return 0, failed(pid, kind+" namespace", err)
	}
	return st.Ino, nil
}

// Living is the id of a thread of the process that lives: the process's own, or another one where its first thread has ended, which then
// has no namespaces, root and memory any more (B57). Below /proc it stands for the process.
func Living(pid int) int {
	ended := func(id int) bool {
		s, err := ReadStat(id)
		return err == nil && (s.State == 'Z' || s.State == 'X')
	}
	if !ended(pid) {
		return pid
	}
	tids, _ := Threads(pid)
	for _, tid := range tids {
		if !ended(tid) {
			return tid
		}
	}
	return pid
}

// byThread has something read of a process by its id, and where that fails by another thread's.
func byThread(pid int, read func(id int) error) error {
	err := read(pid)
	if err == nil {
		return nil
	}
	if id := Living(pid); id != pid {
		return read(id)
	}
	return err
}

// Namespaces returns the namespaces of a kind that processes are in, each with the oldest of those: who comes later, such as one that was
// started with a root of its own, must not stand for the others. Where its first thread has ended, the id is that of another. Processes
// that are gone are in none.
func Namespaces(pids []int, kind string) map[uint64]int {
	found, begun := map[uint64]int{}, map[uint64]uint64{}
	for _, pid := range pids {
		ns, err := Namespace(pid, kind)
		if err != nil {
			continue
		}
		s, err := ReadStat(pid)
		if err != nil {
			continue
		}
		if first, ok := begun[ns]; !ok || s.Start < first {
			found[ns], begun[ns] = Living(pid), s.Start
		}
	}
	return found
}

// EachNamespace calls f with one process of every namespace of a kind that processes are in. Where f finds it gone, which
// its error wraps ErrGone for, it is called with another one. The other errors are joined.
func EachNamespace(pids []int, kind string, f func(pid int) error) error {
	done := map[uint64]bool{}
	var errs []error
	for _, pid := range pids {
		ns, err := Namespace(pid, kind)
		if err != nil || done[ns] {
			continue
		}
		if err = f(pid); errors.Is(err, ErrGone) {
			continue
		}
		done[ns] = true
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// OpenNetwork opens the network namespace of a process. The caller closes it. The error wraps ErrGone if the process has ended.
func OpenNetwork(pid int) (*os.File, error) {
	var ns *os.File
	err := byThread(pid, func(id int) (err error) {
		ns, err = os.Open(file(id, "ns", "net"))
		return err
	})
	if err != nil {
		return nil, failed(pid, "network namespace", err)
	}
	return ns, nil
}

// OpenRoot opens the root directory that a process sees, to resolve names in. The caller closes it. The error wraps ErrGone
// if the process has ended.
func OpenRoot(pid int) (*os.File, error) {
	var root *os.File
	err := byThread(pid, func(id int) (err error) {
		root, err = os.OpenFile(file(id, "root"), unix.O_PATH|unix.O_DIRECTORY, 0)
		return err
	})
	if err != nil {
		return nil, failed(pid, "root directory", err)
	}
	return root, nil
}

// WorkingDir is the directory that a process works in, as the process names it; empty where that cannot be told.
func WorkingDir(pid int) string {
	dir, err := os.Readlink(file(pid, "cwd"))
	if err != nil || !strings.HasPrefix(dir, "/") { // (unreachable)
		return ""
	}
	root, err := os.Readlink(file(pid, "root"))
	if err != nil {
		return ""
	}
	if root != "/" {
		below, ok := strings.CutPrefix(dir, root)
		if !ok || below != "" && below[0] != '/' {
			return ""
		}
		dir = "/" + strings.TrimPrefix(below, "/")
	}
	return dir
}

// InNetwork runs f on a thread of its own in a network namespace. Sockets that it makes stay there.
func InNetwork(network *os.File, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, in whatever namespace
		if unix.Gettid() == os.Getpid() {
			done <- InNetwork(network, f) // on another: the process's first thread never ends
			runtime.UnlockOSThread()
			return
		}
		if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
