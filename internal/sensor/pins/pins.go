package pins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Part is what pins something of its own.
type Part interface {
	Restore() error // pins it again
}

// Pins are all below one directory.
type Pins struct {
	dir   string
	parts []Part
	tell  func(text string)
	gone  bool
}

// New knows where they are; tell is called when they are gone, and when they are back.
func New(dir string, tell func(text string), parts ...Part) *Pins {
	return &Pins{dir: dir, parts: parts, tell: tell}
}

// Keep pins again what is not pinned any more: what is in force hangs on this
// process then. A bpf file system that was unmounted is mounted again.
func (p *Pins) Keep() error {
	if _, err := os.Stat(filepath.Join(p.dir, "config")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !p.gone {
		p.tell("the pins are gone: what is tainted stays denied while the sensor runs; they are made again")
	}
	p.gone = true
	if err := mountBPF(p.dir); err != nil {
		return err
	}
	var errs []error
	for _, part := range p.parts {
		errs = append(errs, part.Restore())
	}
	if err := errors.Join(errs...); err != nil {
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
