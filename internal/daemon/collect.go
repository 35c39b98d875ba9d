package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"weir/internal/bpfobj"
	"weir/internal/cop"
	"weir/internal/doctor"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/metrics"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/taint"
)

// collector collects the daemon's figures when it is asked. It is a metrics.Source.
type collector struct{ d *daemon }

// Health implements metrics.Source.
func (f collector) Health() metrics.Health {
	mode := f.d.policies.Mode()
	h := metrics.Health{Version: f.d.opts.Version, Mode: string(mode), Uptime: int64(time.Since(f.d.started).Seconds())}
	if !f.d.begun.Load() {
		h.Faults = []string{"the sensor is starting"}
		return h
	}
	h.Degraded = f.degraded()
	h.Faults = faults(mode, f.d.state.SinceBeat, []func() error{f.d.state.Links.Check, f.d.execs.Check, f.d.pins.Check, doctor.Tracing})
	h.Ready = len(h.Faults) == 0
	return h
}

// degraded is what does not work as it should, though the sensor enforces. Who may read it may not know the policy (F40).
func (f collector) degraded() []string {
	all := f.d.degradations()
	if f.d.refusal.Load() != nil {
		all = append(all, "the policy file is refused, and the policy before it stays in force: weir status says why")
	}
	return all
}

// degradations are what does not work as it should, beside the policy.
func (d *daemon) degradations() []string {
	all := slices.Clone(d.degraded)
	for _, file := range d.agents.Faulty() {
		all = append(all, "rules for tools in "+file+" are not in force as they stand there: weir events says which, and why")
	}
	return all
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

// Snapshot implements metrics.Source.
func (f collector) Snapshot() metrics.Snapshot {
	s := metrics.Snapshot{Version: f.d.opts.Version, Started: f.d.started, Goroutines: runtime.NumGoroutine(), Refused: f.d.refusal.Load() != nil, Faulty: uint64(len(f.d.agents.Faulty()))}
	s.Events, s.Taints, s.Grants = f.d.log.Counts()
	s.Containers = map[string]uint64{"none": 0, "corruption": 0, "secret": 0, "both": 0}
	for _, c := range f.d.state.List() {
		if linux.CgroupPopulated(c.Cgroup) {
			s.Containers[taintLabel(c.Taint)]++
		}
	}
	s.Verdicts, s.Failures = verdicts(f.d.gate.Counters())
	s.Refusals = f.d.agents.refusals.Counts()
	s.Models, s.Broken = f.d.models.Counts(), f.d.brokenCounts()
	waiting, open := uint64(len(f.d.gate.Pending())), uint64(len(f.d.egress.Grants()))
	s.Waiting, s.Open = &waiting, &open
	s.Cop = reviews(f.d.reviewing.Load().Stats())
	for _, part := range []struct {
		name string
		read func(*metrics.Snapshot) error
	}{{"counters", f.counts}, {"maps", f.uses}, {"programs", f.runs}} {
		if err := part.read(&s); err != nil {
			f.d.opts.Logger.WithError(err).WithField("part", part.name).Warn("collect metrics")
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

func (f collector) counts(s *metrics.Snapshot) error {
	counts, err := f.d.counters()
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
	for _, l := range losses {
		s.Losses = append(s.Losses, metrics.Loss{Stage: l.Stage, What: strings.TrimPrefix(l.Counter, "lost_"), Count: counts[l.Counter]})
	}
	s.Losses = append(s.Losses, metrics.Loss{Stage: "sink", What: "event", Count: counts["lost_sink"]}, metrics.Loss{Stage: "queue", What: "event", Count: counts["lost_queue"]}, metrics.Loss{Stage: "also", What: "event", Count: counts["lost_also"]})
	return nil
}

func (f collector) uses(s *metrics.Snapshot) error {
	var all []bpfobj.MapStat
	var errs []error
	for _, read := range []func() ([]bpfobj.MapStat, error){f.d.state.MapStats, f.d.egress.MapStats, f.d.execs.MapStats, f.d.files.MapStats, f.d.volumes.MapStats, f.d.dns.MapStats} {
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

func (f collector) runs(s *metrics.Snapshot) error {
	on, err := bpfobj.Measured()
	if err != nil || !on {
		return err
	}
	own, err1 := f.d.state.Links.Runs()
	execs, err2 := f.d.execs.Runs()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	s.Programs = programs(append(own, execs...))
	return nil
}

// programs adds up those of the same name.
func programs(runs []bpfobj.ProgramStat) []metrics.Program {
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
