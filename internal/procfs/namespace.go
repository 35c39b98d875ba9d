package procfs

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Namespace returns the inode of one of the process's namespaces: net, mnt, pid, user, cgroup, ipc, uts or time.
func Namespace(pid int, kind string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(file(pid, "ns", kind), &st); err != nil {
		return 0, failed(pid, kind+" namespace", err)
	}
	return st.Ino, nil
}

// Namespaces returns the namespaces of a kind that processes are in, each with the oldest of those: who comes later, such as one that was
// started with a root of its own, must not stand for the others. Processes that are gone are in none.
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
			found[ns], begun[ns] = pid, s.Start
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

// Network opens the network namespace of a process. The caller closes it. The error wraps ErrGone if the process has ended.
func Network(pid int) (*os.File, error) {
	ns, err := os.Open(file(pid, "ns", "net"))
	if err != nil {
		return nil, failed(pid, "network namespace", err)
	}
	return ns, nil
}

// OpenRoot opens the root directory that a process sees, to resolve names in. The caller closes it. The error wraps ErrGone
// if the process has ended.
func OpenRoot(pid int) (*os.File, error) {
	root, err := os.OpenFile(file(pid, "root"), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, failed(pid, "root directory", err)
	}
	return root, nil
}

// Within runs f on a thread of its own in a network namespace. Sockets that it makes stay there.
func Within(network *os.File, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, in whatever namespace
		if unix.Gettid() == os.Getpid() {
			done <- Within(network, f) // on another: the process's first thread never ends
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
