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
// call is tried again, finds nobody to hold it, and fails with EPERM. It returns
// when ctx has ended and nothing is held any more, or the daemon beats again.
func Watch(ctx context.Context, pinDir string) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		held, stale, err := release(pinDir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if ctx.Err() != nil && (held == 0 || !stale) {
			return nil
		}
		<-tick.C
	}
}

// release wakes what is held when the heartbeat is stale, and counts it.
func release(pinDir string) (held int, stale bool, err error) {
	config, err := pinned(pinDir, "config")
	if err != nil {
		return 0, false, fmt.Errorf("open pinned settings: %w", err)
	}
	defer config.Close()
	var c egressSettings
	if err := config.Lookup(uint32(0), &c); err != nil {
		return 0, false, fmt.Errorf("read heartbeat: %w", err)
	}
	now := taint.Now()
	stale = c.Heartbeat != 0 && now > c.Heartbeat && time.Duration(now-c.Heartbeat) > staleAfter
	holds, err := pinned(pinDir, "holds")
	if err != nil {
		return 0, stale, fmt.Errorf("open pinned questions: %w", err)
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
		if stale {
			if err := cont(int(key.Tgid), h.Start); err != nil {
				return held, stale, err
			}
		}
	}
	if err := it.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return held, stale, fmt.Errorf("list questions: %w", err)
	}
	return held, stale, nil
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
