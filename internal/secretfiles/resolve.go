package secretfiles

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
	"weir/internal/policy"
)

// maxFound is how many inodes one list may stand for in one mount namespace, and maxForeign in one that guarded processes made. A pattern
// may stand for maxFound directories.
const (
	maxFound   = 4096
	maxForeign = 256
	maxMounts  = 16 << 20      // bytes of a list of mounts, which whoever may mount makes long
	maxNames   = 16 * maxFound // in a directory that a pattern is about
)

// view is a mount namespace that is being looked at, from the root of one of its processes.
type view struct {
	fd     int
	mounts string // file that lists its mounts
	info   string // what is in there
	ask    func(fd int) (inode, error)
	bits   map[string]uint32 // of names
	most   int
	found  nodes
	ways   nodes // directories and links that lead to what was found: nobody is to take these from there (B131)
	steps  map[string]step
	traces map[inode]trace // of all that was looked at
	cut    bool            // a line stands for more than is looked at
	failed bool            // something could not be looked at, though it may be there
}

// trace tells a file from others that have had, or will have, its number.
type trace struct {
	handle *unix.FileHandle // none where the file system has none
	real   string           // its path without links
}

// step is one part of a path.
type step struct {
	id   inode
	link string // where to
	err  error
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
	v := &view{fd: fd, mounts: proc + "/mountinfo", ask: ask, most: maxFound, steps: map[string]step{}, traces: map[inode]trace{}}
	if pid != 0 {
		v.most = maxForeign
	}
	return v, nil
}

func (v *view) close() { unix.Close(v.fd) }

// resolve finds what a list stands for. What is not there is passed over. Where a line stands for too many files, which is the error, all
// counts that is below the part of it that has no pattern.
func (v *view) resolve(files []policy.SecretFile) (nodes, error) {
	all, ways, over := nodes{}, nodes{}, []error(nil)
	v.bits = map[string]uint32{}
	named, _ := names(files)
	for i, name := range named {
		v.bits[name] = 1 << i
	}
	for _, s := range files {
		if s.Dir == "" {
			continue
		}
		v.found, v.ways, v.cut = nodes{}, nodes{}, false
		for _, dir := range v.dirs(s.Dir) {
			v.take(dir, s.Name)
		}
		if v.cut || len(v.found) > 2 && v.found.beyond(all) > v.most || v.ways.beyond(ways) > 4*v.most { // a path without patterns is 2
			over = append(over, fmt.Errorf("taint.secret_files: %s stands for more than %d files: list their directory, /path/, instead", s.Text, v.most))
			v.found, v.ways = nodes{}, nodes{}
			for _, stem := range stems(s.Dir) {
				if id, _, err := v.inode(stem); err == nil {
					v.found.add(id, filesSecretNode{Below: 1})
					v.way(stem)
				}
			}
		}
		all.merge(v.found)
		ways.merge(v.ways)
	}
	all.merge(ways)
	return all, errors.Join(over...)
}

// beyond is how many there would be with others.
func (n nodes) beyond(others nodes) int {
	sum := len(others)
	for id := range n {
		if _, ok := others[id]; !ok {
			sum++
		}
	}
	return sum
}

func (n nodes) merge(others nodes) {
	for id, node := range others {
		n.add(id, node)
	}
}

