// Package ipc answers agents that have only a folder in common with the host (G20): request files in, answer files out. Whose folder it
// is has been established by the caller, from what a container has mounted; one that two containers have is nobody's (G21).
//
// It never decides, never follows a link, never opens what is no plain file of the folder's owner, and writes nothing but files of its
// own in that folder, which nobody in the container may change.
package ipc
