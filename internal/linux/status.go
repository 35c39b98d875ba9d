package linux

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Tracer returns a process that traces any thread of this one, 0 if there is none.
func Tracer(pid int) (int, error) {
	threads, err := Threads(pid)
	if err != nil {
		return 0, err
	}
	for _, tid := range threads {
		fields, err := status(tid, "TracerPid")
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return 0, err
		}
		tracer, err := strconv.Atoi(fields[0])
		if err != nil {
			return 0, failed(pid, "tracer", err)
		}
		if tracer != 0 {
			return tracer, nil
		}
	}
	return 0, nil
}

// UID returns the real user id of a process, in the host's user namespace.
func UID(pid int) (uint32, error) {
	fields, err := status(pid, "Uid")
	if err != nil {
		return 0, err
	}
	uid, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return 0, failed(pid, "user id", err)
	}
	return uint32(uid), nil
}

// Ignores tells whether a process ignores a signal.
func Ignores(pid int, signal unix.Signal) bool {
	fields, err := status(pid, "SigIgn")
	return err == nil && mask(fields)&(1<<(signal-1)) != 0
}

// mask is one of signals, as every kernel shows it in hex.
func mask(fields []string) uint64 {
	n, _ := strconv.ParseUint(strings.Join(fields, ""), 16, 64)
	return n
}

// InnerPIDs returns the process's ids in the pid namespaces that it is in, this one's first.
func InnerPIDs(pid int) ([]int, error) {
	fields, err := status(pid, "NSpid")
	if err != nil {
		return nil, err
	}
	pids := make([]int, len(fields))
	for i, field := range fields {
		if pids[i], err = strconv.Atoi(field); err != nil {
			return nil, failed(pid, "inner ids", err)
		}
	}
	return pids, nil
}

// Signals are what waits for the threads of a process. Bit n-1 of a mask stands for signal n.
type Signals struct {
	Own     uint64 // pending for single threads
	Handled uint64 // that a handler will run for, be they for a thread or the process
	Stopped bool   // a thread has stopped
}

// PendingSignals returns the signals of a process.
func PendingSignals(pid int) (Signals, error) {
	var all Signals
	tids, err := Threads(pid)
	if err != nil {
		return all, err
	}
	for _, tid := range tids {
		lines, err := statusLines(file(pid, "task", strconv.Itoa(tid), "status"))
		if err != nil {
			continue // the thread has ended
		}
		own := mask(lines["SigPnd"])
		all.Own |= own
		all.Handled |= (own | mask(lines["ShdPnd"])) & mask(lines["SigCgt"]) &^ mask(lines["SigBlk"])
		all.Stopped = all.Stopped || slices.Contains(lines["State"], "T")
	}
	return all, nil
}

// status returns the fields, one or more, of a line of /proc/PID/status.
func status(pid int, key string) ([]string, error) {
	lines, err := statusLines(file(pid, "status"))
	if err == nil && len(lines[key]) == 0 {
		err = fmt.Errorf("no line %s", key)
	}
	if err != nil {
		return nil, failed(pid, "status", err)
	}
	return lines[key], nil
}

// statusLines returns the fields of each line of a status file. The name of the process stands in it with newlines escaped, so it
// cannot make up a line.
func statusLines(path string) (map[string][]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, ":")
		lines[name] = strings.Fields(rest)
	}
	return lines, nil
}

// Executable is the executable of a process.
type Executable struct {
	Path          string // as the kernel shows it, without " (deleted)"
	Device, Inode uint64
	Memfd         bool
	Deleted       bool // it has no name any more
}

// ExecutableOf returns what a process executes. A kernel thread has nothing: an error that wraps ErrGone.
func ExecutableOf(pid int) (Executable, error) {
	// One descriptor for both questions, so that an exec between them cannot mix two files.
	fd, err := unix.Open(file(pid, "exe"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return Executable{}, failed(pid, "executable", err)
	}
	defer unix.Close(fd)
	// what is known of it: its file system may be the process's own, and never answer (B86)
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO|unix.STATX_NLINK, &st); err != nil {
		return Executable{}, failed(pid, "executable", err)
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return Executable{}, failed(pid, "executable", err)
	}
	f := Executable{Path: path, Device: unix.Mkdev(st.Dev_major, st.Dev_minor), Inode: st.Ino, Deleted: st.Nlink == 0}
	if f.Deleted {
		f.Path = strings.TrimSuffix(path, " (deleted)")
	}
	f.Memfd = f.Deleted && strings.HasPrefix(path, "/memfd:")
	return f, nil
}

// Cmdline returns at most most bytes of what the process shows as its arguments, each ended by a NUL, and whether there was
// more. The process can change it at any time.
func Cmdline(pid, most int) ([]byte, bool, error) {
	return readSome(pid, "cmdline", most)
}

// Environ is Cmdline for the environment that the process started with.
func Environ(pid, most int) ([]byte, bool, error) {
	return readSome(pid, "environ", most)
}

// reading are those that wait for a process's memory, which it can hold locked for ever (B86).
var reading = &Slots{All: 64, Own: 64} // whose it is, its id does not say

func readSome(pid int, what string, most int) ([]byte, bool, error) {
	type some struct {
		data []byte
		err  error
	}
	read, ok := Soon(reading, "", time.Second, func() (s some) {
		f, err := os.Open(file(pid, what))
		if err != nil {
			return some{err: err}
		}
		defer f.Close()
		s.data, s.err = io.ReadAll(io.LimitReader(f, int64(most)+1))
		return s
	})
	if !ok {
		read.err = errors.New("its memory is locked, or too many are waited for")
	}
	if read.err != nil {
		return nil, false, failed(pid, what, read.err)
	}
	if len(read.data) > most {
		return bytes.Clone(read.data[:most]), true, nil
	}
	return read.data, false, nil
}
