// Package classify tells what a shell text or an observed command line may do:
// local, network or grey (G4 to G6, G9, G10). It parses the shell as a shell, and
// accepts only what it knows, all the way down: commands, options, operands,
// sub-languages, assignments, redirections, expansions. What it does not know is
// grey, never local.
//
// It is pure: no I/O, no clock, no environment, no state between calls. It never
// decides what is allowed; that is the gate's.
package classify
