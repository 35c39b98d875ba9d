// Package container owns what a container runtime tells: it follows containerd's events, finds the cgroup of each container that the
// policy matches, has it guarded and tainted before it runs where that can be done, and looks at its specification for what
// undoes the guard. It makes no verdict, starts nothing, and changes nothing in the runtime.
package container
