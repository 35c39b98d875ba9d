// Package family knows which processes belong together in a container: those of one
// command, those that could steer it, and those that wait for one that is held. It moves
// and wakes them; what they may send is none of its business.
package family
