package steer

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/names"
)

const confPath = "etc/resolv.conf"

// configOf reads the resolv.conf that a process sees, unless it was changed since:
// whoever may write it would choose who answers. Its search list is taken in any
// case: it only makes names unknown.
func configOf(pid int, since time.Time) names.Config {
	root, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return names.Config{}
	}
	defer root.Close()
	// links lead within the container's own root
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(int(root.Fd()), confPath, &how)
	if err != nil {
		return names.Config{}
	}
	f := os.NewFile(uintptr(fd), confPath)
	defer f.Close()
	var file, link unix.Stat_t
	if unix.Fstat(fd, &file) != nil || file.Mode&unix.S_IFMT != unix.S_IFREG {
		return names.Config{}
	}
	conf := names.ReadConfig(f)
	how = unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	itself, err := unix.Openat2(int(root.Fd()), confPath, &how)
	if err != nil {
		return names.Config{Search: conf.Search}
	}
	defer unix.Close(itself)
	if unix.Fstat(itself, &link) != nil || changed(file, since) || changed(link, since) {
		conf.Servers = nil
	}
	return conf
}

// changed: its contents, its name or its owner were.
func changed(st unix.Stat_t, since time.Time) bool {
	return !since.IsZero() && time.Unix(st.Ctim.Unix()).After(since)
}
