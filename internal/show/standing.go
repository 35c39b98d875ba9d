package show

import (
	"fmt"
	"strings"

	"weir/internal/event"
	"weir/internal/gate"
)

// Covered is what an approval that goes on covers, on one line.
func Covered(a gate.StandingApproval) string { return event.Visible(a.Adds) }

// Adds is what an approval that goes on would add to those that its container has to the same destination.
func Adds(a gate.StandingApproval, before []gate.StandingApproval) string {
	var b strings.Builder
	row := func(name, text string) { fmt.Fprintf(&b, "%-12s %s\n", name, text) }
	row("adds", Covered(a))
	name := "so far"
	for _, o := range before {
		if o.Container.ID == a.Container.ID && o.Destination.String() == a.Destination.String() {
			row(name, Covered(o))
			name = ""
		}
	}
	if name != "" {
		row(name, "nothing")
	}
	return b.String()
}
