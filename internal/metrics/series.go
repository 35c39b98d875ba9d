package metrics

import "github.com/prometheus/client_golang/prometheus"

// series are all that is exported, by their names without weir_.
type series map[string]*prometheus.Desc

func newSeries() series {
	s := series{}
	desc := func(name, help string, labels ...string) {
		s[name] = prometheus.NewDesc("weir_"+name, help, labels, nil)
	}
	desc("build_info", "1, with the version of the daemon.", "version")
	desc("start_time_seconds", "When the daemon started, in seconds since 1970.")
	desc("containers", "Guarded containers with live processes, by taint.", "taint")
	desc("goroutines", "Goroutines of the daemon.")
	desc("enforcing", "1 while the sensor enforces, as readyz has it; else 0.")
	desc("policy_refused", "1 while the policy file is refused, and an older policy in force; else 0.")
	desc("rule_files_refused", "Files of rules for tools that are not in force as they stand there.")
	desc("collection_failed", "1 for each part whose series could not be read this time.", "part")
	desc("verdicts_total", "Verdicts of the gate, by the tier that decided, result and reason.", "tier", "result", "reason")
	desc("gate_failures_total", "What went wrong on the way to a verdict, by code.", "code")
	desc("holds_total", "Calls that the kernel stopped until an answer came.")
	desc("denials_total", "Calls that the kernel refused, by the hook that did.", "hook")
	desc("dropped_packets_total", "Packets of tainted containers that the kernel dropped.")
	desc("approvals_waiting", "Questions that wait for a person.")
	desc("grants_total", "Changes of grants, by the state they came to.", "state")
	desc("grants_open", "Grants and claims that are open.")
	desc("taints_total", "Times that taint was set, by what set it.", "source")
	desc("events_total", "Events that were handed to the log, by kind.", "kind")
	desc("lost_total", "Records and events that did not arrive, by the stage where they were lost and what they were.", "stage", "what")
	desc("guard_refusals_total", "Calls of tools that the guard refused, by rule.", "rule")
	desc("invariants_broken_total", "Times that a rule which always holds was broken: faults of Weir's.", "invariant")
	desc("model_refusals_total", "Requests that models' proxies refused, by code.", "code")
	desc("map_entries", "Entries of a kernel map.", "map")
	desc("map_entries_limit", "Entries that a kernel map has room for.", "map")
	desc("ring_used_bytes", "Bytes in a kernel ring that the daemon has not read yet.", "ring")
	desc("ring_size_bytes", "Size of a kernel ring.", "ring")
	desc("program_run_seconds_total", "Time that a kernel program ran, while the kernel measures it.", "program")
	desc("program_runs_total", "Times that a kernel program ran, while the kernel measures it.", "program")
	desc("cop_reviews_total", "Reviews that were asked for, by result.", "result")
	desc("cop_cached_total", "Reviews that were answered from the cache.")
	desc("cop_failures_total", "Reviews that failed, by code.", "code")
	desc("cop_waiting", "Reviews that wait for their turn.")
	desc("cop_request_duration_seconds", "How long requests to the model took.")
	return s
}
