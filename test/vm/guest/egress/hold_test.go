//go:build vmguest

package egress

import (
	"testing"
	"time"

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
			held := func() (n int) {
				for _, e := range sensor.Events(t, event.Hold) {
					if int(e.Destination.Port) == out.Port {
						n++
					}
				}
				return n
			}
			rig.Eventually(t, "a question is asked", func() bool { return held() > 0 })
			time.Sleep(time.Second) // a second one would come just behind it
			if n := held(); n != 1 {
				t.Errorf("%d questions were asked for one command and one destination, want 1", n)
			}
		})
	}
}
