// Package pins pins again what somebody took away: what is in force hangs on the daemon
// then. It knows where pins are, and not what they hold; it removes none.
package pins
