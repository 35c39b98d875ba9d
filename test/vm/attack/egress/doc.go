// Egress tries to get one line of text out of the machine by one particular means:
//
//	egress ATTEMPT -to ADDR:PORT -say TEXT [flags]
//
// It prints "ok" and exits with 0 if every step went through without an error, and prints the step and the error and exits with 3
// if one did not; 2 is a mistake in its use. With -wait STEP it prints "opened" after that step and goes on when a line comes on
// standard input, so that a test can change the world in between. It never says whether the text arrived: only a receiver knows.
package main
