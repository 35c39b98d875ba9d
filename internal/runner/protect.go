package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// changes are the ways to change a file system. Reading and executing are left as they are.
const changes = landlock.AccessFSSet(ll.AccessFSWriteFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeChar | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
	ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym | ll.AccessFSRefer)

// Write is what a guarded command may change.
type Write struct {
	Dirs  []string // with all below
	Files []string
}

// any says whether there is a bound at all.
func (w Write) any() bool { return len(w.Dirs)+len(w.Files) > 0 }

// flags are the bounds as guard-init takes them.
func (w Write) flags() (flags []string) {
	for _, dir := range w.Dirs {
		flags = append(flags, "--write="+dir)
	}
	for _, file := range w.Files {
		flags = append(flags, "--write-file="+file)
	}
	return flags
}

// enforce keeps this process, and all that it starts, from changing anything else, for good; what does not exist is left out. Setuid
// programs lose their rights with it.
func (w Write) enforce() error {
	version, err := ll.LandlockGetABIVersion()
	if err != nil || version < 2 { // the first could not rename between directories
		return fmt.Errorf("protect start-up files: this kernel has no Landlock of version 2 (Linux 5.19, with landlock in lsm=): go without --preset")
	}
	rights := changes
	if version >= 3 {
		rights |= ll.AccessFSTruncate
	}
	config, err := landlock.NewConfig(rights)
	if err != nil {
		return fmt.Errorf("protect start-up files: %w", err)
	}
	contents := rights & landlock.AccessFSSet(ll.AccessFSWriteFile|ll.AccessFSTruncate)
	dirs, files := landlock.PathAccess(rights, w.Dirs...).IgnoreIfMissing(), landlock.PathAccess(contents, w.Files...).IgnoreIfMissing()
	if err := config.RestrictPaths(dirs, files); err != nil {
		return fmt.Errorf("protect start-up files: %w", err)
	}
	return nil
}

// Writable resolves what a guarded command may change. work is where it runs; home its user's home; own are directories and files below
// home. Directories that have start-up files in them are refused.
func Writable(work, home string, own Write) (Write, error) {
	real, err := filepath.EvalSymlinks(work)
	if err != nil {
		return Write{}, fmt.Errorf("find the working directory: %w", err)
	}
	house, err := filepath.EvalSymlinks(home)
	if err != nil {
		return Write{}, fmt.Errorf("find the home directory: %w", err)
	}
	if real == "/" || real == house || strings.HasPrefix(house+"/", real+"/") {
		return Write{}, fmt.Errorf("the working directory %s has start-up files in it: change to the project's directory first", work)
	}
	if rest, inside := strings.CutPrefix(real, house+"/."); inside {
		return Write{}, fmt.Errorf("the working directory ~/.%s is one of settings: change to the project's directory first", rest)
	}
	for _, system := range []string{"/etc", "/usr", "/var/spool", "/boot", "/root", "/lib"} {
		if real == system || strings.HasPrefix(real, system+"/") {
			return Write{}, fmt.Errorf("the working directory %s is one of the system's: change to the project's directory first", work)
		}
	}
	w := Write{Dirs: []string{real, "/tmp", "/var/tmp", "/dev", "/proc"}}
	for _, d := range own.Dirs {
		w.Dirs = append(w.Dirs, filepath.Join(house, d))
	}
	for _, f := range own.Files {
		w.Files = append(w.Files, filepath.Join(house, f))
	}
	return w, nil
}

// prepare makes what an agent has of its own and is not there yet, as the user, so that it can be opened for writing. What cannot be made
// is left out.
func (w Write) prepare() {
	for _, d := range w.Dirs {
		if strings.Contains(d, "/.") { // an agent's own, or a cache; nothing else is missing
			_ = os.MkdirAll(d, 0o700)
		}
	}
	for _, f := range w.Files {
		if file, err := os.OpenFile(f, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_ = file.Close() // nothing was written
		}
	}
}
