package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"weir/internal/linux"
)

const (
	settled     = 300 * time.Millisecond // after the first change of the policy's directory
	lookAgain   = 100 * time.Millisecond // at a file that is open for writing
	tellWriting = 20                     // times that it was
)

// fileWatch is one file, and the cgroups of some paths; all but File must be set.
type fileWatch struct {
	File    string                       // empty: none
	Changed func() bool                  // the file is not what was loaded last
	Reload  func()                       // loads it
	Refused func(error)                  // the file is not loaded
	Above   func() []string              // cgroups whose making is to be told
	Made    func(path string)            // of a cgroup: it is one of those, or above one
	Fail    func(what string, err error) // tells what could not be done
}

// Run calls until ctx ends. It watches directories: editors put a new file in the place
// of the old one.
func (o fileWatch) Run(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the policy: %w", err)
	}
	defer w.Close()
	file := o.File
	if file != "" {
		if err := w.Add(filepath.Dir(file)); err != nil {
			o.Fail("watch the policy: it is loaded again on SIGHUP only", err)
		}
	}
	var reload <-chan time.Time
	writing := 0 // how often it was found so
	for {
		o.watchAbove(w)
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.Errors:
			o.Fail("watch files", err) // what was missed is found by housekeeping
			reload = time.After(settled)
		case e := <-w.Events:
			if linux.CgroupBelow(e.Name, linux.CgroupRoot) {
				if e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) {
					o.watchAbove(w)
					o.Made(strings.TrimPrefix(e.Name, linux.CgroupRoot))
				}
			} else if reload == nil && o.Changed() {
				reload = time.After(settled)
			}
		case <-reload:
			reload = nil
			switch {
			case !o.Changed():
			case beingWritten(file):
				reload = time.After(lookAgain)
				if writing++; writing == tellWriting {
					o.Refused(fmt.Errorf("%s: somebody has it open for writing: close it", file))
				}
				continue
			default:
				o.Reload()
			}
			writing = 0
		}
	}
}

// fileVersion is what tells one state of a file from another.
type fileVersion struct {
	inode, size uint64
	changed     unix.Timespec
}

// newestVersion is the version that a file has now; zero: it is not there.
func newestVersion(file string) fileVersion {
	var st unix.Stat_t
	if file == "" || unix.Stat(file, &st) != nil {
		return fileVersion{}
	}
	return fileVersion{st.Ino, uint64(st.Size), st.Mtim}
}

// beingWritten says whether somebody has a file open for writing: then a read lease
// is refused. Where there are no leases, only the time tells.
func beingWritten(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if err != nil {
		return errors.Is(err, unix.EAGAIN)
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return err != nil
}

// watchAbove watches the cgroups above guarded parents, as many as there are: it
// is in them that a parent is made again.
func (o fileWatch) watchAbove(w *fsnotify.Watcher) {
	watched := w.WatchList()
	for _, parent := range o.Above() {
		for path := filepath.Dir(parent); ; path = filepath.Dir(path) {
			if dir := filepath.Clean(linux.CgroupDir(path)); !slices.Contains(watched, dir) {
				_ = w.Add(dir) // what is not there is watched when it is made
			}
			if path == "/" {
				break
			}
		}
	}
}
