package linux

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory is the link of an open /proc/N/mem, wherever proc is mounted.
var memory = regexp.MustCompile(`/(\d+)(?:/task/\d+)?/mem$`)

// SocketInodes returns the sockets that a process has open. Threads that share the descriptors of the process (CLONE_FILES, as
// all threads do at first) are read once; one that has unshared its table is read too.
func SocketInodes(pid int) (map[uint64]bool, error) {
	found := map[uint64]bool{}
	err := eachFD(pid, func(_, link string) error {
		number, ok := strings.CutPrefix(link, "socket:[")
		if !ok {
			return nil
		}
		if inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64); err == nil {
			found[inode] = true
		}
		return nil
	})
	return found, err
}

// MemFDs returns, sorted, the other processes whose memory this one has open (/proc/N/mem). An id of another pid namespace is
// translated: where several processes have it in theirs, all of them are returned.
func MemFDs(pid int) ([]int, error) {
	var host unix.Stat_t
	if err := unix.Stat("/proc", &host); err != nil {
		return nil, failed(pid, "descriptors", err)
	}
	found := map[int]bool{}
	err := eachFD(pid, func(path, link string) error {
		match := memory.FindStringSubmatch(link)
		if match == nil {
			return nil
		}
		n, err := strconv.Atoi(match[1])
		if err != nil {
			return nil
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(path, &fs); err != nil || fs.Type != unix.PROC_SUPER_MAGIC {
			return err // another file system is asked nothing: it may be the process's own, and refuse or never answer (B88)
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return err
		}
		if st.Dev != host.Dev {
			return outer(n, found)
		}
		found[n] = true
		return nil
	})
	delete(found, pid)
	return slices.Sorted(maps.Keys(found)), err
}

// outer adds the processes that have the id inner in a pid namespace below this one.
func outer(inner int, found map[int]bool) error {
	pids, err := PIDs()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		ids, err := InnerPIDs(pid)
		if err != nil {
			continue // ended meanwhile
		}
		if slices.Contains(ids[1:], inner) {
			found[pid] = true
		}
	}
	return nil
}

// eachFD calls fn with path and link of every descriptor that a thread of the process has open. What is closed meanwhile is
// passed over.
func eachFD(pid int, fn func(path, link string) error) error {
	tids, err := Threads(pid)
	if err != nil {
		return err
	}
	var read []int
	for _, tid := range tids {
		same := func(other int) bool {
			order, err := kcmp(tid, other, Descriptors)
			return err == nil && order == 0
		}
		if slices.ContainsFunc(read[:min(len(read), 8)], same) { // bounded: a process may have thousands of tables
			continue
		}
		dir := file(pid, "task", strconv.Itoa(tid), "fd")
		fds, err := numbers(dir)
		if err != nil {
			if errors.Is(gone(err), ErrGone) {
				continue
			}
			return failed(pid, "descriptors", err)
		}
		read = append(read, tid)
		for _, fd := range fds {
			path := dir + "/" + strconv.Itoa(fd)
			link, err := os.Readlink(path)
			if err == nil {
				err = fn(path, link)
			}
			if err != nil && !errors.Is(gone(err), ErrGone) {
				return failed(pid, "descriptors", err)
			}
		}
	}
	if len(read) == 0 {
		return failed(pid, "descriptors", ErrGone)
	}
	return nil
}
