// Package session makes and ends the sessions of weir guard: their cgroup, policy, state
// and socket, and the summary of what happened in each. It starts no process, and ends
// nothing that still runs.
package session
