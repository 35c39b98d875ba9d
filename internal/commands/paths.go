package commands

import (
	"path"
	"slices"
	"strings"
)

// hiddenFiles are the only names with a dot in front that may be written: other dot
// files start shells and tools.
var hiddenFiles = map[string]bool{".gitignore": true, ".dockerignore": true, ".editorconfig": true, ".gitkeep": true, ".keep": true}

// devices may be written to.
var devices = map[string]bool{"/dev/null": true, "/dev/stdout": true, "/dev/stderr": true, "/dev/stdin": true, "/dev/tty": true}

// protected are names that something runs, or is run by, wherever they stand. With a HEAD a directory can be a repository, and have settings.
var protected = Names(`bin sbin etc cron crontab crontabs crontab.txt cron.d cron.daily cron.hourly cron.weekly cron.monthly systemd authorized_keys ld.so.preload
 ld.so.conf ld.so.conf.d profile profile.d bash.bashrc bashrc zshrc zshenv environment sudoers sudoers.d passwd shadow group hosts resolv.conf HEAD
 nsswitch.conf rc.local init.d inputrc gitconfig site-packages dist-packages sitecustomize.py usercustomize.py hooks lesskey magic magic.mgc autostart
 udev modprobe.d pam.d logrotate.d update-motd.d apt.conf.d proc sys dev`)

// system are the top directories under which nothing is written.
var system = Names("bin boot dev etc lib lib32 lib64 libx32 opt proc run sbin snap sys usr var nix host")

// Place is the working directory, as far as it is known. In the zero value nothing relative may be written.
type Place struct {
	At    []string // every directory that it may be; none: it is not known
	Next  []string // the same, if the last cd succeeded
	Roots []string // where it began, and directories that were literally entered
}

// In is the place of a command that starts in a directory; an empty one is not known (F16).
func In(dir string) Place {
	if dir == "" || dir[0] != '/' {
		return Place{}
	}
	p := Place{At: []string{strings.TrimRight(dir, "/")}}
	if project(dir) {
		p.Roots = p.At
	}
	return p
}

// Writable tells whether writing to a literal path runs nothing later: it lies under
// the working directory or /tmp, and nothing reads its name by itself.
func (p *Place) Writable(path string) (why string, ok bool) {
	if devices[path] {
		return "", true
	}
	if path == "" {
		return "names no file", false
	}
	rest := path
	if path[0] == '/' {
		root := ""
		for _, dir := range p.Roots {
			if within(path, dir) && len(dir) > len(root) {
				root = dir
			}
		}
		if within(path, "/tmp") && root == "" {
			root = "/tmp"
		}
		if root == "" {
			return "is outside the working directory and /tmp", false
		}
		rest = path[len(root):]
	} else if len(p.At) == 0 || slices.ContainsFunc(p.At, func(dir string) bool { return !project(dir) }) {
		return "stands in a directory that is not known, or is none to work in", false
	}
	if path[0] == '~' {
		return "is in a home directory, where start-up files are", false
	}
	for part := range strings.SplitSeq(rest, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return "may be outside the working directory", false
		case part[0] == '.' && !hiddenFiles[part]:
			return "is hidden, as start-up and configuration files are", false
		case protected[part]:
			return "has the name of a file or folder that other programs run or obey", false
		case strings.HasSuffix(part, ".so") || strings.Contains(part, ".so.") || strings.HasSuffix(part, ".pth") ||
			strings.HasSuffix(part, ".service") || strings.HasSuffix(part, ".timer") || strings.HasSuffix(part, ".desktop"):
			return "has the name of a file that other programs load", false
		}
	}
	return "", true
}

func within(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}

// Leave notes that it may be any directory now.
func (p *Place) Leave() { p.At, p.Next = nil, nil }

// Enter follows cd to a literal directory. It may fail.
func (p *Place) Enter(dir string) {
	for len(dir) > 1 && dir[len(dir)-1] == '/' {
		dir = dir[:len(dir)-1]
	}
	if !project(dir) {
		p.Leave()
		return
	}
	p.Next = []string{dir}
	if dir[0] != '/' {
		p.Next = Below(p.At, dir)
	} else if len(p.Roots) < maxPlaces {
		p.Roots = append(p.Roots[:len(p.Roots):len(p.Roots)], dir)
	}
	p.At = Either(p.At, p.Next)
}

// maxPlaces bounds the directories that are followed.
const maxPlaces = 8

// Below is where a path leads from each of some directories.
func Below(dirs []string, to string) []string {
	below := make([]string, len(dirs))
	for i, dir := range dirs {
		if below[i] = to; to == "" || to[0] != '/' {
			below[i] = path.Join(dir, "/", to)
		}
	}
	return below
}

// Either is where one is in one of two places: nowhere that is known, where one of them is not.
func Either(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	for _, dir := range b {
		if !slices.Contains(a, dir) {
			a = append(a[:len(a):len(a)], dir)
		}
	}
	if len(a) > maxPlaces {
		return nil
	}
	return a
}

// project tells whether a literal directory may be one to work in: none of the
// system's, no home itself, nothing hidden or protected.
func project(dir string) bool {
	if dir == "" || dir == "-" || dir[0] == '~' || strings.ContainsRune(dir, ':') {
		return false
	}
	n := 0
	for part := range strings.SplitSeq(dir, "/") {
		if part == "" || part == "." {
			continue
		}
		n++
		if part[0] == '.' || protected[part] {
			return false
		}
		if n == 1 && dir[0] == '/' && system[part] && !within(dir, "/usr/src") && !within(dir, "/var/www") {
			return false
		}
	}
	switch {
	case dir[0] != '/':
		return true
	case within(dir, "/home") || within(dir, "/usr") || within(dir, "/var"):
		return n >= 3
	case within(dir, "/root"):
		return n >= 2
	}
	return n >= 1
}

// NetPath tells whether bash takes a path in a redirection for a connection; prefix:
// the path may go on.
func NetPath(path string, prefix bool) bool {
	return slices.ContainsFunc([]string{"/dev/tcp/", "/dev/udp/"}, func(net string) bool {
		return strings.HasPrefix(path, net) || prefix && strings.HasPrefix(net, path)
	})
}

// Device tells whether a path is one of the devices that may be written to.
func Device(path string) bool { return devices[path] }

// Protected tells whether a file's name is one that other programs run or obey.
func Protected(name string) bool { return name != "" && name[0] == '.' || protected[name] }

// Digits tells whether s is a decimal number without a sign.
func Digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Listed tells whether a list of names separated by spaces has name.
func Listed(list, name string) bool {
	for len(list) > 0 {
		var one string
		one, list, _ = strings.Cut(list, " ")
		if one == name && name != "" {
			return true
		}
	}
	return false
}

// Names is the set of the names in a list, which blanks separate.
func Names(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}
