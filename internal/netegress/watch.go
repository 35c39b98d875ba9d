package netegress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"

	"weir/internal/bpfobj"
	"weir/internal/linux"

	"weir/internal/taint"
)

// StaleAfter is the age of a heartbeat at which the kernel takes the daemon for dead, as HEARTBEAT_NS of bpf/hold.h.
const StaleAfter = 3 * time.Second

const (
	startTime  = 15 * time.Second // for a daemon to make its first beat
	watchEvery = 500 * time.Millisecond
	leaveEvery = 100 * time.Millisecond
	giveUp     = 10 * time.Second
)

// Watch lets held processes go on whenever the daemon was killed, has not beaten for 3 s at two looks,
// or not begun to for 15 s: their call is tried again, finds nobody to hold it, and fails
// with EPERM. Commands that were held before they began are killed. Once ctx has
// ended, since the daemon has, it returns when nothing is held and nothing can be
// held any more, or another daemon is at work; from then on it tries again for 10 s
// what fails.
func Watch(ctx context.Context, pinDir string) error {
	w := &watcher{dir: pinDir, begun: time.Now()}
	defer w.close()
	left := 0
	lastGood := time.Now()
	for {
		every := watchEvery
		if ctx.Err() != nil {
			w.ended, every = true, leaveEvery
		}
		held, err := w.release()
		if err == nil {
			lastGood = time.Now()
		} else if !w.ended || time.Since(lastGood) > giveUp {
			return err
		}
		if w.ended {
			// what was being held during one look is found by the next
			if left++; err != nil || held != 0 || !w.dead() {
				left = 0
			}
			if w.replaced || left > 1 {
				return nil
			}
		}
		select {
		case <-time.After(every):
		case <-done(ctx, w.ended):
		}
	}
}

// done is ctx's, or nil once that is known to have ended.
func done(ctx context.Context, ended bool) <-chan struct{} {
	if ended {
		return nil
	}
	return ctx.Done()
}

// watcher looks at the maps of a daemon that may be dead.
type watcher struct {
	dir        string
	begun      time.Time
	ended      bool // the daemon has
	config     seenMap
	held       seenMap
	cgroups    seenMap
	beat, last uint64 // of the daemon; when it had ended
	silent     uint64 // the beat that was stale at the last look
	lastKnown  bool
	replaced   bool // another daemon is at work
}

func (w *watcher) close() {
	for _, m := range []*ebpf.Map{w.config.Map, w.held.Map, w.cgroups.Map} {
		if m != nil {
			m.Close()
		}
	}
}

// dead says whether nobody is there who could answer.
func (w *watcher) dead() bool {
	if w.beat == 0 {
		return w.ended || time.Since(w.begun) > startTime
	}
	if !stale(w.beat) {
		w.silent = 0
		return false
	}
	again := w.silent == w.beat || w.ended // a machine that stood still lets the daemon beat between two looks
	w.silent = w.beat
	return again
}

// stale says whether the daemon that made this beat, if any, is taken for dead.
func stale(beat uint64) bool {
	now := taint.Now()
	return beat != 0 && now > beat && time.Duration(now-beat) > StaleAfter
}

// seenMap is a pinned map as last seen: a bpf file system can be unmounted.
type seenMap struct {
	*ebpf.Map
	pin os.FileInfo
}

// find opens the maps that are pinned now, unless they are open; those that are not pinned stay as they were.
func (w *watcher) find() error {
	for name, m := range map[string]*seenMap{"config": &w.config, "held": &w.held, "cgroups": &w.cgroups} {
		pin, err := os.Stat(filepath.Join(w.dir, name))
		if errors.Is(err, os.ErrNotExist) || err == nil && m.pin != nil && os.SameFile(pin, m.pin) {
			continue
		}
		if err != nil {
			return fmt.Errorf("find pinned %s: %w", name, err)
		}
		now, err := openPinned(w.dir, name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open pinned %s: %w", name, err)
		}
		if m.Map != nil {
			m.Close()
		}
		m.Map, m.pin = now, pin
	}
	return nil
}

// release lets what is held go on when the daemon is dead, and counts it once that has ended.
func (w *watcher) release() (held int, err error) {
	if err := w.find(); err != nil {
		return 0, err
	}
	if w.config.Map == nil || w.held.Map == nil || w.cgroups.Map == nil {
		return 0, nil // no daemon has come so far
	}
	var c egressSettings
	if err := w.config.Lookup(uint32(0), &c); err != nil {
		return 0, fmt.Errorf("read heartbeat: %w", err)
	}
	if w.beat = c.Heartbeat; w.beat != 0 {
		w.begun = time.Now()
	}
	if w.ended && !w.lastKnown {
		w.last, w.lastKnown = w.beat, true
	}
	w.replaced = w.ended && w.beat != w.last
	dead := w.dead()
	if !dead && !w.ended {
		return 0, nil // the daemon looks after what is held
	}
	end := dead && !w.replaced
	stopped, err := w.eachStopped(end)
	frozen, err2 := w.eachFrozen(end)
	return stopped + frozen, errors.Join(err, err2)
}

// eachStopped counts commands that were stopped for a verdict. end: those that had not begun are killed, though they may be
// frozen by now, others go on.
func (w *watcher) eachStopped(end bool) (stopped int, err error) {
	var errs []error
	err = bpfobj.Each(w.held.Map, func(key egressHoldKey, h egressHold) {
		began := key.Dest != (egressDest{})
		st, err := linux.ReadStat(int(key.Tgid))
		if err != nil || !linux.SameStart(st.Start, h.Start) || began && st.State != 'T' {
			return
		}
		stopped++
		switch {
		case !end:
		case began:
			errs = append(errs, sendContinue(int(key.Tgid), h.Start)) // the others are ended all the same
		default:
			errs = append(errs, killProcess(int(key.Tgid), h.Start)) // it was to be judged before it begins
		}
	})
	if err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		errs = append(errs, fmt.Errorf("list questions: %w", err))
	}
	return stopped, errors.Join(errs...)
}

// eachFrozen counts the cgroups of commands that are frozen. end: they go on.
func (w *watcher) eachFrozen(end bool) (frozen int, err error) {
	var errs []error
	err = bpfobj.Each(w.cgroups.Map, func(id uint64, st egressState) {
		if st.Flags&egressStateFlagSTATE_GRANT == 0 {
			return
		}
		path, err := linux.CgroupPath(id)
		if err != nil || !linux.CgroupToFreeze(path) || !linux.CgroupPopulated(path) {
			return
		}
		frozen++
		if end {
			errs = append(errs, linux.FreezeCgroup(path, false))
		}
	})
	if err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		errs = append(errs, fmt.Errorf("list cgroups: %w", err))
	}
	return frozen, errors.Join(errs...)
}

// Detach takes everything out of force: from then on nothing is denied. The
// caller makes sure that nothing tainted is left.
func Detach(pinDir string) error {
	links := filepath.Join(pinDir, "links")
	for _, dir := range []string{links, pinDir} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("list pins: %w", err)
		}
		for _, entry := range entries {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && dir == links {
				return fmt.Errorf("remove pin: %w", err)
			}
		}
	}
	for _, dir := range []string{links, pinDir} {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove pin directory: %w", err)
		}
	}
	return nil
}
