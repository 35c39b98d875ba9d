package linux

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

// CgroupRoot is where the version 2 tree is mounted.
const CgroupRoot = "/sys/fs/cgroup"

// ErrNotUnified says that Root is not a version 2 tree.
var ErrNotUnified = errors.New("no cgroup v2 tree at " + CgroupRoot + ": boot with systemd.unified_cgroup_hierarchy=1")

// CheckCgroups returns ErrNotUnified unless a version 2 tree is mounted at Root.
func CheckCgroups() error {
	var st unix.Statfs_t
	if err := unix.Statfs(CgroupRoot, &st); err != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
		return ErrNotUnified
	}
	return nil
}

// CgroupDir is the directory of the cgroup with the given path below Root.
func CgroupDir(path string) string { return filepath.Join(CgroupRoot, filepath.Clean("/"+path)) }

// CgroupID returns the id of the cgroup with the given path below Root: the inode of
// its directory, as programs in the kernel see it.
func CgroupID(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(CgroupDir(path), &st); err != nil {
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

// CgroupPath returns the path below Root of the cgroup with the given id.
func CgroupPath(id uint64) (string, error) {
	root, err := unix.Open(CgroupRoot, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", CgroupRoot, err)
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
	path, ok := strings.CutPrefix(dir, CgroupRoot)
	if !ok {
		return "", fmt.Errorf("find cgroup %d: %s is not below %s", id, dir, CgroupRoot)
	}
	return "/" + strings.TrimPrefix(path, "/"), nil
}

// CgroupOf returns the path below Root of a process's cgroup.
func CgroupOf(pid int) (string, error) {
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

// CgroupWithin says whether path is one of parents or lies below one.
func CgroupWithin(path string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return PathWithin(path, parent) })
}

// CgroupChild returns which child of the innermost of parents a path is, or lies below; false: it lies below none.
func CgroupChild(path string, parents []string) (string, bool) {
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

// CgroupSlice returns the path of a systemd slice: a-b.slice is in a.slice, and -.slice is the root (systemd.slice(5)).
func CgroupSlice(name string) (string, error) {
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

// CgroupProcesses returns the processes of one cgroup, without those of its children. A threaded one has single threads (B58): it returns the
// processes that these belong to.
func CgroupProcesses(path string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(CgroupDir(path), "cgroup.procs"))
	threads := errors.Is(err, unix.EOPNOTSUPP)
	if threads {
		data, err = os.ReadFile(filepath.Join(CgroupDir(path), "cgroup.threads"))
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

// CgroupTree returns the processes of a cgroup and of all cgroups below it. What
// disappears meanwhile is left out.
func CgroupTree(path string) ([]int, error) {
	pids, err := CgroupProcesses(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if unix.Stat(CgroupDir(path), &st) == nil && st.Nlink == leafLinks {
		return pids, nil
	}
	children, err := CgroupChildren(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for child := range children {
		below, err := CgroupTree(child)
		if err != nil {
			return nil, err
		}
		pids = append(pids, below...)
	}
	return pids, nil
}

// leafLinks is how many links the directory of a cgroup without children has: kernfs counts two and one for each child.
const leafLinks = 2

// CgroupChildren returns the ids of a cgroup's direct children, by path. It asks for none of them by itself: there may be hundreds.
func CgroupChildren(path string) (map[string]uint64, error) {
	children := map[string]uint64{}
	prefix := strings.TrimSuffix(filepath.Clean("/"+path), "/") + "/"
	err := eachEntry(CgroupDir(path), func(e entry) {
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

// MakeCgroup makes a cgroup, with its parents, and returns its id.
func MakeCgroup(path string) (uint64, error) {
	if err := os.MkdirAll(CgroupDir(path), 0o755); err != nil {
		return 0, fmt.Errorf("make cgroup %s: %w", path, err)
	}
	return CgroupID(path)
}

// RemoveCgroup removes a cgroup that has neither processes nor children. One that is
// gone already is no error.
func RemoveCgroup(path string) error {
	err := unix.Rmdir(CgroupDir(path))
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove cgroup %s: %w", path, err)
	}
	return nil
}

// RemoveCgroupTree is Remove with all that is below. Its error wraps EBUSY if a process is there.
func RemoveCgroupTree(path string) error {
	var dirs []string
	err := filepath.WalkDir(CgroupDir(path), func(dir string, e os.DirEntry, err error) error {
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
		if err := RemoveCgroup(strings.TrimPrefix(dir, CgroupRoot)); err != nil {
			return err
		}
	}
	return nil
}

// MoveToCgroup moves a process, with all its threads, into a cgroup.
func MoveToCgroup(path string, pid int) error {
	file := filepath.Join(CgroupDir(path), "cgroup.procs")
	if err := os.WriteFile(file, strconv.AppendInt(nil, int64(pid), 10), 0); err != nil {
		return fmt.Errorf("move process %d to cgroup %s: %w", pid, path, err)
	}
	return nil
}

// FreezeCgroup freezes all processes of a cgroup and those below it, or lets them go on. It does not wait until they stand still:
// Frozen tells.
func FreezeCgroup(path string, freeze bool) error {
	value := "0"
	if freeze {
		value = "1"
	}
	err := os.WriteFile(filepath.Join(CgroupDir(path), "cgroup.freeze"), []byte(value), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) || err != nil && freeze {
		return fmt.Errorf("freeze cgroup %s (%s): %w", path, value, err)
	}
	return nil
}

// CgroupToFreeze says whether the cgroup itself is to be frozen, whatever is above it.
func CgroupToFreeze(path string) bool {
	data, err := os.ReadFile(filepath.Join(CgroupDir(path), "cgroup.freeze"))
	return err == nil && bytes.HasPrefix(data, []byte("1"))
}

// CgroupFrozen says whether all processes of the cgroup stand still.
func CgroupFrozen(path string) bool { return has(path, "frozen 1") }

// CgroupPopulated says whether any process is in the cgroup or below it; a cgroup
// that is gone is empty.
func CgroupPopulated(path string) bool {
	return has(path, "populated 1")
}

// has says whether cgroup.events has a line.
func has(path, line string) bool {
	data, err := os.ReadFile(filepath.Join(CgroupDir(path), "cgroup.events"))
	return err == nil && bytes.Contains(data, []byte(line))
}
