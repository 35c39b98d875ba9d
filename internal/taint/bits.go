package taint

import (
	"fmt"
	"strings"
)

// Bits are what a container has read (G1).
type Bits uint32

// The two kinds of taint.
const (
	Corruption Bits = 1 // input that somebody else controls
	Secret     Bits = 2 // something that must not leave
)

// ParseBits reads names of bits; it wants at least one.
func ParseBits(names []string) (Bits, error) {
	var b Bits
	for _, name := range names {
		switch strings.TrimSpace(name) {
		case "corruption":
			b |= Corruption
		case "secret":
			b |= Secret
		default:
			return 0, fmt.Errorf("unknown taint bit %q: use corruption or secret", name)
		}
	}
	if b == 0 {
		return 0, fmt.Errorf("no taint bit given: use corruption, secret or both")
	}
	return b, nil
}

// StartBits reads what a container starts with; no names are no bits.
func StartBits(names []string) (Bits, error) {
	if len(names) == 0 {
		return 0, nil
	}
	return ParseBits(names)
}

// Names returns the names of the bits that are set.
func (b Bits) Names() []string {
	var names []string
	if b&Corruption != 0 {
		names = append(names, "corruption")
	}
	if b&Secret != 0 {
		names = append(names, "secret")
	}
	return names
}
