// Package peer has listeners on the host that guarded processes are kept from (B27, G17): who connects is found by what the
// kernel says of the peer, by its process on a Unix socket and by its socket on a port. Who cannot be known is refused. It knows
// no cgroup itself, and what a peer sends only its caller reads.
package peer
