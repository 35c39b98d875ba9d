// Package linux reads what the kernel shows of processes and cgroups, signals processes without ever hitting a reused id, enters namespaces,
// writes files that last, and trims this process's memory. It starts nothing and decides nothing.
//
// A process is named by its id and its start in ns since boot. The kernel's own records have the exact start; /proc has it in
// ticks of 10 ms. Every function that takes a start accepts both.
package linux
