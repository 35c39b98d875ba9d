//go:build vmguest

package egress

import (
	"testing"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// sigcontWakesHeld: a held command that its own family wakes asks no second question, and gets EPERM before long (B38).
func sigcontWakesHeld(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	sensor.Policy(t, "hold: true\napprover: person\n")
	session := sensor.Guard(t, "held", "--taint", "corruption")
	for _, a := range rig.Attempts() {
		if a.ID != "B38" {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			out := a.Try(t, world, session, nil)
			if out.Exit == 0 {
				t.Errorf("no step was refused: %s", out.Result)
			}
			stopped(t, a, out)
			held := 0
			for _, e := range sensor.Events(t, event.Hold) {
				if int(e.Destination.Port) == out.Port {
					held++
				}
			}
			if held != 1 {
				t.Errorf("%d questions were asked for one command and one destination, want 1", held)
			}
		})
	}
}
