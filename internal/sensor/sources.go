package sensor

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"weir/internal/cgroup"
	"weir/internal/netegress"
	"weir/internal/sensor/witness"
	"weir/internal/taint"
)

// lookEvery is how often the inodes of secret files are looked up again: files are made and replaced.
const lookEvery = 2 * time.Second

// lookForSecrets keeps the kernel's lists of secret files up to date, in every mount namespace that something guarded runs in.
func (d *daemon) lookForSecrets(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failing := false
	for {
		err := d.files.Refresh(d.spaces())
		if err != nil && !failing { // told once, until it succeeds
			d.fail("look for secret files", nil, err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-d.unseen:
		}
	}
}

// spaces are the mount namespaces of guarded processes other than this process's own, each with one process.
func (d *daemon) spaces() map[uint64]int {
	found := map[uint64]int{}
	if !d.files.Listed() {
		return found
	}
	for _, c := range d.state.List() {
		pids, err := cgroup.Tree(c.Cgroup)
		if err != nil {
			continue // it has just been removed
		}
		for _, pid := range pids {
			if ns, ok := mountSpace(strconv.Itoa(pid)); ok && ns != d.space {
				found[ns] = pid
			}
		}
	}
	return found
}

func mountSpace(process string) (uint64, bool) {
	var st syscall.Stat_t
	err := syscall.Stat("/proc/"+process+"/ns/mnt", &st)
	return st.Ino, err == nil
}

// sawProcess has a mount namespace that is new looked at soon.
func (d *daemon) sawProcess(pid int) {
	if !d.files.Listed() {
		return
	}
	if ns, ok := mountSpace(strconv.Itoa(pid)); !ok || ns == d.space || d.files.Knows(ns) {
		return
	}
	select {
	case d.unseen <- struct{}{}:
	default: // it is looked at soon anyhow
	}
}

// takeUp puts in force for good what programs have tainted and nobody told of, since the ring was full: it is stored, and logged.
// seen is what it found the time before, which may only have been on its way.
func (d *daemon) takeUp(seen map[taint.Unknown]bool) error {
	all, err := d.state.Unknown()
	if err != nil {
		return err
	}
	now := map[taint.Unknown]bool{}
	for _, u := range all {
		now[u] = true
		path := witness.Path(u.Cgroup)
		if !seen[u] || path == "" {
			continue
		}
		if _, err := d.taint(taint.Change{Container: path, Bits: u.Bits, Source: "kernel", Why: "its record was lost", InKernel: true}); err != nil {
			return fmt.Errorf("take up taint of %s: %w", path, err)
		}
	}
	clear(seen)
	for u := range now {
		seen[u] = true
	}
	return nil
}

// fromOutside puts a taint in force for good that a packet from or to an untrusted destination has set.
func (d *daemon) fromOutside(r netegress.Record) {
	path := witness.Path(r.Container)
	if path == "" {
		return // it has been removed
	}
	to := r.To.Event()
	c := taint.Change{
		Container: path, Bits: taint.Corruption, Source: "destination", Grant: r.Grant,
		Why: fmt.Sprintf("%s port %d (%s) is not trusted", to.Address, to.Port, to.Protocol),
	}
	if _, err := d.taint(c); err != nil {
		d.fail("tell of an untrusted destination", nil, err)
	}
}
