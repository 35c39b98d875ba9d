// Package bench has what the two halves of the benchmark share: the form of what the guest measured, and the statistics that the
// host makes of it. It measures nothing itself.
package bench
