//go:build vmguest

package rig

import (
	"slices"
	"strings"
)

// Attempts is the table of all ways out that one program can try. Each works where there is no sensor.
func Attempts() []Attempt {
	return slices.Concat(toolAttempts(), ipAttempts(), rawAttempts(), familyAttempts(), uringAttempts(), olderAttempts(),
		handedAttempts(), unixAttempts(), loopbackAttempts(), strayAttempts(), awayAttempts(), cgroupAttempts(), processAttempts(), kernelAttempts(), reachAttempts())
}

// egress is the attack program's command line for an attempt that says the text.
func egress(words string) []string { return append(strings.Fields("egress "+words), "-say", "{say}") }

// late is an attempt that opens something, waits, and then sends.
func late(id, name, words, wait string) Attempt {
	return Attempt{ID: id, Name: name, Argv: append(egress(words), "-wait", wait), Opens: true}
}

func shell(script string) []string { return []string{"bash", "-c", script} }
