// Package posix gives the commands of a shell's text to the rules, from the same parser that the classifier has: words in their place, behind
// what runs them (sudo, env, xargs, sh -c). It runs nothing.
package posix
