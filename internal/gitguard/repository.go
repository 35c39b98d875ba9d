package gitguard

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/commands"
	"weir/internal/linux"
)

// Repositories looks at the repositories that a process may find by git, as Harmless does; host pid and start time. The process is looked at
// when it is asked about, and what cannot be told in time is a reason.
func Repositories(container string, pid int, start uint64) func(dir string) (why string) {
	return func(dir string) string {
		why, ok := linux.Soon(looking, container, lookTime, func() string { return harmlessFor(pid, start, dir) })
		if !ok {
			return "its settings cannot be read in time"
		}
		return why
	}
}

var looking = &linux.Slots{All: 64, Own: 8}

const (
	lookTime   = 200 * time.Millisecond
	maxEnviron = 256 << 10
	maxSetting = 256 << 10 // bytes of one file of settings
	maxIndex   = 32 << 20
	maxNames   = 4096 // in a directory of git
)

func harmlessFor(pid int, start uint64, dir string) string {
	root, err := linux.OpenRoot(pid)
	if err != nil {
		return "the process has ended"
	}
	defer root.Close()
	environ, cut, err := linux.Environ(pid, maxEnviron)
	if err != nil || cut || !linux.Alive(pid, start) {
		return "the environment cannot be read"
	}
	return Harmless(root, dir, strings.Split(strings.TrimRight(string(environ), "\x00"), "\x00"))
}

// Harmless looks at the repository that git finds from dir, below a root directory, and says which setting of it, of the user, of the system or
// of the environment can make git run a program or fetch something where it only reads; empty if none can (F20). Settings are accepted by
// name: what is not known, cannot be read or is too large is a reason. Attributes name drivers that only settings define, and modules have
// settings of their own.
func Harmless(root *os.File, dir string, environ []string) (why string) {
	r := repository{root: root, env: map[string]string{}}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !harmlessVariable(name, value) {
			return name + " is set"
		}
		r.env[name] = value
	}
	if why := r.find(dir); why != "" {
		return why
	}
	for _, file := range r.settings() {
		data, err := r.read(file, maxSetting)
		switch {
		case missing(err):
		case err != nil:
			return file + " cannot be read"
		default:
			if why := harmlessSettings(string(data)); why != "" {
				return why + " in " + file
			}
		}
	}
	for _, dir := range r.dirs {
		if why := r.contents(dir); why != "" {
			return why
		}
	}
	return ""
}

// harmlessVariable tells whether git, and the pager that it runs on a terminal, take nothing from a variable that runs something.
func harmlessVariable(name, value string) bool {
	switch name {
	case "PAGER", "GIT_PAGER":
		return value == "" || value == "cat" || value == "less"
	case "GIT_EDITOR", "GIT_ASKPASS", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS": // nothing that reads edits or asks
		return true
	case "LESS":
		return strings.Trim(value, "-FRXSKMiQx0123456789 ") == ""
	case "LESSOPEN", "LESSCLOSE": // Debian's, which less does not use for what git pipes to it
		return value == "| /usr/bin/lesspipe %s" || value == "/usr/bin/lesspipe %s %s"
	case "HOME", "XDG_CONFIG_HOME":
		return value == "" || path.IsAbs(value)
	case "CDPATH": // cd leads elsewhere
		return value == ""
	}
	for _, prefix := range []string{"GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSL_", "GIT_HTTP_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return !strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "LESS")
}

// repository is one that is looked at, with those above it: git goes on to them where one is damaged. Paths are below root, as whoever sees
// that root writes them.
type repository struct {
	root *os.File
	env  map[string]string
	dirs []string // of git: for a working tree, and for all of a repository
}

// find goes up from a directory as git does. The names on the way are no links, so that ".." is what it seems.
func (r *repository) find(dir string) string {
	if !path.IsAbs(dir) {
		return "the directory is not known"
	}
	f, err := r.open(dir, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return "the directory cannot be looked at"
	}
	f.Close()
	for at := path.Clean(dir); ; at = path.Dir(at) {
		if r.has(path.Join(at, "HEAD")) {
			return at + " may be a repository without a working tree"
		}
		if dir := path.Join(at, ".git"); r.has(dir) {
			if why := r.found(dir); why != "" {
				return why
			}
		}
		if at == "/" {
			break
		}
	}
	if len(r.dirs) == 0 {
		return "there is no repository"
	}
	return ""
}

// found notes the directory of a repository, or the one that a file in its place names.
func (r *repository) found(dir string) string {
	for _, name := range []string{"", "/commondir"} {
		to, err := r.line(dir + name)
		switch {
		case name != "" && missing(err):
			return ""
		case name == "" && errors.Is(err, unix.EISDIR):
			to = dir
		case name == "" && err == nil:
			var ok bool
			if to, ok = strings.CutPrefix(to, "gitdir: "); !ok {
				return dir + " is not known"
			}
			to = under(path.Dir(dir), to)
		case err == nil:
			to = under(dir, to)
		default:
			return dir + name + " cannot be read"
		}
		dir = to
		r.dirs = append(r.dirs, dir)
	}
	return ""
}

// under is a path from a directory; the kernel takes ".." out of it, past links.
func under(dir, to string) string {
	if path.IsAbs(to) {
		return to
	}
	return dir + "/" + to
}

// settings are the files that git reads them from. Those of the system are where the package or one below a prefix has them.
func (r *repository) settings() []string {
	files := []string{"/etc/gitconfig"}
	for _, dir := range r.dirs {
		files = append(files, dir+"/config", dir+"/config.worktree")
	}
	for bin := range strings.SplitSeq(r.env["PATH"], ":") {
		if path.IsAbs(bin) {
			files = append(files, path.Join(bin, "../etc/gitconfig"))
		}
	}
	if home := r.env["HOME"]; home != "" {
		files = append(files, home+"/.gitconfig", home+"/.config/git/config")
	}
	if home := r.env["XDG_CONFIG_HOME"]; home != "" {
		files = append(files, home+"/git/config")
	}
	return files
}

// contents looks for a hook that git runs when it has refreshed the index, and for modules, in which git runs itself.
func (r *repository) contents(dir string) string {
	if r.has(dir + "/hooks/post-index-change") {
		return "the hook post-index-change in " + dir
	}
	index, err := r.read(dir+"/index", maxIndex)
	switch {
	case missing(err):
		return ""
	case err != nil:
		return dir + "/index cannot be read"
	case bytes.Contains(index, []byte{0, 0, 0xE0, 0}): // the mode of a module, as git writes it
		return "there may be a module in " + dir + "/index"
	case bytes.Contains(index, []byte("sdir\x00\x00\x00\x00")):
		return dir + "/index does not list all files"
	}
	at, err := r.open(dir, 0)
	if err != nil {
		return dir + " cannot be read"
	}
	defer at.Close()
	list, err := os.Open(reopen(at))
	if err != nil {
		return dir + " cannot be read"
	}
	defer list.Close()
	names, err := list.Readdirnames(maxNames)
	if err != nil || len(names) == maxNames || slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "sharedindex.") }) {
		return dir + "/index may go on in another file"
	}
	return ""
}

