// Package command judges commands by their words: builtins, programs of the tables,
// and what they run in their turn. It keeps what is known of the shell's state. It
// knows nothing of syntax; who reads texts hands it words.
package command
