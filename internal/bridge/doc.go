// Package bridge answers what agents in containers ask before they act: Unix sockets with JSON lines (G20). Who asks is established by
// the kernel's word on the peer and its cgroup, for each request, whatever the peer says and whichever socket it found (G21). It runs
// the built-in hooks and the operator's own (G18), and words denials for a model to act on.
//
// It never makes a verdict, which is the gate's, never opens anything, and what fails is a denial.
package bridge
