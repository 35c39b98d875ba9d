package daemon

import (
	"errors"
	"fmt"

	"weir/internal/netegress"
	"weir/internal/taint"
)

// takeUp puts in force for good what programs have tainted and nobody told of, since the ring was full: it is stored, and logged.
// seen is what it found the time before, which may only have been on its way.
func (d *daemon) takeUp(seen map[taint.Unknown]bool) error {
	lost, failed := d.state.Mend()
	for _, l := range lost {
		d.breaks("taint", fmt.Sprintf("the kernel had lost %v of cgroup %d", l.Bits.Names(), l.Cgroup))
	}
	all, err := d.state.Unknown()
	if err != nil {
		return errors.Join(failed, err)
	}
	now := map[taint.Unknown]bool{}
	for _, u := range all {
		now[u] = true
		path := cgroupPath(u.Cgroup)
		if !seen[u] || path == "" {
			continue
		}
		if _, err := d.taint(taint.Change{Container: path, Bits: u.Bits, Source: "kernel", Why: "its record was lost", InKernel: true}); err != nil {
			return errors.Join(failed, fmt.Errorf("take up taint of %s: %w", path, err))
		}
	}
	clear(seen)
	for u := range now {
		seen[u] = true
	}
	return failed
}

// fromOutside puts a taint in force for good that a packet from or to an untrusted destination has set.
func (d *daemon) fromOutside(r netegress.Record) {
	path := cgroupPath(r.Container)
	if path == "" {
		return // it has been removed
	}
	to := r.To.Event()
	c := taint.Change{
		Container: path, Bits: taint.Corruption, Source: "destination", Grant: r.Grant, PID: r.Process.PID, Start: r.Process.Start,
		Why: fmt.Sprintf("%s port %d (%s) is not trusted", to.Address, to.Port, to.Protocol),
	}
	if _, err := d.taint(c); err != nil {
		d.fail("tell of an untrusted destination", nil, err)
	}
}
