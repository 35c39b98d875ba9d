// Package event owns the schema of Weir's log, its sinks, and how people see
// it. It never decides anything, and what came from a container is made
// harmless before a terminal sees it (B51).
//
// A Log writes each event to its sinks, in order, before it says that the event
// is written: who answers a question writes first, so that a full disk denies.
package event
