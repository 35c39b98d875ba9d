package metrics

import "github.com/prometheus/client_golang/prometheus"

// collector makes series of snapshots.
type collector struct {
	source Source
	series series
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.series {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	snap := c.source.Snapshot()
	w := writer{c.series, out}
	w.gauge("build_info", 1, snap.Version)
	w.gauge("start_time_seconds", float64(snap.Started.UnixNano())/1e9)
	w.gauge("goroutines", float64(snap.Goroutines))
	w.gauge("enforcing", truth(c.source.Health().Ready))
	w.gauge("policy_refused", truth(snap.Refused))
	w.gauge("rule_files_refused", float64(snap.Faulty))
	for taint, n := range snap.Containers {
		w.gauge("containers", float64(n), taint)
	}
	for _, part := range snap.Missing {
		w.gauge("collection_failed", 1, part)
	}
	for _, v := range snap.Verdicts {
		w.count("verdicts_total", float64(v.Count), v.Tier, v.Result, v.Reason)
	}
	for _, l := range snap.Losses {
		w.count("lost_total", float64(l.Count), l.Stage, l.What)
	}
	w.counts("gate_failures_total", snap.Failures)
	w.counts("denials_total", snap.Denials)
	w.counts("grants_total", snap.Grants)
	w.counts("taints_total", snap.Taints)
	w.counts("events_total", snap.Events)
	w.counts("guard_refusals_total", snap.Refusals)
	w.counts("invariants_broken_total", snap.Broken)
	w.counts("model_refusals_total", snap.Models)
	if snap.Holds != nil {
		w.count("holds_total", float64(*snap.Holds))
	}
	if snap.Dropped != nil {
		w.count("dropped_packets_total", float64(*snap.Dropped))
	}
	if snap.Waiting != nil {
		w.gauge("approvals_waiting", float64(*snap.Waiting))
	}
	if snap.Open != nil {
		w.gauge("grants_open", float64(*snap.Open))
	}
	for _, m := range snap.Maps {
		w.gauge("map_entries", float64(m.Used), m.Name)
		w.gauge("map_entries_limit", float64(m.Limit), m.Name)
	}
	for _, r := range snap.Rings {
		w.gauge("ring_used_bytes", float64(r.Used), r.Name)
		w.gauge("ring_size_bytes", float64(r.Limit), r.Name)
	}
	for _, p := range snap.Programs {
		w.count("program_run_seconds_total", p.Time.Seconds(), p.Name)
		w.count("program_runs_total", float64(p.Runs), p.Name)
	}
	if snap.Cop != nil {
		w.cop(*snap.Cop)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// writer writes constant metrics.
type writer struct {
	series series
	out    chan<- prometheus.Metric
}

func (w writer) gauge(name string, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(w.series[name], prometheus.GaugeValue, v, labels...)
	w.metric(name, m, err)
}

func (w writer) count(name string, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(w.series[name], prometheus.CounterValue, v, labels...)
	w.metric(name, m, err)
}

func (w writer) counts(name string, by map[string]uint64) {
	for label, n := range by {
		w.count(name, float64(n), label)
	}
}

// metric writes m; a label that is no UTF-8, say, is told to who reads.
func (w writer) metric(name string, m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(w.series[name], err)
	}
	w.out <- m
}

func (w writer) cop(c Cop) {
	w.counts("cop_reviews_total", c.Reviews)
	w.counts("cop_failures_total", c.Failures)
	w.count("cop_cached_total", float64(c.Cached))
	w.gauge("cop_waiting", float64(c.Waiting))
	buckets, below := map[float64]uint64{}, uint64(0)
	for i, n := range c.Latency {
		below += n
		if i < len(c.Bounds) {
			buckets[c.Bounds[i].Seconds()] = below
		}
	}
	m, err := prometheus.NewConstHistogram(w.series["cop_request_duration_seconds"], below, c.Took.Seconds(), buckets)
	w.metric("cop_request_duration_seconds", m, err)
}
