// Package policy owns the policy file: its keys, their defaults, what is
// accepted, and how a mistake in it is told. A file with any mistake is refused
// whole. The package never watches a file, touches a map, or decides a verdict.
package policy
