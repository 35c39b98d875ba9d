// Package procfs tells facts about live processes, as /proc shows them, and signals processes without ever hitting a reused id.
// It owns the reading of /proc/PID and entering network namespaces, and nothing else: it starts nothing, keeps nothing and decides nothing.
//
// A process is named by its id and its start in ns since boot. The kernel's own records have the exact start; /proc has it in
// ticks of 10 ms. Every function that takes a start accepts both.
package linux
