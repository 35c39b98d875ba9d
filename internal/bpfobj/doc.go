// Package bpfobj owns what stays in the kernel when the daemon ends: programs' links and maps by their pins, and what the kernel
// tells of them: how full maps are, how often programs ran. It loads nothing, and does not know what is in a map.
package bpfobj
