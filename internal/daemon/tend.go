package daemon

import (
	"context"
	"maps"
	"time"

	"weir/internal/doctor"
	"weir/internal/taint"
)

const (
	housekeepEvery = 2 * time.Second
	looks          = 3  // for taint that nobody told of, after records were lost: the second knows it from one that is on its way
	seldom         = 15 // rounds of housekeeping until the same is done though none was
)

// housekeep tells losses, mends what was broken from outside, and removes what is
// over.
func (d *daemon) housekeep(ctx context.Context) error {
	tick := time.NewTicker(housekeepEvery)
	defer tick.Stop()
	idle, failing := map[string]bool{}, map[string]bool{}
	rounds := 0
	unknown, lost, look := map[taint.Unknown]bool{}, uint64(0), looks
	told, err := recallCounters(d.log, d.memory)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return d.summaries.Keep()
		case <-tick.C:
		}
		counts, err := d.counters()
		if err != nil {
			return err
		}
		if now := counts["lost_secret"] + counts["lost_record"] + counts["lost_record_queue"]; now != lost {
			lost, look = now, looks
		}
		for _, chore := range []struct {
			what string
			do   func() error
		}{
			{"store losses", func() error { return told.Tell(counts) }},
			{"store taint", d.state.Save},
			{"take up what the kernel tainted", func() error {
				if look--; look < -seldom {
					look = looks
				}
				if look < 0 {
					return nil
				}
				return d.takeUp(unknown)
			}},
			{"store summaries", d.summaries.Keep},
			{"keep what is pinned", d.pins.Keep},
			{"have the programs called", doctor.Tracing},
			{"guard parents", d.parents.Tend},
			{"forget removed cgroups", func() error {
				if rounds++; rounds%seldom != 0 { // those of an hour ago
					return nil
				}
				return d.state.Sweep()
			}},
			{"serve folders", d.agents.ServeFolders},
			{"read permission rules again", d.agents.RereadRules},
			{"keep resolvers", d.dns.Tend},
			{"end approvals", d.endOver},
			{"remove session", func() error { return d.Reap(idle) }},
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
	counts["lost_also"] = d.log.AlsoMissed()
	d.approvals.Count(counts)
	maps.Copy(counts, d.dns.Counters())
	counts["lost_record_queue"] = d.lostRecords.Load()
	return counts, nil
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
