//go:build vmguest

// Package clients runs the programs that people use on a network in a tainted session, against servers outside: what they see
// when their call is held and approved, denied, left without an answer, or approved after they gave up. docs/clients.md has
// what was seen, and the tests fail when it does not agree.
package clients
