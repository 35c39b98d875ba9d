package wire

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

// maxOpens bounds what is opened for all paths of one call, so that none can keep the asker waiting (F32).
const maxOpens = 2000

// maxLinks is how many links are followed by hand, as the kernel does.
const maxLinks = 40

// SeenBy resolves the paths of one call as a process sees them, past symbolic links (K7). The process is a directory of /proc; dir is where
// relative paths begin. What it returns gives the places that a path may lead to; whole is false where there is more to look up than is
// looked up for one call.
func SeenBy(process, dir string) func(string) (places []string, whole bool) {
	v := newView(process)
	return func(p string) ([]string, bool) {
		texts := []string{p}
		if real, ok := v.expand(p); ok {
			texts = append(texts, real)
		}
		var places []string
		add := func(p string) {
			if !slices.Contains(places, p) {
				places = append(places, p)
			}
		}
		for _, p := range texts {
			if !strings.HasPrefix(p, "/") {
				p = strings.TrimRight("/"+strings.Trim(dir, "/"), "/") + "/" + p
			}
			clean := path.Clean(p)
			add(clean)
			for _, p := range slices.Compact([]string{clean, p}) { // one tool takes out ".." by itself, another leaves it to the kernel
				if real, ok := v.follow(p); ok {
					add(real)
				}
			}
		}
		return places, v.left >= 0
	}
}

// Dir is a directory as a process sees it, past symbolic links; where that cannot be told, it is what it is called.
func Dir(process, dir string) string {
	if !strings.HasPrefix(dir, "/") {
		return ""
	}
	if real, ok := newView(process).follow(dir); ok {
		return real
	}
	return path.Clean(dir)
}

// view is what a process sees, for one call.
type view struct {
	process string
	left    int             // how many files may still be opened; below zero, some were not
	gone    map[string]bool // what is known to be neither a file nor a link
	home    func() string
}

func newView(process string) *view {
	v := &view{process: process, left: maxOpens, gone: make(map[string]bool)}
	v.home = sync.OnceValue(v.findHome)
	return v
}

// expand is a path with the home that its beginning stands for.
func (v *view) expand(p string) (string, bool) {
	for _, name := range []string{"${HOME}", "$HOME", "~"} {
		rest, ok := strings.CutPrefix(p, name)
		if !ok {
			continue
		}
		if rest == "" || rest[0] == '/' {
			return v.home() + rest, true
		}
		if name == "~" {
			home := "/home/" + rest
			if user, below, _ := strings.Cut(rest, "/"); user == "root" {
				home = "/root/" + below
			}
			return home, true
		}
	}
	return "", false
}

// maxEnviron is what is read of an environment, whose size the process chooses.
const maxEnviron = 256 << 10

// findHome is that of the process, as its environment has it.
func (v *view) findHome() string {
	const root = "/root"
	if v.process == "self" {
		return cmp.Or(os.Getenv("HOME"), root)
	}
	pid, err := strconv.Atoi(v.process)
	if err != nil {
		return root
	}
	data, cut, err := linux.Environ(pid, maxEnviron)
	for kv := range strings.SplitSeq(string(data), "\x00") {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && home != "" {
			return home
		}
	}
	if cut || err != nil {
		v.left = -1
	}
	return root
}

// follow is where a path leads by the kernel's reading.
func (v *view) follow(p string) (string, bool) {
	if v.left--; v.left < 0 {
		return "", false
	}
	root, err := unix.Open("/proc/"+v.process+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(root)
	top, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", root))
	if err != nil {
		return "", false
	}
	links := 0
	for rest := ""; len(p) < unix.PathMax && v.left >= 0; { // what does not exist yet has a directory that does
		p = "/" + strings.Trim(p, "/")
		above, name := p[:strings.LastIndexByte(p, '/')], p[strings.LastIndexByte(p, '/')+1:] // path.Dir would undo a link with ".."
		if !v.gone[p] && !v.gone[above] {
			if is, err := v.leads(root, top, p, ""); err == nil {
				return path.Join("/", is, rest), true
			}
			if p == "/" {
				return "", false
			}
			// In a directory such as /tmp the kernel follows a link for nobody but its owner.
			target, err := v.leads(root, top, above+"/", name)
			if err == nil && links < maxLinks {
				links++
				p, rest = target+"/"+rest, ""
				continue
			}
			v.gone[p] = err != nil
		}
		p, rest = above, name+"/"+rest
	}
	if links > 0 { // by links, the kernel opens what is longer than it takes at once
		v.left = -1
	}
	return "", false // no program can open it so
}

// leads is where a path below root leads; top is what root is called. With the name of a link in it, it is where that points.
func (v *view) leads(root int, top, p, link string) (string, error) {
	if v.left--; v.left < 0 {
		return "", unix.EMFILE
	}
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
