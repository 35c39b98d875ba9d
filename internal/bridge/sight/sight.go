// Package sight tells where paths lead for a process, for both ends of the bridge. It reads no file, and follows links only.
package sight

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// By resolves paths as a process sees them, past symbolic links (K7). The process is a directory of /proc; dir is where relative paths begin.
func By(process, dir string) func(string) (string, bool) {
	return func(p string) (string, bool) {
		if !strings.HasPrefix(p, "/") {
			p = path.Join("/", dir, p)
		}
		root, err := unix.Open("/proc/"+process+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", false
		}
		defer unix.Close(root)
		top, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", root))
		if err != nil {
			return "", false
		}
		links := 0
		for rest := ""; len(p) < unix.PathMax; { // what does not exist yet has a directory that does
			p = "/" + strings.Trim(p, "/")
			if is, err := leads(root, top, p, ""); err == nil {
				return path.Join("/", is, rest), true
			}
			if p == "/" {
				return "", false
			}
			// In a directory such as /tmp the kernel follows a link for nobody but its owner.
			target, err := leads(root, top, path.Dir(p), path.Base(p))
			if err == nil && links < maxLinks {
				links++
				p, rest = target+"/"+rest, ""
				continue
			}
			rest = path.Join(path.Base(p), rest)
			p = path.Dir(p)
		}
		return "", false // no program can open it so
	}
}

// maxLinks is how many links are followed by hand, as the kernel does.
const maxLinks = 40

// leads is where a path below root leads; top is what root is called. With the name of a link in it, it is where that points.
func leads(root int, top, p, link string) (string, error) {
	fd, err := unix.Openat2(root, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	is, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", err
	}
	if top != "/" {
		is = strings.TrimPrefix(is, top)
	}
	if link == "" {
		return is, nil
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, link, buf)
	if err != nil {
		return "", err
	}
	target := string(buf[:n])
	if !strings.HasPrefix(target, "/") {
		target = is + "/" + target
	}
	return target, nil
}
