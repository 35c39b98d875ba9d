// Package commands is the catalogue of programs: what their options and operands mean, which of them run code, reach the
// network, write files or run another command, and which texts in the small languages of sed, awk and others are harmless.
//
// catalogue.txt is the catalogue, and says how it is written. An entry is an accept-list: whatever it does not name is grey.
// getopt.go tells a command's options from its operands by its entry, wrap.go finds the command that sudo,
// timeout or find runs, names.go and paths.go judge variables, names and files. The package does no I/O.
package commands

//go:generate go run weir/scripts/classes ../../docs/classes.md
