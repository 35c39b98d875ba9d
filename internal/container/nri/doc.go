// Package nri speaks the Node Resource Interface: a container runtime that offers it tells of each container of a pod before it is
// made, and again when its first process is there but has not begun, and waits for the answers. It decides nothing, and adds nothing
// to a container but the mounts that it is told. What is not answered in time is refused.
package nri