const wild = `*?[\`

// stems are the directories that a pattern begins with.
func stems(pattern string) []string {
	if rest, ok := strings.CutPrefix(pattern, policy.Home); ok {
		return append(stems("/root"+rest), "/home")
	}
	if i := strings.IndexAny(pattern, wild); i >= 0 {
		pattern = pattern[:strings.LastIndexByte(pattern[:i], '/')+1]
	}
	return []string{pattern}
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
			if !strings.ContainsAny(step, wild) {
				next = append(next, path.Join(dir, step))
				continue
			}
			for _, name := range v.list(dir) {
				if ok, err := path.Match(step, name); ok && err == nil {
					next = append(next, path.Join(dir, name))
				}
			}
			if len(next) > maxFound {
				v.cut = true
				return nil
			}
		}
		found = next
	}
	return found
}

// take notes the inodes of one directory, or of the files with a name in it.
func (v *view) take(dir, name string) {
	id, real, err := v.inode(dir)
	if err != nil || !id.directory {
		return
	}
	v.way(dir)
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
		at := path.Join(dir, n)
		id, real, err := v.inode(at)
		switch {
		case err != nil:
			continue
		case !id.directory:
			v.found.add(id, filesSecretNode{Self: 1}) // whatever other name it has
		case name == n:
			v.below(id, real) // a directory, written without its slash
		}
		v.way(at)
		if len(v.found) > v.most {
			return
		}
	}
}

// below notes a directory and the roots of what is mounted below it.
func (v *view) below(id inode, real string) {
	v.found.add(id, filesSecretNode{Below: 1})
	for _, at := range linux.MountsBelow(v.mountinfo(), real) {
		id, _, err := v.inode(at)
		switch {
		case err != nil:
		case id.directory:
			v.found.add(id, filesSecretNode{Below: 1})
		default:
			v.found.add(id, filesSecretNode{Self: 1})
		}
		if len(v.found) > v.most {
			return
		}
	}
}

// maxLinks is how many links the kernel follows in one path.
const maxLinks = 40

// way notes the directories and links that lead to a file. A node of no kind tells who takes one from there, as those that are secret do.
func (v *view) way(at string) {
	real := "/"
	for links := 0; at != "" && links <= maxLinks; {
		var part string
		part, at, _ = strings.Cut(at, "/")
		switch part {
		case "", ".":
			continue
		case "..":
			real = path.Dir(real)
			continue
		}
		next := path.Join(real, part)
		s, ok := v.steps[next]
		if !ok {
			s = v.step(next)
			v.steps[next] = s
		}
		if s.err != nil {
			return
		}
		v.ways.add(s.id, filesSecretNode{})
		if s.link == "" {
			real = next
			continue
		}
		links++
		at = s.link + "/" + at
		if strings.HasPrefix(at, "/") {
			real = "/"
		}
	}
}

// step looks at a path that has no links but its last part.
func (v *view) step(at string) step {
	fd, err := v.open(at, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return step{err: err}
	}
	defer unix.Close(fd)
	id, err := v.ask(fd)
	if err != nil || id.directory {
		return step{id: id, err: err}
	}
	to := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", to)
	if err != nil { // it is none
		return step{id: id}
	}
	return step{id: id, link: string(to[:n])}
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
	if err == nil {
		m := trace{real: real}
		if handle, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH); err == nil {
			m.handle = &handle
		}
		v.traces[id] = m
	}
	return id, real, err
}

// fate is what became of a file that was found before.
type fate int

const (
	exists fate = iota // or it cannot be told
	away               // it is not where it was, and its file system cannot tell more
	gone
)

// fates looks for what was found before, under whatever name it is now.
func (v *view) fates(before map[inode]trace) map[inode]fate {
	all := map[inode]fate{}
	for id, was := range before {
		if now, ok := v.traces[id]; !ok {
			all[id] = v.fate(id, was)
		} else if now.handle != nil && was.handle != nil && (now.handle.Type() != was.handle.Type() || !bytes.Equal(now.handle.Bytes(), was.handle.Bytes())) {
			all[id] = gone
		}
	}
	return all
}

func (v *view) fate(id inode, m trace) fate {
	if m.handle != nil {
		switch err := v.reopen(id.device, *m.handle); err {
		case unix.ESTALE:
			return gone
		case unix.EPERM: // a sensor that may not
		default:
			return exists
		}
	}
	if now, _, err := v.inode(m.real); id.directory || err == nil && now == id {
		return exists
	}
	return away
}

// reopen opens a file by its handle. What is mounted nowhere may come back.
func (v *view) reopen(device uint32, handle unix.FileHandle) error {
	for _, at := range linux.MountsOf(v.mountinfo(), device) {
		top, err := v.open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
		if err != nil {
			continue
		}
		id, err := v.ask(top)
		over := err != nil || id.device != device // something else is mounted over it
		if !over {
			var fd int
			if fd, err = unix.OpenByHandleAt(top, handle, unix.O_PATH|unix.O_CLOEXEC); err == nil {
				unix.Close(fd)
			}
		}
		unix.Close(top)
		if !over {
			return err
		}
	}
	return nil
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
	found, err := d.Readdirnames(maxNames + 1)
	v.failed = v.failed || err != nil && err != io.EOF
	v.cut = v.cut || len(found) > maxNames
	return found
}

// mountinfo is read once in a look.
func (v *view) mountinfo() string {
	if v.info == "" {
		data, err := linux.ReadInput(v.mounts, maxMounts)
		v.failed = v.failed || err != nil || len(data) > maxMounts
		v.info = string(data)
	}
	return v.info
}

// Directory is what the kernel calls the directory that a descriptor of this process has open, as directory_of of bpf/ends.h does.
func (f *Files) Directory(fd int) (device uint32, number uint64, err error) {
	id, err := f.identify(fd)
	return id.Device, id.Inode ^ uint64(id.Generation)<<32, err
}

// Identify is what the kernel calls the file that a descriptor of this process has open, and what tells it from others that had its number before.
func (f *Files) Identify(fd int) (device uint32, number uint64, generation uint32, err error) {
	id, err := f.identify(fd)
	return id.Device, id.Inode, id.Generation, err
}

func (f *Files) number(fd int) (inode, error) {
	id, err := f.identify(fd)
	return inode{device: id.Device, number: id.Inode, directory: id.Directory != 0}, err
}

// identify asks the kernel which inode a descriptor of this process is.
func (f *Files) identify(fd int) (id filesInodeId, err error) {
	f.asking.Lock()
	defer f.asking.Unlock()
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
