package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"weir/test/vm/bench"
)

// result is one line of the table. Targets are upper bounds, but for rates; a result without one is told for what it is.
type result struct {
	Name   string   `json:"-"`
	Value  float64  `json:"value"`
	Low    float64  `json:"low"`  // of the 95 % interval
	High   float64  `json:"high"` // of the 95 % interval
	Unit   string   `json:"unit"`
	Target *float64 `json:"target"`
	Rounds int      `json:"rounds"`
	Kernel string   `json:"kernel"`
}

// row says how a ratio is called and what is wanted of it; 0: nothing.
type row struct {
	name, of, state string
	target          float64
}

// ratios are the same for what is counted and, with _felt at the end of the name, for what is felt.
var ratios = []row{
	{"exec_idle_ratio", "exec", bench.Idle, 1.005},
	{"exec_outside_ratio", "exec", bench.Outside, 1.01},
	{"exec_guarded_ratio", "exec", bench.Guarded, 1.03},
	{"exec_tainted_ratio", "exec", bench.Tainted, 1.03},
	{"connect_idle_ratio", "connect", bench.Idle, 1.003},
	{"connect_outside_ratio", "connect", bench.Outside, 1.01},
	{"connect_guarded_ratio", "connect", bench.Guarded, 1.05},
	{"connect_tainted_ratio", "connect", bench.Tainted, 1.07},
	{"udp_idle_ratio", "udp", bench.Idle, 1.003},
	{"udp_outside_ratio", "udp", bench.Outside, 1.035},
	{"udp_guarded_ratio", "udp", bench.Guarded, 1.1},
	{"udp_tainted_ratio", "udp", bench.Tainted, 1.15},
	{"bulk_idle_ratio", "bulk", bench.Idle, 1.001},
	{"bulk_outside_ratio", "bulk", bench.Outside, 1.003},
	{"bulk_guarded_ratio", "bulk", bench.Guarded, 1.01},
	{"bulk_tainted_ratio", "bulk", bench.Tainted, 1.01},
	{"open_idle_ratio", "open", bench.Idle, 1.003},
	{"open_outside_ratio", "open", bench.Outside, 1.03},
	{"open_guarded_ratio", "open", bench.Guarded, 1.065},
	{"open_tainted_ratio", "open", bench.Tainted, 1.04},
	{"open_nolist_outside_ratio", "open", bench.NoList + bench.Outside, 1.003},
	{"open_nolist_guarded_ratio", "open", bench.NoList + bench.Guarded, 1.003},
	{"open_nolist_tainted_ratio", "open", bench.NoList + bench.Tainted, 1.003},
}

// starts are ratios of the containers' part.
var starts = []row{
	{"container_start_outside_ratio", bench.ContainerCase, bench.Outside, 0},
	{"container_start_ratio", bench.ContainerCase, bench.Guarded, 1.05},
	{"container_start_tainted_ratio", bench.ContainerCase, bench.Tainted, 0},
}

// single is a figure that is no ratio: a quantile of its samples.
type single struct {
	name     string
	quantile float64
	unit     string
	target   float64 // negative: none
}

// times are, like ratios, counted and, with _felt at the end of the name, felt.
var times = []single{
	{"taint_to_deny_ms", 0.5, "ms", 5},
	{"taint_answered_ms", 0.5, "ms", -1},
	{"hold_grant_ms", 0.5, "ms", 25},
	{"hold_cpu_ms", 0.5, "ms", 10},
	{"approval_to_connect_ms", 0.5, "ms", 15},
	{"exec_event_p99_ms", 0.99, "ms", 10},
	{"ready_ms", 0.5, "ms", 1300},
}

// sizes are no times, and taken where the clock is the ordinary one.
var sizes = []single{
	{"burst_lost", 1, "executions", 0},
	{"burst_rate", 0.5, "executions/s", -1},
}

// memories are of 200 guarded cgroups.
var memories = []single{
	{"rss_200_mib", 1, "MiB", 26},
	{"rss_200_busy_mib", 1, "MiB", -1},
	{"rss_200_daemon_mib", 1, "MiB", -1},
	{"pss_200_mib", 1, "MiB", -1},
}

// startTimes are the other figures of the containers' part.
var startTimes = []single{
	{"container_start_ms", 0.5, "ms", -1},
	{"container_start_outside_added_ms", 0.5, "ms", -1},
	{"container_start_added_ms", 0.5, "ms", 20},
	{"container_start_tainted_added_ms", 0.5, "ms", -1},
}

// idles are what is done while nothing happens: counted and, with _felt at the end of the name, felt.
var idles = []single{
	{"idle_cpu_500_percent", 1, "percent", 0.1},
	{"idle_cpu_500_daemon_percent", 1, "percent", -1},
}

// services are the daemon's processor time for each event, on 10⁹ instructions a second, and while nothing is guarded.
var services = []single{
	{"exec_daemon_us", 0.5, "µs", 90},
	{"exec_tainted_daemon_us", 0.5, "µs", 130},
	{"connect_daemon_us", 0.5, "µs", 60},
	{"connect_tainted_daemon_us", 0.5, "µs", -1},
	{"idle_cpu_percent", 1, "percent", 0.02},
	{"idle_cpu_daemon_percent", 1, "percent", -1},
}

// crowdSizes are the memory of 500 containers.
var crowdSizes = []single{
	{"rss_500_mib", 1, "MiB", 96},
	{"rss_500_busy_mib", 1, "MiB", -1},
	{"rss_500_daemon_mib", 1, "MiB", -1},
	{"pss_500_mib", 1, "MiB", -1},
}

