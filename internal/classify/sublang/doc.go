// Package sublang reads the small languages that commands take as arguments (sed,
// awk, find, jq …) far enough to be sure that a text neither runs a program nor
// reaches the network. What it is not sure of it refuses. It knows nothing of
// shells or options, and does no I/O.
package sublang
