//go:build vmguest

// Package rig is what tests of ways out share: the outside world, with a receiver that sees all that reaches it; sessions, in
// which an agent runs attacks, with and without the sensor; and Attempts, the table of all attacks. It asserts at the receiver
// and never trusts what an attack says of itself.
package rig
