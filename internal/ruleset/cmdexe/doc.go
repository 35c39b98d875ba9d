// Package cmdexe reads command lines and batch files of cmd.exe as far as rules need it: carets, quotes, variables, separators, redirections and
// what stands behind if, for, call and start. It forgives what is malformed, takes time in proportion to the text, and runs nothing.
package cmdexe
