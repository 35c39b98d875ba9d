package agenthook

import "net"

// Believe makes a World believe whoever listens: tests answer from their own process.
func (w World) Believe() World {
	w.trust = func(*net.UnixConn) error { return nil }
	return w
}
