package sensor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/sensor/journal"
	"weir/internal/sensor/store"
	"weir/internal/taint"
)

const housekeepEvery = 2 * time.Second

// housekeep tells losses, mends what was broken from outside, and removes what is
// over.
func (d *daemon) housekeep(ctx context.Context) error {
	tick := time.NewTicker(housekeepEvery)
	defer tick.Stop()
	idle, failing := map[string]bool{}, map[string]bool{}
	unknown := map[taint.Unknown]bool{}
	told, err := journal.Recall(d.log, d.memory)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return d.keepCounts()
		case <-tick.C:
		}
		counts, err := d.counters()
		if err != nil {
			return err
		}
		for _, chore := range []struct {
			what string
			do   func() error
		}{
			{"store losses", func() error { return told.Tell(counts) }},
			{"store taint", d.state.Save},
			{"take up what the kernel tainted", func() error { return d.takeUp(unknown) }},
			{"store summaries", d.keepCounts},
			{"keep what is pinned", d.keepPins},
			{"guard parents", d.parents.Tend},
			{"forget removed cgroups", d.state.Sweep},
			{"serve folders", d.agents.ServeFolders},
			{"remove session", func() error { return d.reap(idle) }},
		} {
			err := chore.do()
			if err != nil && !failing[chore.what] { // told once, until it succeeds
				d.fail(chore.what, nil, err)
			}
			failing[chore.what] = err != nil
		}
	}
}

// counters are the kernel's, with what was lost on this side of it.
func (d *daemon) counters() (map[string]uint64, error) {
	counts, err := d.egress.Counters()
	if err != nil {
		return nil, err
	}
	counts["lost_unreadable"] = d.execs.Malformed()
	counts["lost_sink"], counts["lost_queue"] = d.log.Missed()
	d.countAnnouncements(counts)
	d.mu.Lock()
	defer d.mu.Unlock()
	counts["lost_record_queue"] = d.lost["queue"]
	return counts, nil
}

// keepCounts stores the summaries of sessions when they have changed.
func (d *daemon) keepCounts() error {
	d.mu.Lock()
	data, err := json.Marshal(d.counts)
	same := string(data) == d.counted
	d.mu.Unlock()
	if err != nil || same {
		return err
	}
	if err := d.memory.Put(store.Summaries, json.RawMessage(data)); err != nil {
		return err
	}
	d.mu.Lock()
	d.counted = string(data)
	d.mu.Unlock()
	return nil
}

// able says whether verdicts can be made: the heartbeat stops while a disk keeps
// the gate waiting, so that nobody is held for an answer that cannot come.
func (d *daemon) able() bool {
	if d.probing == nil {
		done := make(chan struct{})
		d.probing, d.progress = done, d.gate.Progress()
		go func() {
			defer close(done)
			d.gate.Alive()
		}()
	}
	select {
	case <-d.probing:
		d.probing = nil
		return true
	case <-time.After(time.Second):
		before := d.progress
		d.progress = d.gate.Progress()
		return d.progress != before // many questions on a slow disk
	}
}

// keepPins pins again what is not pinned any more: what is in force hangs on this
// process then. A bpf file system that was unmounted is mounted again.
func (d *daemon) keepPins() error {
	if _, err := os.Stat(filepath.Join(d.opts.PinDir, "config")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !d.pinless {
		d.fail("the pins are gone", nil, errors.New("what is tainted stays denied while the sensor runs; they are made again"))
	}
	d.pinless = true
	if err := mountBPF(d.opts.PinDir); err != nil {
		return err
	}
	if err := errors.Join(d.state.Restore(), d.egress.Restore(), d.execs.Restore(), d.files.Restore()); err != nil {
		return err
	}
	d.pinless = false
	d.write(event.Event{Kind: event.Error, Message: "the pins are back in " + d.opts.PinDir})
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
