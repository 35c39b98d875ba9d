// Package posix gives the commands of a shell's text to the rules, from the same parser that the classifier has, with their words as they would
// arrive. What they run in their turn (sudo, sh -c) is not its concern. It runs nothing.
package posix
