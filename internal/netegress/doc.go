// Package netegress owns what the kernel does about egress: the programs that
// judge connects, sends and packets, what they hold, and the grants that open
// them. It carries verdicts out and never makes one.
package netegress
