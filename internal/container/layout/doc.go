// Package layout reads from a cgroup's path which runtime made it for which container. It asks nobody and opens nothing:
// who may make cgroups there may choose the name.
package layout
