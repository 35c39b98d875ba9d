// Package wrap knows the programs that run another command with the rest of their words, as sudo, timeout and find do, and tells where that
// command stands. It is pure, and judges nothing.
package wrap
