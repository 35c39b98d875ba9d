// Package netegress owns what the kernel does about egress: the programs that
// judge connects, sends and packets, what they hold, the grants that open them,
// and the closing of sockets that are older than a taint. It carries verdicts
// out and never makes one.
package netegress
