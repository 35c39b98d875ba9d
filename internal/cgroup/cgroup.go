package cgroup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is where the version 2 tree is mounted.
const Root = "/sys/fs/cgroup"

// ErrNotUnified says that Root is not a version 2 tree.
var ErrNotUnified = errors.New("no cgroup v2 tree at " + Root + ": boot with systemd.unified_cgroup_hierarchy=1")

// Check returns ErrNotUnified unless a version 2 tree is mounted at Root.
func Check() error {
	var st unix.Statfs_t
	if err := unix.Statfs(Root, &st); err != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
		return ErrNotUnified
	}
	return nil
}

// Dir is the directory of the cgroup with the given path below Root.
func Dir(path string) string { return filepath.Join(Root, filepath.Clean("/"+path)) }

// ID returns the id of the cgroup with the given path below Root: the inode of
// its directory, as programs in the kernel see it.
func ID(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(Dir(path), &st); err != nil {
		return 0, fmt.Errorf("find cgroup %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, fmt.Errorf("find cgroup %s: not a directory", path)
	}
	return st.Ino, nil
}

// fileHandleKernfs is FILEID_KERNFS of the kernel's exportfs.h: a handle that
// holds nothing but the id.
const fileHandleKernfs = 0xfe

// Path returns the path below Root of the cgroup with the given id.
func Path(id uint64) (string, error) {
	root, err := unix.Open(Root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", Root, err)
	}
	defer unix.Close(root)
	handle := unix.NewFileHandle(fileHandleKernfs, binary.NativeEndian.AppendUint64(nil, id))
	fd, err := unix.OpenByHandleAt(root, handle, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("find cgroup %d: %w", id, err)
	}
	defer unix.Close(fd)
	dir, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "", fmt.Errorf("find cgroup %d: %w", id, err)
	}
	path, ok := strings.CutPrefix(dir, Root)
	if !ok {
		return "", fmt.Errorf("find cgroup %d: %s is not below %s", id, dir, Root)
	}
	return "/" + strings.TrimPrefix(path, "/"), nil
}

// Of returns the path below Root of a process's cgroup.
func Of(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", err
	}
	if path, ok := unified(data); ok {
		return path, nil
	}
	return "", fmt.Errorf("process %d is in no cgroup v2", pid)
}

// unified finds the path in /proc/PID/cgroup. That of a process that has ended may be removed, and then ends in " (deleted)"; but a cgroup
// may be called so, too: nothing is cut off (B65).
func unified(lines []byte) (string, bool) {
	for line := range bytes.Lines(lines) {
		if path, ok := bytes.CutPrefix(bytes.TrimRight(line, "\n"), []byte("0::")); ok {
			return string(path), true
		}
	}
	return "", false
}

// Below says whether path is parent or lies below it.
func Below(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, strings.TrimSuffix(parent, "/")+"/")
}

// Within says whether path is one of parents or lies below one.
func Within(path string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return Below(path, parent) })
}

// Child returns which child of the innermost of parents a path is, or lies below; false: it lies below none.
func Child(path string, parents []string) (string, bool) {
	inner := ""
	for _, parent := range parents {
		if parent = strings.TrimSuffix(parent, "/") + "/"; strings.HasPrefix(path, parent) && len(path) > len(parent) && len(parent) > len(inner) {
			inner = parent
		}
	}
	if inner == "" {
		return "", false
	}
	first, _, _ := strings.Cut(path[len(inner):], "/")
	return inner + first, true
}

// Slice returns the path of a systemd slice: a-b.slice is in a.slice, and -.slice is the root (systemd.slice(5)).
func Slice(name string) (string, error) {
	stem, ok := strings.CutSuffix(name, ".slice")
	if ok && stem == "-" {
		return "/", nil
	}
	path, above := "", ""
	for part := range strings.SplitSeq(stem, "-") {
		if !ok || part == "" || strings.ContainsAny(part, "/\x00") {
			return "", fmt.Errorf("%q is not the name of a slice, such as user.slice or a-b.slice", name)
		}
		above += part
		path += "/" + above + ".slice"
		above += "-"
	}
	return path, nil
}

