// Package event owns the schema of Weir's log, its sinks, and how people see
// it. It never decides anything, and what came from a container is made
// harmless before a terminal sees it (B51).
package event
