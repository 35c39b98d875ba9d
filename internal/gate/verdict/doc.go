// Package verdict has the words of the gate: what is asked, what is answered, and the
// stable codes of why. It judges nothing: that is the gate's alone.
package verdict
