package dns

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

const confPath = "etc/resolv.conf"

// confTime is how long a resolv.conf may take to be read: a container may have mounted what never answers (B86).
const confTime = time.Second

// seen is the resolv.conf that a process sees. believed: it was not changed
// since then, so that nobody tainted chose who answers, or which names are meant.
type seen struct {
	conf     Config
	believed bool
	err      error // wraps linux.ErrGone if the process has ended
}

func configOf(pid int, since time.Time) (s seen) {
	root, err := linux.OpenRoot(pid)
	if err != nil {
		return seen{err: err}
	}
	defer root.Close()
	s.conf, s.believed, s.err = confIn(root, since, func() (bool, error) {
		its, err := linux.Namespace(pid, "user")
		return err == nil && ownUsers(its), err
	})
	return s
}

// confIn reads the one below a root directory. ours says whether who sees that root is in the sensor's user namespace: it is
// asked when all is read, since nobody comes back from another.
func confIn(root *os.File, since time.Time, ours func() (bool, error)) (conf Config, believed bool, err error) {
	// links lead within the container's own root
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(int(root.Fd()), confPath, &how)
	if err != nil {
		return conf, false, nil
	}
	f := os.NewFile(uintptr(fd), confPath)
	defer f.Close()
	var file, link unix.Stat_t
	if unix.Fstat(fd, &file) != nil || file.Mode&unix.S_IFMT != unix.S_IFREG {
		return conf, false, nil
	}
	conf = ReadConfig(f)
	how = unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	itself, err := unix.Openat2(int(root.Fd()), confPath, &how)
	if err != nil {
		return conf, false, nil
	}
	defer unix.Close(itself)
	if unix.Fstat(itself, &link) != nil || changed(file, since) || changed(link, since) {
		return conf, false, nil
	}
	believed, err = ours() // else who made its user namespace chose its root, or what is mounted there
	return conf, believed, err
}

// changed: its contents, its name or its owner were.
func changed(st unix.Stat_t, since time.Time) bool {
	return !since.IsZero() && time.Unix(st.Ctim.Unix()).After(since)
}
