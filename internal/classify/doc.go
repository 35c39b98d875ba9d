// Package classify judges what a shell text or an observed command line may do: it is local, network or grey (G4 to G6, G9,
// G10). It reads the shell as a shell, and accepts only what it knows, all the way down: commands, options, operands,
// sub-languages, assignments, redirections, expansions. Anything else is grey, never local.
//
// judge.go keeps the judgement and the state of the shell, walk.go goes through a text, call.go and builtin.go judge a command
// by its words and its entry in package commands.
//
// It is pure: no I/O, no clock, no environment, no state between calls. It never decides what is allowed; the gate does.
package classify
