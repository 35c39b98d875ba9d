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

// watch loads the policy again when its file changes, and guards parents as soon as they are made again. It watches directories: editors
// put a new file in the place of the old one.
func (d *daemon) watch(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the policy: %w", err)
	}
	defer w.Close()
	file := d.opts.PolicyPath
	if file != "" {
		if err := w.Add(filepath.Dir(file)); err != nil {
			d.failed("watch the policy: it is loaded again on SIGHUP only", err)
		}
	}
	var reload <-chan time.Time
	writing := 0 // how often it was found so
	for {
		d.watchAbove(w)
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.Errors:
			d.failed("watch files", err) // what was missed is found by housekeeping
			reload = time.After(settled)
		case e := <-w.Events:
			if linux.PathWithin(e.Name, linux.CgroupRoot) {
				if e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) {
					d.watchAbove(w)
					d.parents.MadeAgain(strings.TrimPrefix(e.Name, linux.CgroupRoot))
				}
			} else if reload == nil && d.changed() {
				reload = time.After(settled)
			}
		case <-reload:
			reload = nil
			switch {
			case !d.changed():
			case beingWritten(file):
				reload = time.After(lookAgain)
				if writing++; writing == tellWriting {
					d.refused(fmt.Errorf("%s: somebody has it open for writing: close it", file))
				}
				continue
			default:
				if err := d.Reload(ctx); err != nil {
					d.opts.Logger.WithError(err).Error("reload policy")
				}
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
func (d *daemon) watchAbove(w *fsnotify.Watcher) {
	watched := w.WatchList()
	for _, parent := range d.parents.Watched() {
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
