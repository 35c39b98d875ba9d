// Package network holds the families of commands that reach the network or run any
// code (G6): data that is also its documentation. Their options and operands are read
// for facts alone. It decides nothing by itself and does no I/O.
package network
