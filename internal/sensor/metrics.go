package sensor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/cgroup"
	"weir/internal/cop"
	"weir/internal/gate"
	"weir/internal/metrics"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/sensor/journal"
	"weir/internal/taint"
)

// MetricsSocket is the name of the socket in the run directory that figures are read from.
const MetricsSocket = "metrics.sock"

// openMetrics listens, so that a port that is taken ends the start.
func (d *daemon) openMetrics() error {
	at := d.policies.Base().Metrics.Listen
	switch at {
	case policy.MetricsOff:
		return nil
	case policy.MetricsUnix:
		at = filepath.Join(d.opts.RunDir, MetricsSocket)
	}
	var err error
	d.figures, err = metrics.Listen(metrics.Options{Listen: at, Source: measured{d}, Refuse: d.refusePeer, RefuseSocket: d.refuseSocket})
	return err
}

// serveMetrics answers from the start on: what is not in force yet is not ready. When it breaks, what denies goes on.
func (d *daemon) serveMetrics(ctx context.Context, group *errgroup.Group) {
	if d.figures == nil {
		return
	}
	group.Go(func() error {
		if err := d.figures.Serve(ctx); err != nil {
			d.fail("show metrics", nil, err)
		}
		return nil
	})
}

// measured is the daemon as metrics see it.
type measured struct{ *daemon }

// Health implements metrics.Source.
func (m measured) Health() metrics.Health {
	mode := m.policies.Mode()
	h := metrics.Health{Version: m.opts.Version, Mode: string(mode), Uptime: int64(time.Since(m.started).Seconds()), Degraded: m.degraded}
	if !m.begun.Load() {
		h.Degraded = nil // it is still being found out
		h.Faults = []string{"the sensor is starting"}
		return h
	}
	h.Faults = faults(mode, m.state.SinceBeat, []func() error{m.state.Links.Check, m.execs.Check, func() error { return pinned(m.opts.PinDir) }})
	h.Ready = len(h.Faults) == 0
	return h
}

// faults are why a sensor that has started does not enforce.
func faults(mode policy.Mode, beat func() (time.Duration, bool, error), checks []func() error) []string {
	var all []string
	if mode == policy.Observe {
		all = append(all, "the mode is observe: nothing is denied")
	}
	switch age, beating, err := beat(); {
	case err != nil:
		all = append(all, "heartbeat: "+err.Error())
	case !beating:
		all = append(all, "heartbeat: none yet")
	case age > netegress.StaleAfter:
		all = append(all, fmt.Sprintf("heartbeat: the last was %s ago: the event log or the state's disk keeps the gate waiting", age.Round(time.Second)))
	}
	for _, check := range checks {
		if err := check(); err != nil {
			all = append(all, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	return all
}

func pinned(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "config")); err != nil {
		return fmt.Errorf("the pins are gone: %w", err)
	}
	return nil
}

// Snapshot implements metrics.Source.
func (m measured) Snapshot() metrics.Snapshot {
	s := metrics.Snapshot{Version: m.opts.Version, Started: m.started, Goroutines: runtime.NumGoroutine()}
	s.Events, s.Taints, s.Grants = m.log.Counts()
	s.Containers = map[string]uint64{"none": 0, "corruption": 0, "secret": 0, "both": 0}
	for _, c := range m.state.List() {
		if cgroup.Populated(c.Cgroup) {
			s.Containers[taintLabel(c.Taint)]++
		}
	}
	s.Verdicts, s.Failures = verdicts(m.gate.Counters())
	s.Refusals = m.agents.Refusals()
	waiting, open := uint64(len(m.gate.Pending())), uint64(len(m.egress.Grants()))
	s.Waiting, s.Open = &waiting, &open
	s.Cop = reviews(m.reviewing.Load().Stats())
	for _, part := range []struct {
		name string
		read func(*metrics.Snapshot) error
	}{{"counters", m.counts}, {"maps", m.uses}, {"programs", m.runs}} {
		if err := part.read(&s); err != nil {
			m.opts.Logger.WithError(err).WithField("part", part.name).Warn("collect metrics")
			s.Missing = append(s.Missing, part.name)
		}
	}
	return s
}

func taintLabel(b taint.Bits) string {
	switch names := b.Names(); len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return "both"
}

// verdicts tells verdicts from codes that stand beside one.
func verdicts(counters map[gate.Reason]uint64) (all []metrics.Verdict, failures map[string]uint64) {
	failures = map[string]uint64{}
	for reason, n := range counters {
		if tier := reason.Tier(); tier != "" {
			all = append(all, metrics.Verdict{Tier: tier, Result: reason.Decision().String(), Reason: string(reason), Count: n})
		} else {
			failures[string(reason)] = n
		}
	}
	return all, failures
}

func reviews(st cop.Stats) *metrics.Cop {
	c := &metrics.Cop{
		Reviews: map[string]uint64{"flagged": st.Flagged, "passed": st.Passed, "failed": 0}, Cached: st.Hits, Waiting: st.Waiting,
		Failures: map[string]uint64{}, Bounds: cop.Bounds[:], Latency: st.Latency[:], Took: st.Took,
	}
	for _, code := range cop.Codes {
		c.Failures[string(code)] = st.Failures[code]
		c.Reviews["failed"] += st.Failures[code]
	}
	return c
}

// counts are the counters that weir status shows, too.
func (m measured) counts(s *metrics.Snapshot) error {
	counts, err := m.counters()
	if err != nil {
		return err
	}
	held, dropped := counts["held"], counts["dropped_packet"]
	s.Holds, s.Dropped, s.Denials = &held, &dropped, map[string]uint64{}
	for name, n := range counts {
		if hook, ok := strings.CutPrefix(name, "denied_"); ok {
			s.Denials[hook] = n
		}
	}
	for _, l := range journal.Losses {
		s.Losses = append(s.Losses, metrics.Loss{Stage: l.Stage, What: strings.TrimPrefix(l.Counter, "lost_"), Count: counts[l.Counter]})
	}
	s.Losses = append(s.Losses, metrics.Loss{Stage: "sink", What: "event", Count: counts["lost_sink"]}, metrics.Loss{Stage: "queue", What: "event", Count: counts["lost_queue"]})
	return nil
}

func (m measured) uses(s *metrics.Snapshot) error {
	var all []taint.Use
	var errs []error
	for _, read := range []func() ([]taint.Use, error){m.state.Uses, m.egress.Uses, m.execs.Uses, m.files.Uses} {
		some, err := read()
		all, errs = append(all, some...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, u := range all {
		use := metrics.Use{Name: u.Name, Used: u.Used, Limit: u.Limit}
		if u.Ring {
			s.Rings = append(s.Rings, use)
		} else {
			s.Maps = append(s.Maps, use)
		}
	}
	return nil
}

func (m measured) runs(s *metrics.Snapshot) error {
	on, err := taint.Measured()
	if err != nil || !on {
		return err
	}
	own, err1 := m.state.Links.Runs()
	execs, err2 := m.execs.Runs()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	s.Programs = programs(append(own, execs...))
	return nil
}

// programs adds up those of the same name.
func programs(runs []taint.Run) []metrics.Program {
	byName := map[string]metrics.Program{}
	for _, r := range runs {
		p := byName[r.Name]
		byName[r.Name] = metrics.Program{Name: r.Name, Runs: p.Runs + r.Count, Time: p.Time + r.Time}
	}
	all := []metrics.Program{}
	for _, p := range byName {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b metrics.Program) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
