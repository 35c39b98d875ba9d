// Package exec sees every program that a guarded container executes. It owns the exec probe, its ring and the cache of what was
// executed; what it says comes from the new image's own memory and from the kernel's own records (B01). It never judges a
// command, stops a process or writes an event, and nothing that is enforced depends on it: a lost record grants nothing (B31).
package exec
