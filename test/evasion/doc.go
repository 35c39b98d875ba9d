// Package evasion writes a script in other ways that mean the same (K4), to measure how much of the guard depends on how something is
// written. It is for tests and measurements; nothing of it runs.
package evasion
