// Package steer owns the kernel's side of names: the programs that write the
// resolver's address in place of a name server's, and an address in place of one
// that stands for a name; and the resolvers, in the network namespaces of the
// containers that they answer. It makes no verdict: what it writes is judged by
// the programs of package netegress, before and after.
package steer