// answers are what people feel who answer, and what looking takes of a processor.
var answers = []single{
	{"key_to_connect_ms", 0.5, "ms", 100},
	{"click_to_connect_ms", 0.5, "ms", 100},
	{"busy_50_daemon_percent", 0.5, "percent", 15},
	{"busy_50_console_percent", 0.5, "percent", 10},
	{"busy_50_top_percent", 0.5, "percent", -1},
	{"busy_50_events_per_s", 0.5, "events/s", -1},
}

const rate = "queries/s" // the only unit of which more is better

// questions are what the resolver costs.
var questions = []single{
	{"resolver_added_ms", 0.5, "ms", 0.5},
	{"resolver_direct_ms", 0.5, "ms", -1},
	{"resolver_remembered_ms", 0.5, "ms", -1},
	{"resolver_unknown_ms", 0.5, "ms", -1},
	{"resolver_queries_per_s", 0.5, rate, 5000},
	{"resolver_unknown_queries_per_s", 0.5, rate, -1},
	{"resolver_direct_queries_per_s", 0.5, rate, -1},
}

// evaluate makes the results of one part.
func evaluate(part string, s bench.Samples) []result {
	switch part {
	case "feel":
		return slices.Concat(ratiosOf(ratios, s, "_felt"), singles(times, s, "_felt"), singles(sizes, s, ""))
	case "memory":
		return singles(memories, s, "")
	case "daemon":
		return singles(services, s, "")
	case "containers":
		return slices.Concat(ratiosOf(starts, s, ""), singles(startTimes, s, ""))
	case "idle":
		return slices.Concat(singles(idles, s, ""), singles([]single{{"rss_500_cgroups_mib", 1, "MiB", 96}}, s, ""))
	case "crowd":
		return slices.Concat(singles(crowdSizes, s, ""), singles(idles, s, "_felt"))
	case "names":
		return singles(questions, s, "")
	case "people":
		return singles(answers, s, "")
	}
	all := slices.Concat(ratiosOf(ratios, s, ""), singles(times, s, ""))
	// the daemon's own work, as a part of what an execution costs anyhow
	var parts []float64
	for _, c := range s.Cycles {
		parts = append(parts, c["exec"][bench.Observed]/math.Sqrt(c["exec"][bench.Before]*c["exec"][bench.After]))
	}
	for _, name := range bench.Cases() { // what the filter of a session on a terminal adds to a guarded one
		e := bench.Ratio(onTerminal(s.Cycles), name, bench.Terminal)
		all = append(all, newResult(name+"_terminal_ratio", e, "ratio", nil, s.Kernel))
	}
	return append(all, newResult("exec_daemon_part", bench.Quantile(parts, 0.5), "ratio", nil, s.Kernel))
}

// onTerminal are the cycles with the guarded session in place of the machine without the sensor.
func onTerminal(cycles []bench.Cycle) []bench.Cycle {
	var all []bench.Cycle
	for _, c := range cycles {
		of := bench.Cycle{}
		for name, states := range c {
			of[name] = map[string]float64{bench.Before: states[bench.Guarded], bench.After: states[bench.Guarded], bench.Terminal: states[bench.Terminal]}
		}
		all = append(all, of)
	}
	return all
}

func ratiosOf(list []row, from bench.Samples, suffix string) []result {
	var all []result
	for _, r := range list {
		e := bench.Ratio(from.Cycles, r.of, r.state)
		all = append(all, newResult(r.name+suffix, e, "ratio", bound(r.target, r.target > 0), from.Kernel))
	}
	return all
}

func singles(list []single, from bench.Samples, suffix string) []result {
	var all []result
	for _, s := range list {
		e := bench.Quantile(from.Values[s.name], s.quantile)
		all = append(all, newResult(s.name+suffix, e, s.unit, bound(s.target, s.target >= 0), from.Kernel))
	}
	return all
}

func bound(v float64, there bool) *float64 {
	if !there {
		return nil
	}
	return &v
}

func newResult(name string, e bench.Estimate, unit string, target *float64, kernel string) result {
	round := func(v float64) float64 { return math.Round(v*1e4) / 1e4 }
	return result{name, round(e.Value), round(e.Low), round(e.High), unit, target, e.Rounds, kernel}
}

// verdict goes by the value; where the interval has the target within, it says that this run does not settle it.
func (r result) verdict() string {
	if r.Target != nil && r.Unit == rate {
		t := -*r.Target
		r.Value, r.Low, r.High, r.Target = -r.Value, -r.High, -r.Low, &t
	}
	switch {
	case r.Target == nil:
		return ""
	case r.High <= *r.Target:
		return "met"
	case r.Low > *r.Target:
		return "NOT MET"
	case r.Value <= *r.Target:
		return "met, within the noise"
	}
	return "not met, within the noise"
}

func table(w io.Writer, results []result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nname\tvalue\tinterval\ttarget\t")
	for _, r := range results {
		target := ""
		if r.Target != nil {
			target = fmt.Sprintf("≤ %g", *r.Target)
			if r.Unit == rate {
				target = fmt.Sprintf("≥ %g", *r.Target)
			}
		}
		fmt.Fprintf(t, "%s\t%.4g\t%.4g to %.4g\t%s\t%s\n", r.Name, r.Value, r.Low, r.High, target, r.verdict())
	}
	return t.Flush()
}
