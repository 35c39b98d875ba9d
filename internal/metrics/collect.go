package metrics

import "github.com/prometheus/client_golang/prometheus"

// collector makes series of snapshots.
type collector struct {
	source Source
	series series
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.series.all() {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s, snap := c.series, c.source.Snapshot()
	w := writer{out}
	w.gauge(s.build, 1, snap.Version)
	w.gauge(s.start, float64(snap.Started.UnixNano())/1e9)
	w.gauge(s.goroutines, float64(snap.Goroutines))
	w.gauge(s.ready, truth(c.source.Health().Ready))
	w.gauge(s.refused, truth(snap.Refused))
	w.gauge(s.faulty, float64(snap.Faulty))
	for taint, n := range snap.Containers {
		w.gauge(s.containers, float64(n), taint)
	}
	for _, part := range snap.Missing {
		w.gauge(s.missing, 1, part)
	}
	for _, v := range snap.Verdicts {
		w.count(s.verdicts, float64(v.Count), v.Tier, v.Result, v.Reason)
	}
	for _, l := range snap.Losses {
		w.count(s.lost, float64(l.Count), l.Stage, l.What)
	}
	w.counts(s.failures, snap.Failures)
	w.counts(s.denials, snap.Denials)
	w.counts(s.grants, snap.Grants)
	w.counts(s.taints, snap.Taints)
	w.counts(s.events, snap.Events)
	w.counts(s.refusals, snap.Refusals)
	w.counts(s.models, snap.Models)
	w.one(s.holds, prometheus.CounterValue, snap.Holds)
	w.one(s.dropped, prometheus.CounterValue, snap.Dropped)
	w.one(s.waiting, prometheus.GaugeValue, snap.Waiting)
	w.one(s.open, prometheus.GaugeValue, snap.Open)
	for _, m := range snap.Maps {
		w.gauge(s.mapEntries, float64(m.Used), m.Name)
		w.gauge(s.mapLimit, float64(m.Limit), m.Name)
	}
	for _, r := range snap.Rings {
		w.gauge(s.ringUsed, float64(r.Used), r.Name)
		w.gauge(s.ringSize, float64(r.Limit), r.Name)
	}
	for _, p := range snap.Programs {
		w.count(s.programTime, p.Time.Seconds(), p.Name)
		w.count(s.programRuns, float64(p.Runs), p.Name)
	}
	if snap.Cop != nil {
		w.cop(s, *snap.Cop)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// writer writes constant metrics.
type writer struct{ out chan<- prometheus.Metric }

func (w writer) gauge(d *prometheus.Desc, v float64, labels ...string) {
	w.metric(prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...))(d)
}

func (w writer) count(d *prometheus.Desc, v float64, labels ...string) {
	w.metric(prometheus.NewConstMetric(d, prometheus.CounterValue, v, labels...))(d)
}

func (w writer) counts(d *prometheus.Desc, by map[string]uint64) {
	for label, n := range by {
		w.count(d, float64(n), label)
	}
}

func (w writer) one(d *prometheus.Desc, kind prometheus.ValueType, n *uint64) {
	if n != nil {
		w.metric(prometheus.NewConstMetric(d, kind, float64(*n)))(d)
	}
}

// metric writes m; a label that is no UTF-8, say, is told to who reads.
func (w writer) metric(m prometheus.Metric, err error) func(*prometheus.Desc) {
	return func(d *prometheus.Desc) {
		if err != nil {
			m = prometheus.NewInvalidMetric(d, err)
		}
		w.out <- m
	}
}

func (w writer) cop(s series, c Cop) {
	w.counts(s.copReviews, c.Reviews)
	w.counts(s.copFailures, c.Failures)
	w.count(s.copCached, float64(c.Cached))
	w.gauge(s.copWaiting, float64(c.Waiting))
	buckets, below := map[float64]uint64{}, uint64(0)
	for i, n := range c.Latency {
		below += n
		if i < len(c.Bounds) {
			buckets[c.Bounds[i].Seconds()] = below
		}
	}
	w.metric(prometheus.NewConstHistogram(s.copLatency, below, c.Took.Seconds(), buckets))(s.copLatency)
}
