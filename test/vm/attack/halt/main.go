// Halt lets a process run until one of its threads comes to a place, and keeps that thread there, for as long as the process lives:
//
//	halt PID PLACE
//
// It prints "ready" once it sees all threads, and "halted" with what the thread did. A place is one of
//
//	mkdir:PART          a directory was made whose path has PART in it
//	write:PART:VALUE    VALUE, or anything, was written to a file whose path has PART in it
//	writing:PART:VALUE  it is about to be
//	run                 a BPF program was run by hand
//	map:NAME:COMMAND    a map was written, or an entry was deleted or taken out of it
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

func main() {
	runtime.LockOSThread() // who traces is one thread
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "halt:", err)
		os.Exit(2)
	}
}

// Commands of bpf(2).
var commands = map[string]uint64{"update": 2, "delete": 3, "take": 21}

const bpfRun = 10

type tracer struct {
	pid    int
	place  []string
	mem    *os.File
	calls  map[int]call      // by thread
	opened map[uint64]string // descriptors of files that the place is about
	maps   map[uint64]string // names of maps, by descriptor
}

type call struct {
	nr   uint64
	args [6]uint64
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: halt PID PLACE")
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	t := &tracer{pid: pid, place: strings.Split(args[1], ":"), calls: map[int]call{}, opened: map[uint64]string{}, maps: map[uint64]string{}}
	if t.mem, err = os.Open(fmt.Sprintf("/proc/%d/mem", pid)); err != nil {
		return err
	}
	defer t.mem.Close()
	if err := t.seize(); err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		var st unix.WaitStatus
		tid, err := unix.Wait4(-1, &st, unix.WALL, nil)
		if errors.Is(err, unix.ECHILD) {
			return nil // it has ended
		}
		if errors.Is(err, unix.EINTR) || err == nil && !st.Stopped() {
			continue
		}
		if err != nil {
			return err
		}
		signal := 0
		switch {
		case st.StopSignal() == unix.SIGTRAP|0x80:
			if what := t.at(tid); what != "" {
				fmt.Println("halted", what)
				t.place = []string{""}
				continue // this one stays
			}
		case st>>16 == 0:
			signal = int(st.StopSignal())
		}
		if err := unix.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
}

// seize takes hold of all threads, until none is new.
func (t *tracer) seize() error {
	seen := map[int]bool{}
	for more := true; more; {
		more = false
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", t.pid))
		if err != nil {
			return err
		}
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil || seen[tid] {
				continue
			}
			seen[tid], more = true, true
			const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE
			_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, options, 0, 0)
			if errno == unix.ESRCH || errno == unix.EPERM && len(seen) > 1 {
				continue // gone, or there already as another's child
			}
			if errno != 0 {
				return fmt.Errorf("seize %d: %w", tid, errno)
			}
			if err := unix.PtraceInterrupt(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("seize %d: %w", tid, err)
			}
		}
	}
	return nil
}

// info is struct ptrace_syscall_info.
type info struct {
	op    uint8
	_     [3]uint8
	_     uint32
	_, _  uint64
	words [8]uint64
}

const (
	entry = 1
	exit  = 2
)

// at says what a thread did if it is at the place.
func (t *tracer) at(tid int) string {
	var i info
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(i), uintptr(unsafe.Pointer(&i)), 0, 0)
	if errno != 0 {
		return ""
	}
	if i.op == entry {
		c := call{nr: i.words[0], args: [6]uint64(i.words[1:7])}
		t.calls[tid] = c
		if t.place[0] == "writing" {
			return t.writes(c)
		}
		return ""
	}
	c, known := t.calls[tid]
	delete(t.calls, tid)
	if i.op != exit || !known || int64(i.words[0]) < 0 {
		return ""
	}
	switch c.nr {
	case unix.SYS_MKDIRAT:
		if path := t.text(c.args[1]); t.place[0] == "mkdir" && strings.Contains(path, t.place[1]) {
			return path
		}
	case unix.SYS_OPENAT:
		fd := i.words[0]
		delete(t.opened, fd)
		delete(t.maps, fd)
		if strings.HasPrefix(t.place[0], "writ") {
			if path := t.text(c.args[1]); strings.Contains(path, t.place[1]) {
				t.opened[fd] = path
			}
		}
	case unix.SYS_CLOSE:
		delete(t.opened, c.args[0])
		delete(t.maps, c.args[0])
	case unix.SYS_WRITE:
		if t.place[0] == "write" {
			return t.writes(c)
		}
	case unix.SYS_BPF:
		if t.place[0] == "run" && c.args[0] == bpfRun {
			return "run"
		}
		if t.place[0] == "map" && c.args[0] == commands[t.place[2]] && t.mapOf(c.args[1]) == t.place[1] {
			return t.place[1]
		}
	}
	return ""
}

// writes says whether a call writes what the place says.
func (t *tracer) writes(c call) string {
	path := t.opened[c.args[0]]
	if c.nr != unix.SYS_WRITE || path == "" {
		return ""
	}
	value := make([]byte, min(c.args[2], 32))
	if _, err := t.mem.ReadAt(value, int64(c.args[1])); err != nil || t.place[2] != "" && string(value) != t.place[2] {
		return ""
	}
	return path + " " + string(value)
}

func (t *tracer) text(at uint64) string {
	text := make([]byte, 4096)
	n, _ := t.mem.ReadAt(text, int64(at)) // as much as is there
	s, _, _ := strings.Cut(string(text[:n]), "\x00")
	return s
}

// mapOf is the name of the map that a call is about: its descriptor comes first in the attributes.
func (t *tracer) mapOf(attr uint64) string {
	b := make([]byte, 4)
	if _, err := t.mem.ReadAt(b, int64(attr)); err != nil {
		return ""
	}
	fd := uint64(binary.NativeEndian.Uint32(b))
	if name, known := t.maps[fd]; known {
		return name
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", t.pid, fd))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		rest, of := strings.CutPrefix(line, "map_id:")
		id, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 32)
		if !of || err != nil {
			continue
		}
		m, err := ebpf.NewMapFromID(ebpf.MapID(id))
		if err != nil {
			return ""
		}
		defer m.Close()
		if info, err := m.Info(); err == nil {
			t.maps[fd] = info.Name
			return info.Name
		}
	}
	return ""
}
