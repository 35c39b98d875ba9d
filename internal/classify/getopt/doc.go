// Package getopt tells a command's options from its operands by its entry in the
// tables, as getopt_long does, and finds those that are not accepted.
package getopt
