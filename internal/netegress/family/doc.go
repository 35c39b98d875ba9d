// Package family knows which processes belong together in a container: those of one
// command, and those that could steer it. It moves and wakes them; what they may send
// is none of its business.
package family
