// Package builtin has the rules that are compiled in, as data: what is refused, why, what to do instead, and examples. It reads no file and has
// no switch.
package builtin
