package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const most = 4096 // of a file's text

// fileAttempts read a file, by the means of -by, and send what is in it over a socket that was connected before (G2); with -write they
// put the text there (B34).
func fileAttempts() map[string]attempt {
	all := map[string]attempt{"file-take": takeFile, "file-give": giveFile, "file-run": runFile, "file-sendfile": sendFile}
	for name, open := range map[string]func(*call) (int, error){
		"file": plainOpen, "file-openat2": openat2, "file-opath": reopen, "file-procroot": procRoot, "file-handle": byHandle, "file-mapped": mapFiles,
	} {
		all[name] = func(c *call) error { return tellFile(c, open) }
	}
	return all
}

// tellFile connects, opens, reads and sends: nothing is between the last two.
func tellFile(c *call, open func(*call) (int, error)) error {
	if c.write {
		fd, err := open(c)
		if err != nil {
			return err
		}
		return c.send(fd)
	}
	socket, err := datagrams(c)
	if err != nil {
		return err
	}
	fd, err := open(c)
	if err != nil {
		return err
	}
	return tell(c, socket, fd)
}

// tell sends what is in a file.
func tell(c *call, socket, fd int) error {
	text := make([]byte, most)
	n, err := c.read(fd, text)
	if err != nil {
		return step("read", err)
	}
	c.say = text[:n]
	_, err = unix.Write(socket, c.say)
	return step("write", err)
}

// read takes what is in a file by the means of -by.
func (c *call) read(fd int, text []byte) (int, error) {
	switch c.by {
	case "write":
		return unix.Pread(fd, text, 0)
	case "mmap":
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return 0, err
		}
		m, err := unix.Mmap(fd, 0, int(stat.Size), unix.PROT_READ, unix.MAP_SHARED)
		return copy(text, m), err
	case "splice":
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return 0, err
		}
		if _, err := unix.Splice(fd, nil, p[1], nil, len(text), 0); err != nil {
			return 0, err
		}
		return unix.Read(p[0], text)
	}
	return 0, fmt.Errorf("-by %s: want write, mmap or splice", c.by)
}

func datagrams(c *call) (int, error) {
	to, family, err := c.ip()
	if err != nil {
		return -1, err
	}
	sa, err := sockaddr(to)
	if err != nil {
		return -1, err
	}
	fd, err := c.open(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, sa); err != nil {
		return -1, step("connect", err)
	}
	return fd, c.done("connect")
}

func openAt(path string, flags int) (int, error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	return fd, step("open", err)
}

// flags are those to open with.
func (c *call) flags() int {
	if c.write {
		return unix.O_RDWR | unix.O_CREAT
	}
	return unix.O_RDONLY
}

func plainOpen(c *call) (int, error) { return openAt(c.path, c.flags()) }

func openat2(c *call) (int, error) {
	how := unix.OpenHow{Flags: uint64(c.flags())}
	if c.write {
		how.Mode = 0o600
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, c.path, &how)
	return fd, step("openat2", err)
}

// reopen opens by what reads nothing, and then that.
func reopen(c *call) (int, error) {
	fd, err := openAt(c.path, unix.O_PATH)
	if err != nil {
		return -1, err
	}
	return openAt("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY)
}

func procRoot(c *call) (int, error) { return openAt("/proc/self/root"+c.path, unix.O_RDONLY) }

// byHandle opens a file that nobody has looked up since the kernel forgot its name.
func byHandle(c *call) (int, error) {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, c.path, 0)
	if err != nil {
		return -1, step("name_to_handle_at", err)
	}
	root, err := openAt("/", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		return -1, step("drop caches", err)
	}
	fd, err := unix.OpenByHandleAt(root, handle, unix.O_RDONLY|unix.O_CLOEXEC)
	return fd, step("open_by_handle_at", err)
}

// mapFiles opens the file that a mapping of another process is of, by a link that has no path to follow.
func mapFiles(c *call) (int, error) {
	dir := "/proc/" + strconv.Itoa(c.pid) + "/map_files"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return -1, step("list mappings", err)
	}
	for _, e := range entries {
		if target, err := os.Readlink(dir + "/" + e.Name()); err == nil && target == c.path {
			return openAt(dir+"/"+e.Name(), unix.O_RDONLY)
		}
	}
	return -1, step("find mapping", unix.ENOENT)
}

// runFile executes the file, and says its text afterwards.
func runFile(c *call) error {
	socket, err := datagrams(c)
	if err != nil {
		return err
	}
	if err := exec.Command(c.path).Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return step("execute", err)
	}
	_, err = unix.Write(socket, c.say)
	return step("write", err)
}

// sendFile never has the text in its own memory.
func sendFile(c *call) error {
	socket, err := dial(c, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	fd, err := plainOpen(c)
	if err != nil {
		return err
	}
	_, err = unix.Sendfile(socket, fd, nil, most)
	return step("sendfile", err)
}

// takeFile is handed an open file over the Unix socket at -path.
func takeFile(c *call) error {
	socket, err := datagrams(c)
	if err != nil {
		return err
	}
	c.use = -1
	peer, err := meet(c)
	if err != nil {
		return err
	}
	fd, err := received(peer)
	if err != nil {
		return err
	}
	return tell(c, socket, fd)
}

// giveFile is the other side: it opens the file that -say names.
func giveFile(c *call) error {
	fd, err := openAt(strings.TrimSpace(string(c.say)), unix.O_RDONLY)
	if err != nil {
		return err
	}
	peer, err := meet(c)
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(peer, []byte("."), unix.UnixRights(fd), nil, 0); err != nil {
		return step("sendmsg", err)
	}
	fmt.Fprintln(c.out, "given")
	_, err = unix.Read(peer, make([]byte, 1))
	return step("read", err)
}
