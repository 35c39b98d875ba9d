// Package dns owns what a name is to a tainted container: the resolver that answers its DNS questions, the synthetic addresses that
// stand for names nobody has judged, the look-ups of names that a policy or a verdict lets through, and the programs and maps
// (bpf/names.bpf.c) that write one address in place of another. It makes no verdict.
package dns
