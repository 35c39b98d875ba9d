// Package socket knows the sockets of containers by netlink and /proc: it closes those
// that are older than a taint, names those that send below the packet check, tells
// whose a connection is, and which Unix sockets nobody else has. What may stay open the policy and the caller say; no packet is
// refused here.
package socket
