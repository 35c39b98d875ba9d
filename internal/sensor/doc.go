// Package sensor is the daemon: it puts the probes, the gate, the log and the
// control socket together, and carries what one says to the others; its own
// packages serve agents, sessions, figures and the like. It makes no verdict and
// knows no kernel map.
package sensor
