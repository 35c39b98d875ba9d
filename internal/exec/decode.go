package exec

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
	"weir/internal/event"
)

// Sizes of exec.bpf.c: a text that fills its room may have been cut there.
const maxName = 256

// Command is one execution inside a guarded container.
type Command struct {
	Container uint64 // id of the cgroup that is the container, 0 right at a guarded parent
	Cgroup    uint64 // id of the process's own cgroup
	Taint     uint32 // bits of package taint at that moment
	Time      uint64 // ns since boot
	MountNS   uint64 // inode of the mount namespace; 0: not known
	Process   event.Process
}

// errRecord means that a record from the ring is not what the probe writes.
var errRecord = errors.New("malformed exec record")

// decode makes a command of a record: the header, then texts of the lengths that it gives.
func (n *names) decode(record []byte) (Command, error) {
	var h execExec
	if err := bpfobj.Record(&h, record); err != nil {
		return Command{}, fmt.Errorf("%w: %d bytes", errRecord, len(record))
	}
	var texts [5][]byte
	rest := record[unsafe.Sizeof(h):]
	for i, length := range []uint32{h.PathLength, h.FilenameLength, h.InterpLength, h.ArgvLength, h.EnvLength} {
		if uint64(length) > uint64(len(rest)) {
			return Command{}, fmt.Errorf("%w: part %d of %d bytes, %d are left", errRecord, i, length, len(rest))
		}
		texts[i], rest = rest[:length], rest[length:]
	}
	if h.Parents > uint32(len(h.Parent)) {
		return Command{}, fmt.Errorf("%w: %d parents", errRecord, h.Parents)
	}
	p := event.Process{
		PID:      int(h.Tgid),
		Start:    h.Start,
		UID:      h.Uid,
		Comm:     bpfobj.Text(h.Comm[:]),
		Exe:      exeFile(&h, string(texts[0])),
		ArgvHash: h.ArgvHash,
		Env:      n.find(texts[4]),
		EnvCut:   h.Flags&execExecFlagEXEC_ENV_CUT != 0,
		NetNS:    uint64(h.Netns),
		PidNS:    uint64(h.Pidns),
	}
	whole := false
	p.Argv, whole = arguments(string(texts[3]))
	p.Truncated = !whole || h.Flags&execExecFlagEXEC_ARGV_CUT != 0
	if h.Flags&execExecFlagEXEC_SCRIPT != 0 {
		p.Script, p.Interp = text(string(texts[1])), text(string(texts[2]))
	}
	if h.Parents > 0 {
		p.Ancestry = make([]event.Ancestor, 0, h.Parents)
	}
	for _, parent := range h.Parent[:h.Parents] {
		if parent.Tgid != 0 { // the idle task is nobody's parent but the kernel's
			p.Ancestry = append(p.Ancestry, event.Ancestor{PID: int(parent.Tgid), Start: parent.Start, Comm: bpfobj.Text(parent.Comm[:])})
		}
	}
	return Command{Container: h.Container, Cgroup: h.Cgroup, Taint: h.Taint, Time: h.Time, MountNS: uint64(h.Mntns), Process: p}, nil
}

// exeFile is nil if the kernel knew no file.
func exeFile(h *execExec, components string) *event.File {
	if h.Inode == 0 && components == "" {
		return nil
	}
	cut := h.Flags&execExecFlagEXEC_PATH_CUT != 0
	deleted := h.Flags&execExecFlagEXEC_UNLINKED != 0
	path := joinPath(components, cut)
	return &event.File{
		Path:    path,
		Device:  StatDevice(h.Device),
		Inode:   h.Inode,
		Deleted: deleted,
		Memfd:   deleted && isMemfd(path),
	}
}

// isMemfd: what memfd_create makes has no directory, and no link from the start.
func isMemfd(path string) bool {
	return strings.HasPrefix(path, "/memfd:")
}

// joinPath turns "curl/bin/usr/" into "/usr/bin/curl"; what is missing on the left is shown as "…".
func joinPath(components string, cut bool) string {
	path := make([]byte, 0, len(components)+len("…/"))
	if cut {
		path = append(path, "…"...)
	}
	rest := strings.TrimSuffix(components, "/")
	for more := true; more; {
		at := strings.LastIndexByte(rest, '/')
		path = append(append(path, '/'), rest[at+1:]...)
		if more = at >= 0; more {
			rest = rest[:at]
		}
	}
	return string(path)
}

// StatDevice converts the kernel's own dev_t, 12 bits major and 20 bits minor, to what stat(2) gives.
func StatDevice(dev uint32) uint64 {
	return unix.Mkdev(dev>>20, dev&(1<<20-1))
}

// arguments splits argv and tells whether the last one is complete.
func arguments(argv string) ([]string, bool) {
	if argv == "" {
		return nil, false
	}
	trimmed, whole := strings.CutSuffix(argv, "\x00")
	return strings.Split(trimmed, "\x00"), whole
}

// text is a string of the kernel that ends with a NUL; one that fills its room may go on.
func text(s string) string {
	whole, _, _ := strings.Cut(s, "\x00")
	if len(s) >= maxName {
		whole += "…"
	}
	return whole
}
