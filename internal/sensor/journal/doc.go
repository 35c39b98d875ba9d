// Package journal is the daemon's event log, with what is counted about it: events by
// kind for the metrics, and what was lost on the way, which it tells once. It never
// decides what is worth an event, and holds up nobody who only posts one.
package journal
