// Package table has the types in which the command families are written: what a
// command's words may be, and what they then mean. It owns no data and no
// decision, does no I/O and never writes to an entry.
//
// An entry is an accept-list. Whatever it does not name is grey.
package table
