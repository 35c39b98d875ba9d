// Package cgroup names cgroups of the version 2 tree by path and by id. It
// makes and removes directories and moves processes; it knows nothing of taint.
package cgroup
