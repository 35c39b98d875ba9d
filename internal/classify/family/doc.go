// Package family holds the command families: one file each, data that is also its
// documentation. It decides nothing by itself and does no I/O.
package family

//go:generate go run weir/scripts/classes ../../../docs/classes.md
