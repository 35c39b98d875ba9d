package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pinnedPart pins maps.
type pinnedPart interface {
	Pins() []string // names of the maps
	Restore() error // pins them again
}

// pinSet are all below one directory.
type pinSet struct {
	dir   string
	parts []pinnedPart
	names []string
	tell  func(text string)
	gone  bool
	whole version // of the directory, when all were there
}

// newPins takes what the parts pinned in dir; tell is called when pins are gone, and when they are back.
func newPins(dir string, tell func(text string), parts ...pinnedPart) *pinSet {
	p := &pinSet{dir: dir, parts: parts, tell: tell}
	for _, part := range parts {
		p.names = append(p.names, part.Pins()...)
	}
	slices.Sort(p.names)
	p.names = slices.Compact(p.names) // some have a map in common
	return p
}

// Check says which of the maps' pins are gone.
func (p *pinSet) Check() error {
	gone, err := p.missing()
	if err == nil && len(gone) > 0 {
		err = errors.New(p.told(gone))
	}
	return err
}

func (p *pinSet) missing() ([]string, error) {
	var gone []string
	for _, name := range p.names {
		_, err := os.Stat(filepath.Join(p.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, name)
		} else if err != nil {
			return nil, fmt.Errorf("look at pins: %w", err)
		}
	}
	return gone, nil
}

func (p *pinSet) told(gone []string) string {
	if len(gone) == len(p.names) {
		return "the pins are gone"
	}
	return "the pins are gone (" + strings.Join(gone, ", ") + ")"
}

// version is a state of a directory: what is removed from it changes its time, which nobody can set, and another file system has
// another device.
type version struct {
	device, inode uint64
	changed       unix.Timespec
}

// unclear is how long after a change another may get the same time.
const unclear = 100 * time.Millisecond

// now is the version of the directory; zero where it may change without another one.
func (p *pinSet) now() version {
	var st unix.Stat_t
	if unix.Stat(p.dir, &st) != nil || time.Since(time.Unix(st.Ctim.Unix())) < unclear {
		return version{}
	}
	return version{st.Dev, st.Ino, st.Ctim}
}

// Keep pins again what is not pinned any more: what is in force hangs on this
// process then. A bpf file system that was unmounted is mounted again.
func (p *pinSet) Keep() error {
	now := p.now()
	if now != (version{}) && now == p.whole {
		return nil // as nearly always
	}
	gone, err := p.missing()
	if err != nil {
		return err
	}
	if len(gone) == 0 {
		p.whole = now
		return nil
	}
	if !p.gone {
		p.tell(p.told(gone) + ": what is tainted stays denied while the sensor runs; they are made again")
	}
	p.gone = true
	if err := mountBPF(p.dir); err != nil {
		return err
	}
	var errs []error
	for _, part := range p.parts {
		errs = append(errs, part.Restore())
	}
	if err := errors.Join(append(errs, p.Check())...); err != nil {
		return err
	}
	p.gone = false
	p.tell("the pins are back in " + p.dir)
	return nil
}

const bpfRoot = "/sys/fs/bpf"

// mountBPF mounts a bpf file system where everybody expects it, if dir is to be
// below and none is there.
func mountBPF(dir string) error {
	var st unix.Statfs_t
	if !strings.HasPrefix(dir, bpfRoot+"/") {
		return nil
	}
	if err := unix.Statfs(bpfRoot, &st); err != nil || st.Type == unix.BPF_FS_MAGIC {
		return err
	}
	if err := unix.Mount("bpf", bpfRoot, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return fmt.Errorf("mount a bpf file system at %s: %w", bpfRoot, err)
	}
	return nil
}
