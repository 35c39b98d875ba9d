package taint

import (
	"fmt"
	"strings"

	"weir/internal/policy"
)

// ToolBits is what a call of a tool sets by a policy (G2). publicSource is what its description says of it: that anybody can write what it
// reads. The first line of the table that matches the name decides, also one that sets nothing.
func ToolBits(p policy.Taint, name string, publicSource bool) (Bits, error) {
	name = strings.ToLower(name)
	for _, line := range p.Tools {
		if policy.Matches(strings.ToLower(line.Name), name) {
			bits, err := StartBits(line.Taint)
			if err != nil {
				return 0, fmt.Errorf("taint.tools: %s: %w", line.Name, err)
			}
			return bits, nil
		}
	}
	if publicSource && p.UntrustedTools {
		return Corruption, nil
	}
	return 0, nil
}
