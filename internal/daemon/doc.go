// Package daemon joins the parts of Weir in one process. It loads the kernel programs, serves the control socket and the
// bridges of agents, makes and ends sessions, follows containers, reloads the policy, and writes the event log.
//
// Each file holds one topic: agents.go the bridges, session.go the sessions of weir guard, parents.go the cgroups whose children
// are containers, spaces.go the lists of secret files in each mount namespace, enrich.go the process behind a kernel record,
// active.go the policy that applies to a container, eventlog.go the event log and its counters, collect.go metrics and
// readiness, approvals.go webhook and callback, pins.go the pins that must stay, store.go the database that survives a
// restart, selftest.go the self-test of weir doctor --load.
//
// The daemon decides nothing: the kernel programs enforce, and package gate gives verdicts.
package daemon
