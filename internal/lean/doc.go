// Package lean gives back memory that a process has used for its start and needs
// no more. It never changes what the process does, only what it keeps resident.
package lean