// harmlessSettings says which line of a file of settings is not known to run nothing. It takes less than git for one: a line that goes on in
// the next one, or that has anything behind a section's name, is not known.
func harmlessSettings(text string) string {
	const unknown = "a line that is not known"
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Trim(line, " \t\r")
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case strings.HasSuffix(line, `\`) || strings.Contains(line, "\x00"):
			return unknown
		case line[0] == '[':
			name, ok := strings.CutSuffix(line[1:], "]")
			name, sub, has := strings.Cut(name, `"`)
			if has {
				name = strings.TrimRight(name, " \t")
				sub, has = strings.CutSuffix(sub, `"`)
				ok = ok && has && !strings.ContainsAny(sub, `"\`)
				sub = "." + sub
			}
			if section = strings.ToLower(name) + sub; !ok || !isName(name, ".-") {
				return unknown
			}
		default:
			key, value, _ := strings.Cut(line, "=")
			key, value = strings.ToLower(strings.TrimRight(key, " \t")), strings.TrimLeft(value, " \t")
			if section == "" || !isName(key, "-") {
				return unknown
			}
			if !harmlessSetting(section, key, value) {
				return "the setting " + section + "." + key
			}
		}
	}
	return ""
}

// isName tells whether s has letters, digits and some more only.
func isName(s, more string) bool {
	for i := range len(s) {
		if c := s[i]; !(commands.Letter(c) || c >= '0' && c <= '9' || strings.IndexByte(more, c) >= 0) {
			return false
		}
	}
	return s != ""
}

func harmlessSetting(section, key, value string) bool {
	if name, _, has := strings.Cut(section, "."); has {
		section = name + ".*"
	}
	switch section + "." + key {
	case "core.pager":
		return value == "cat" || value == "less"
	case "core.fsmonitor":
		return value == "false"
	}
	if section == "pager" {
		return value == "cat" || value == "less" || value == "false"
	}
	keys, ok := commands.Table("git-quiet")[section]
	return ok && (keys == "" || commands.Listed(keys, key))
}

func reopen(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

func missing(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// has tells whether a file is there, or may be.
func (r *repository) has(name string) bool {
	f, err := r.open(name, 0)
	if err == nil {
		f.Close()
	}
	return !missing(err)
}

// open finds a file without opening it: opening a device has effects.
func (r *repository) open(name string, resolve uint64) (*os.File, error) {
	fd, err := unix.Openat2(int(r.root.Fd()), name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | resolve})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// read is a whole file, if it is a regular one of a size that is accepted.
func (r *repository) read(name string, most int64) ([]byte, error) {
	at, err := r.open(name, 0)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, unix.EISDIR
	case !info.Mode().IsRegular() || info.Size() > most:
		return nil, unix.EFBIG
	}
	f, err := os.Open(reopen(at))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = unix.EFBIG
	}
	return data, err
}

// line is a file of one line, such as one that names a directory.
func (r *repository) line(name string) (string, error) {
	data, err := r.read(name, unix.PathMax)
	text := strings.TrimSuffix(string(data), "\n")
	if err == nil && (text == "" || strings.ContainsAny(text, "\x00\r\n")) {
		err = unix.EINVAL
	}
	return text, err
}
