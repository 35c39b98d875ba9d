package secretfiles

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
	"weir/internal/policy"
)

// maxFound is how many inodes one list may stand for in one mount namespace, and maxForeign in one that guarded processes made.
const (
	maxFound   = 4096
	maxForeign = 256
)

// view is a mount namespace that is being looked at, from the root of one of its processes.
type view struct {
	fd     int
	mounts string // file that lists its mounts
	ask    func(fd int) (inode, error)
	bits   map[string]uint32 // of names
	most   int
	found  nodes
	failed bool // something could not be looked at, though it may be there
}

// viewOf opens the root of a process; 0 is this one's own. The root is held no longer than it takes to look: it would keep
// file systems busy.
func viewOf(pid int, ask func(fd int) (inode, error)) (*view, error) {
	top, proc := "/", "/proc/self"
	if pid != 0 {
		proc = "/proc/" + strconv.Itoa(pid)
		top = proc + "/root"
	}
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", top, err)
	}
	v := &view{fd: fd, mounts: proc + "/mountinfo", ask: ask, most: maxFound}
	if pid != 0 {
		v.most = maxForeign
	}
	return v, nil
}

func (v *view) close() { unix.Close(v.fd) }

// resolve finds what a list stands for. What is not there is passed over.
func (v *view) resolve(files []policy.SecretFile) (nodes, error) {
	v.found, v.bits = nodes{}, map[string]uint32{}
	all, _ := names(files)
	for i, name := range all {
		v.bits[name] = 1 << i
	}
	for _, s := range files {
		if s.Dir == "" {
			continue
		}
		for _, dir := range v.dirs(s.Dir) {
			v.take(dir, s.Name)
		}
		if len(v.found) > v.most {
			return nil, fmt.Errorf("taint.secret_files: %s stands for more than %d files: list their directory, /path/, instead", s.Text, v.most)
		}
	}
	return v.found, nil
}

// dirs are the directories that a pattern stands for.
func (v *view) dirs(pattern string) []string {
	if rest, ok := strings.CutPrefix(pattern, policy.Home); ok {
		return append(v.dirs("/root"+rest), v.dirs("/home/*"+rest)...)
	}
	found := []string{"/"}
	for _, step := range strings.FieldsFunc(pattern, func(r rune) bool { return r == '/' }) {
		var next []string
		for _, dir := range found {
			if !strings.ContainsAny(step, `*?[\`) {
				next = append(next, path.Join(dir, step))
				continue
			}
			for _, name := range v.list(dir) {
				if ok, err := path.Match(step, name); ok && err == nil {
					next = append(next, path.Join(dir, name))
				}
			}
		}
		found = next[:min(len(next), maxFound)]
	}
	return found
}

// take notes the inodes of one directory, or of the files with a name in it.
func (v *view) take(dir, name string) {
	id, real, err := v.inode(dir)
	if err != nil || !id.directory {
		return
	}
	if name == "" {
		v.below(id, real)
		return
	}
	v.found.add(id, filesSecretNode{Names: v.bits[name]}) // also those that come later
	files := []string{name}
	if head, tail, star := strings.Cut(name, "*"); star {
		files = files[:0]
		for _, n := range v.list(dir) {
			if len(n) >= len(head)+len(tail) && strings.HasPrefix(n, head) && strings.HasSuffix(n, tail) {
				files = append(files, n)
			}
		}
	}
	for _, n := range files {
		id, real, err := v.inode(path.Join(dir, n))
		switch {
		case err != nil:
		case !id.directory:
			v.found.add(id, filesSecretNode{Self: 1}) // whatever other name it has
		case name == n:
			v.below(id, real) // a directory, written without its slash
		}
		if len(v.found) > v.most {
			return
		}
	}
}

// below notes a directory and the roots of what is mounted below it.
func (v *view) below(id inode, real string) {
	v.found.add(id, filesSecretNode{Below: 1})
	for _, at := range v.mountsBelow(real) {
		id, _, err := v.inode(at)
		switch {
		case err != nil:
		case id.directory:
			v.found.add(id, filesSecretNode{Below: 1})
		default:
			v.found.add(id, filesSecretNode{Self: 1})
		}
	}
}

// inode is the file at a path, and its path without symbolic links.
func (v *view) inode(at string) (inode, string, error) {
	fd, err := v.open(at, unix.O_PATH)
	if err != nil {
		return inode{}, "", err
	}
	defer unix.Close(fd)
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return inode{}, "", err
	}
	id, err := v.ask(fd)
	return id, real, err
}

// tries are how often what leads through ".." is looked at while somebody renames or mounts things: the kernel begins no new look by itself.
const tries = 128

func (v *view) open(at string, flags uint64) (fd int, err error) {
	at = cmp.Or(strings.TrimPrefix(at, "/"), ".")
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for range tries {
		if fd, err = unix.Openat2(v.fd, at, &how); err != unix.EAGAIN {
			break
		}
	}
	switch err {
	case nil, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG:
	default:
		v.failed = true // what was found there before counts (B92)
	}
	return fd, err
}

func (v *view) list(dir string) []string {
	fd, err := v.open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err != nil {
		return nil
	}
	d := os.NewFile(uintptr(fd), dir)
	defer d.Close()
	found, err := d.Readdirnames(4 * maxFound)
	if err != nil {
		return nil
	}
	return found
}

// mountsBelow lists mount points below a directory.
func (v *view) mountsBelow(dir string) []string {
	data, err := os.ReadFile(v.mounts)
	if err != nil {
		return nil
	}
	return linux.MountsBelow(string(data), dir)
}

// Inode is what the kernel calls the file that a descriptor of this process has open.
func (f *Files) Inode(fd int) (device uint32, number uint64, err error) {
	id, err := f.identify(fd)
	return id.Device, id.Inode, err
}

// Identify is the same, and what tells the file from others that had its number before.
func (f *Files) Identify(fd int) (device uint32, number uint64, generation uint32, err error) {
	id, err := f.identify(fd)
	return id.Device, id.Inode, id.Generation, err
}

func (f *Files) number(fd int) (inode, error) {
	id, err := f.identify(fd)
	return inode{device: id.Device, number: id.Inode, directory: id.Directory != 0}, err
}

// identify asks the kernel which inode a descriptor of this process is.
func (f *Files) identify(fd int) (filesInodeId, error) {
	f.asking.Lock()
	defer f.asking.Unlock()
	var id filesInodeId
	failed, err := f.objects.WeirInode.Run(&ebpf.RunOptions{Context: &filesInodeQuery{Fd: uint32(fd)}})
	if err == nil && failed != 0 {
		err = unix.EBADF
	}
	if err == nil {
		err = f.objects.InodeIds.Lookup(uint32(0), &id)
	}
	if err != nil {
		return filesInodeId{}, fmt.Errorf("ask for the inode of a file: %w", err)
	}
	return id, nil
}
