package taint

import (
	"fmt"
	"strings"

	"weir/internal/policy"
)

// Tools says what the call of a tool taints (G2). The zero Tools taints nothing.
type Tools struct {
	table  []toolBits
	public bool
}

type toolBits struct {
	name string
	bits Bits
}

// NewTools takes the table of a policy.
func NewTools(p policy.Taint) (Tools, error) {
	t := Tools{public: p.UntrustedTools}
	for _, line := range p.Tools {
		var bits Bits
		if len(line.Taint) > 0 {
			var err error
			if bits, err = ParseBits(line.Taint); err != nil {
				return Tools{}, fmt.Errorf("taint.tools: %s: %w", line.Name, err)
			}
		}
		t.table = append(t.table, toolBits{line.Name, bits})
	}
	return t, nil
}

// Bits returns what a call of the tool sets. publicSource is what its description says of it: that anybody can write what it
// reads. The first line of the table that matches the name decides, also one that sets nothing.
func (t Tools) Bits(name string, publicSource bool) Bits {
	name = strings.ToLower(name)
	for _, line := range t.table {
		if policy.Matches(strings.ToLower(line.name), name) {
			return line.bits
		}
	}
	if publicSource && t.public {
		return Corruption
	}
	return 0
}
