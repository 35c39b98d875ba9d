//go:build vmguest

package egress

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"weir/test/vm/guest/rig"
)

// reachesOwn: what a tainted session may not do to a process outside, its own processes may do to each other, and processes outside
// among themselves.
func reachesOwn(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	guarded, outside := sensor.Guard(t, "reach", "--taint", "secret"), rig.Bare(t, "reach")
	for _, s := range []*rig.Session{guarded, outside} {
		for _, w := range rig.Ways() {
			if s == guarded && !w.Own {
				continue
			}
			t.Run(s.Name+"/"+w.Name, func(t *testing.T) {
				port := world.Port()
				say := fmt.Sprintf("own.%d.end", port)
				hears, pid := w.Hear(t, s, port, say)
				if w.Hears == "limit" {
					say = fmt.Sprintf("limit.%d.end", port)
				}
				words := strings.NewReplacer("{pid}", pid, "{port}", strconv.Itoa(port)).Replace(w.Words)
				p := s.Start(t, append(strings.Fields("egress "+words), "-say", say)...)
				if w.Late {
					p.WaitLine("opened", rig.Late)
					p.Input(t, "\n")
				}
				if r := p.Wait(t); r.Exit != 0 {
					t.Errorf("refused: %s", r)
				}
				if got := hears.WaitLine("heard ", rig.Late); got != "heard "+say {
					t.Errorf("the other one heard %q: %s", got, hears.Wait(t))
				}
			})
		}
	}
	if r := guarded.Run(t, "bash", "-c", "sleep 600 & kill $! && kill -0 1"); r.Exit != 0 {
		t.Errorf("it cannot end its own, or ask whether somebody lives: %s", r)
	}
}
