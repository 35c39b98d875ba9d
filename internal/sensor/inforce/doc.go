// Package inforce knows which policy is in force for whom: the daemon's own, those that
// sessions brought, and the mode that weir mode said. It never reads a policy file,
// writes to the kernel, or decides when a policy changes.
package inforce
