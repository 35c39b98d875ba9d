//go:build vmguest

package egress

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"weir/internal/gate"
	"weir/internal/linux"
	"weir/test/vm/guest/rig"
)

// sigcontWakesHeld: a held command that its own family wakes stays held, asks no second question, and gets EPERM when it is denied (B38).
func sigcontWakesHeld(t *testing.T, world *rig.Outside, sensor *rig.Sensor) {
	sensor.Policy(t, "hold: true\napprover: person\n")
	session := sensor.Guard(t, "held", "--taint", "corruption")
	for _, a := range rig.Attempts() {
		if a.ID != "B38" {
			continue
		}
		a.Started = func(t testing.TB, e *rig.Env, p *rig.Proc) {
			q := sensor.Asked(t, func(q gate.Question) bool { return int(q.Destination.Port) == e.Port })
			rig.Eventually(t, "the storm is over", func() bool { return !wakes(t, p.Pid()) })
			rig.Held(t, p.Pid())
			if n := sensor.Questions(t, e.Port); n != 1 {
				t.Errorf("%d questions were asked for one command and one destination, want 1", n)
			}
			sensor.Deny(t, q.ID)
		}
		t.Run(a.Name, func(t *testing.T) {
			out := a.Try(t, world, session, nil)
			if out.Exit == 0 || !strings.Contains(out.Stdout, "EPERM") {
				t.Errorf("no step was refused with EPERM: %s", out.Result)
			}
			a.Stopped(t, out)
			if n := sensor.Questions(t, out.Port); n != 1 {
				t.Errorf("%d questions were asked for one command and one destination, want 1", n)
			}
		})
	}
}

// wakes says whether a child of a process goes on waking it. Nobody waits for one that has ended while its parent is held.
func wakes(t testing.TB, pid int) bool {
	t.Helper()
	for _, child := range strings.Fields(rig.Must(t, fmt.Sprintf("cat /proc/%d/task/*/children", pid))) {
		n, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := linux.ReadStat(n); err == nil && st.State != 'Z' {
			return true
		}
	}
	return false
}
