// Package names owns what a name is to a tainted container: the answers to its
// DNS questions, the addresses that stand for names nobody has judged, the
// look-ups of those that a policy or a verdict lets through, and which addresses
// may come of one. It makes no verdict, and knows neither the kernel's maps nor
// network namespaces: the kernel side does.
package dns
