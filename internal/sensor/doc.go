// Package sensor is the daemon: it puts the probes, the gate, the log and the
// control socket together, and carries what one says to the others. It makes no
// verdict and knows no kernel map.
package sensor