// Processes returns the processes of one cgroup, without those of its children. A threaded one has single threads (B58): it returns the
// processes that these belong to.
func Processes(path string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(Dir(path), "cgroup.procs"))
	threads := errors.Is(err, unix.EOPNOTSUPP)
	if threads {
		data, err = os.ReadFile(filepath.Join(Dir(path), "cgroup.threads"))
	}
	if err != nil {
		return nil, fmt.Errorf("list processes of cgroup %s: %w", path, err)
	}
	var pids []int
	for field := range bytes.FieldsSeq(data) {
		if pid, err := strconv.Atoi(string(field)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	if threads {
		pids = processes(pids)
	}
	return pids, nil
}

// processes are those that threads belong to, each once. A thread that has ended meanwhile belongs to none.
func processes(tids []int) []int {
	var pids []int
	for _, tid := range tids {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
		if err != nil {
			continue
		}
		_, rest, _ := bytes.Cut(data, []byte("\nTgid:\t")) // a name cannot make up a line
		number, _, _ := bytes.Cut(rest, []byte("\n"))
		if pid, err := strconv.Atoi(string(number)); err == nil && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Tree returns the processes of a cgroup and of all cgroups below it. What
// disappears meanwhile is left out.
func Tree(path string) ([]int, error) {
	pids, err := Processes(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if unix.Stat(Dir(path), &st) == nil && st.Nlink == leafLinks {
		return pids, nil
	}
	children, err := Children(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for child := range children {
		below, err := Tree(child)
		if err != nil {
			return nil, err
		}
		pids = append(pids, below...)
	}
	return pids, nil
}

// leafLinks is how many links the directory of a cgroup without children has: kernfs counts two and one for each child.
const leafLinks = 2

// Children returns the ids of a cgroup's direct children, by path. It asks for none of them by itself: there may be hundreds.
func Children(path string) (map[string]uint64, error) {
	children := map[string]uint64{}
	prefix := strings.TrimSuffix(filepath.Clean("/"+path), "/") + "/"
	err := eachEntry(Dir(path), func(e entry) {
		if e.dir && e.name != "." && e.name != ".." {
			children[prefix+e.name] = e.inode
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list children of cgroup %s: %w", path, err)
	}
	return children, nil
}

func eachEntry(dir string, f func(entry)) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	entries := make([]byte, 1<<15)
	for {
		n, err := unix.ReadDirent(fd, entries)
		if n == 0 || err != nil {
			return err
		}
		for rest := entries[:n]; len(rest) > 0; {
			e := entryOf(rest)
			f(e)
			rest = rest[e.length:]
		}
	}
}

// entry is one of a directory's.
type entry struct {
	inode  uint64
	dir    bool
	name   string
	length int // of the record
}

// entryOf reads the first of some records as getdents64(2) describes them.
func entryOf(record []byte) entry {
	const length, kind, name = 16, 18, 19 // where they are
	e := entry{inode: binary.NativeEndian.Uint64(record), dir: record[kind] == unix.DT_DIR, length: int(binary.NativeEndian.Uint16(record[length:]))}
	text, _, _ := bytes.Cut(record[name:e.length], []byte{0})
	e.name = string(text)
	return e
}

// Make makes a cgroup, with its parents, and returns its id.
func Make(path string) (uint64, error) {
	if err := os.MkdirAll(Dir(path), 0o755); err != nil {
		return 0, fmt.Errorf("make cgroup %s: %w", path, err)
	}
	return ID(path)
}

// Remove removes a cgroup that has neither processes nor children. One that is
// gone already is no error.
func Remove(path string) error {
	err := unix.Rmdir(Dir(path))
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove cgroup %s: %w", path, err)
	}
	return nil
}

// RemoveTree is Remove with all that is below. Its error wraps EBUSY if a process is there.
func RemoveTree(path string) error {
	var dirs []string
	err := filepath.WalkDir(Dir(path), func(dir string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, dir)
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list cgroup %s: %w", path, err)
	}
	for _, dir := range slices.Backward(dirs) {
		if err := Remove(strings.TrimPrefix(dir, Root)); err != nil {
			return err
		}
	}
	return nil
}

// Move moves a process, with all its threads, into a cgroup.
func Move(path string, pid int) error {
	file := filepath.Join(Dir(path), "cgroup.procs")
	if err := os.WriteFile(file, strconv.AppendInt(nil, int64(pid), 10), 0); err != nil {
		return fmt.Errorf("move process %d to cgroup %s: %w", pid, path, err)
	}
	return nil
}

// Freeze freezes all processes of a cgroup and those below it, or lets them go on. It does not wait until they stand still:
// Frozen tells.
func Freeze(path string, freeze bool) error {
	value := "0"
	if freeze {
		value = "1"
	}
	err := os.WriteFile(filepath.Join(Dir(path), "cgroup.freeze"), []byte(value), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) || err != nil && freeze {
		return fmt.Errorf("freeze cgroup %s (%s): %w", path, value, err)
	}
	return nil
}

// ToFreeze says whether the cgroup itself is to be frozen, whatever is above it.
func ToFreeze(path string) bool {
	data, err := os.ReadFile(filepath.Join(Dir(path), "cgroup.freeze"))
	return err == nil && bytes.HasPrefix(data, []byte("1"))
}

// Frozen says whether all processes of the cgroup stand still.
func Frozen(path string) bool { return has(path, "frozen 1") }

// Populated says whether any process is in the cgroup or below it; a cgroup
// that is gone is empty.
func Populated(path string) bool {
	return has(path, "populated 1")
}

// has says whether cgroup.events has a line.
func has(path, line string) bool {
	data, err := os.ReadFile(filepath.Join(Dir(path), "cgroup.events"))
	return err == nil && bytes.Contains(data, []byte(line))
}
