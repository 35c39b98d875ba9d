package procfs

import (
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

// Namespaces returns the namespaces of a kind that processes are in, each with one of them. Processes that are gone are in none.
func Namespaces(pids []int, kind string) map[uint64]int {
	found := map[uint64]int{}
	for _, pid := range pids {
		if ns, err := Namespace(pid, kind); err == nil {
			found[ns] = pid
		}
	}
	return found
}

// Network opens the network namespace of a process. The caller closes it.
func Network(pid int) (*os.File, error) {
	ns, err := os.Open(file(pid, "ns", "net"))
	if err != nil {
		return nil, fmt.Errorf("open network namespace of process %d: %w", pid, err)
	}
	return ns, nil
}

// Within runs f on a thread of its own in a network namespace. Sockets that it makes stay there.
func Within(network *os.File, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, in whatever namespace
		if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
