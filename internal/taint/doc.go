// Package taint owns what is tainted: the kernel's map from cgroup to state,
// its copy on disk, and the programs that see tasks move between cgroups. It
// decides nothing about egress, and never clears a bit unless it is told to.
package taint
