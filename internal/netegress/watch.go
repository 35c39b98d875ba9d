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

	"weir/internal/procfs"
	"weir/internal/taint"
)

const (
	staleAfter = 3 * time.Second // as HEARTBEAT_NS of bpf/egress.bpf.c
	watchEvery = 500 * time.Millisecond
)

// Watch wakes held processes whenever the daemon has not beaten for 3 s: their
// call is tried again, finds nobody to hold it, and fails with EPERM. Once ctx has
// ended, it returns when nothing is held and nothing can be held any more, or a
// daemon beats again.
func Watch(ctx context.Context, pinDir string) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var last uint64 // beat of the daemon that has ended
	for {
		ended := ctx.Err() != nil
		held, beat, err := release(pinDir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if ended && last == 0 {
			last = beat
		}
		// the kernel goes on holding until the last beat is stale
		if ended && (beat == 0 || beat != last || held == 0 && stale(beat)) {
			return nil
		}
		<-tick.C
	}
}

// stale says whether the daemon that made this beat, if any, is taken for dead.
func stale(beat uint64) bool {
	now := taint.Now()
	return beat != 0 && now > beat && time.Duration(now-beat) > staleAfter
}

// release wakes what is held when the heartbeat is stale, and counts it.
func release(pinDir string) (held int, beat uint64, err error) {
	config, err := pinned(pinDir, "config")
	if err != nil {
		return 0, 0, fmt.Errorf("open pinned settings: %w", err)
	}
	defer config.Close()
	var c egressSettings
	if err := config.Lookup(uint32(0), &c); err != nil {
		return 0, 0, fmt.Errorf("read heartbeat: %w", err)
	}
	beat = c.Heartbeat
	dead := stale(beat)
	holds, err := pinned(pinDir, "holds")
	if err != nil {
		return 0, beat, fmt.Errorf("open pinned questions: %w", err)
	}
	defer holds.Close()
	var key egressHoldKey
	var h egressHold
	it := holds.Iterate()
	for it.Next(&key, &h) {
		st, err := procfs.ReadStat(int(key.Tgid))
		if err != nil || h.Stopped == 0 || st.State != 'T' || !procfs.SameStart(st.Start, h.Start) {
			continue
		}
		held++
		if dead {
			if err := cont(int(key.Tgid), h.Start); err != nil {
				return held, beat, err
			}
		}
	}
	if err := it.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return held, beat, fmt.Errorf("list questions: %w", err)
	}
	return held, beat, nil
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
