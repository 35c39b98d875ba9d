// Package facts collects what later stages want to know of a command: programs, hosts,
// files. It decides nothing.
package facts
