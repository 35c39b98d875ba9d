package metrics

import "github.com/prometheus/client_golang/prometheus"

// series are all that is exported.
type series struct {
	build, start, containers, goroutines, ready, refused, faulty, missing *prometheus.Desc

	verdicts, failures, holds, denials, dropped, waiting *prometheus.Desc
	grants, open, taints, events, lost, refusals, models *prometheus.Desc
	mapEntries, mapLimit, ringUsed, ringSize             *prometheus.Desc
	programTime, programRuns                             *prometheus.Desc
	copReviews, copCached, copFailures, copWaiting       *prometheus.Desc
	copLatency                                           *prometheus.Desc
}

func newSeries() series {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("weir_"+name, help, labels, nil)
	}
	return series{
		build:      desc("build_info", "1, with the version of the daemon.", "version"),
		start:      desc("start_time_seconds", "When the daemon started, in seconds since 1970."),
		containers: desc("containers", "Guarded containers with live processes, by taint.", "taint"),
		goroutines: desc("goroutines", "Goroutines of the daemon."),
		ready:      desc("enforcing", "1 while the sensor enforces, as readyz has it; else 0."),
		faulty:     desc("rule_files_refused", "Files of rules for tools that are not in force as they stand there."),
		refused:    desc("policy_refused", "1 while the policy file is refused, and an older policy in force; else 0."),
		missing:    desc("collection_failed", "1 for each part whose series could not be read this time.", "part"),

		verdicts: desc("verdicts_total", "Verdicts of the gate, by the tier that decided, result and reason.", "tier", "result", "reason"),
		failures: desc("gate_failures_total", "What went wrong on the way to a verdict, by code.", "code"),
		holds:    desc("holds_total", "Calls that the kernel stopped until an answer came."),
		denials:  desc("denials_total", "Calls that the kernel refused, by the hook that did.", "hook"),
		dropped:  desc("dropped_packets_total", "Packets of tainted containers that the kernel dropped."),
		waiting:  desc("approvals_waiting", "Questions that wait for a person."),
		grants:   desc("grants_total", "Changes of grants, by the state they came to.", "state"),
		open:     desc("grants_open", "Grants and claims that are open."),
		taints:   desc("taints_total", "Times that taint was set, by what set it.", "source"),
		events:   desc("events_total", "Events that were handed to the log, by kind.", "kind"),
		lost:     desc("lost_total", "Records and events that did not arrive, by the stage where they were lost and what they were.", "stage", "what"),
		refusals: desc("guard_refusals_total", "Calls of tools that the guard refused, by rule.", "rule"),
		models:   desc("model_refusals_total", "Requests that models' proxies refused, by code.", "code"),

		mapEntries:  desc("map_entries", "Entries of a kernel map.", "map"),
		mapLimit:    desc("map_entries_limit", "Entries that a kernel map has room for.", "map"),
		ringUsed:    desc("ring_used_bytes", "Bytes in a kernel ring that the daemon has not read yet.", "ring"),
		ringSize:    desc("ring_size_bytes", "Size of a kernel ring.", "ring"),
		programTime: desc("program_run_seconds_total", "Time that a kernel program ran, while the kernel measures it.", "program"),
		programRuns: desc("program_runs_total", "Times that a kernel program ran, while the kernel measures it.", "program"),

		copReviews:  desc("cop_reviews_total", "Reviews that were asked for, by result.", "result"),
		copCached:   desc("cop_cached_total", "Reviews that were answered from the cache."),
		copFailures: desc("cop_failures_total", "Reviews that failed, by code.", "code"),
		copWaiting:  desc("cop_waiting", "Reviews that wait for their turn."),
		copLatency:  desc("cop_request_duration_seconds", "How long requests to the model took."),
	}
}

func (s series) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		s.build, s.start, s.containers, s.goroutines, s.ready, s.refused, s.faulty, s.missing,
		s.verdicts, s.failures, s.holds, s.denials, s.dropped, s.waiting,
		s.grants, s.open, s.taints, s.events, s.lost, s.refusals, s.models,
		s.mapEntries, s.mapLimit, s.ringUsed, s.ringSize, s.programTime, s.programRuns,
		s.copReviews, s.copCached, s.copFailures, s.copWaiting, s.copLatency,
	}
}
