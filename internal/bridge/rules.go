package bridge

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/ruleset"
	"weir/internal/ruleset/builtin"
	"weir/internal/ruleset/killswitch"
	"weir/internal/ruleset/permission"
	"weir/internal/self"
)

// Rules are what calls are held against before any hook.
type Rules struct {
	Guard       Guard
	Permissions Permissions
	Killed      func() bool // the kill switch is on; asked for each call
}

// Use takes other rules from now on. There is no way to have none: what is missing stays as it was.
func (s *Server) Use(r Rules) {
	now := *s.rules.Load()
	if r.Guard != nil {
		now.Guard = r.Guard
	}
	if r.Permissions != nil {
		now.Permissions = r.Permissions
	}
	if r.Killed != nil {
		now.Killed = r.Killed
	}
	s.rules.Store(&now)
}

// Killed says whether the kill switch is on now, and turns a tool off (K10).
func (s *Server) Killed(tool string) bool { return ruleset.Changes(tool) && s.rules.Load().Killed() }

// Permissions are the permission rules in force.
func (s *Server) Permissions() Permissions { return s.rules.Load().Permissions }

// standing are the rules of a server that was told of none.
func standing() *Rules {
	return &Rules{
		Guard:       ruleset.New(ruleset.Options{Names: builtin.Installed()}),
		Permissions: (*permission.Set)(nil),
		Killed:      func() bool { return killswitch.On(self.KillSwitch) },
	}
}

// seenBy resolves paths as a process sees them, past symbolic links (K7); dir is where relative ones begin.
func seenBy(pid int, dir string) func(string) (string, bool) {
	return func(p string) (string, bool) {
		if !strings.HasPrefix(p, "/") {
			p = path.Join("/", dir, p)
		}
		root, err := unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
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
