//go:build vmguest

package egress

import (
	"slices"
	"testing"

	"weir/test/vm/guest/rig"
)

// The table has an attempt for each of these ways out.
func TestTableIsWhole(t *testing.T) {
	var have []string
	for _, a := range rig.Attempts() {
		have = append(have, a.ID)
	}
	for _, id := range []string{
		"B10", "B13", "B14", "B15", "B16", "B17", "B18", "B19", "B20", "B21", "B22", "B23", "B26", "B28", "B29", "B30",
		"B37", "B38", "B40", "B41", "B44", "B46", "B47", "B53", "B54", "B55", "B62", "B63", "B67",
	} {
		if !slices.Contains(have, id) {
			t.Errorf("no attempt for %s", id)
		}
	}
}
