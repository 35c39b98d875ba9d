//go:build vmguest

package answers

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/internal/control"
	"weir/test/vm/guest/rig"
)

// never: a container whose file system does not answer the sensor holds up neither its own taint nor anybody else's names (B86).
func never(t *testing.T, f *fixture) {
	user := append(rig.User(), "python3", "-c")
	s, other := f.sensor.Guard(t, "never"), f.sensor.Guard(t, "beside")
	p := s.Start(t, append(user, rig.Never, "/etc", "resolv.conf")...)
	if p.WaitLine("opened", rig.Late) == "" {
		t.Fatal(p.Wait(t))
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Late)
	defer cancel()
	for _, name := range []string{"never", "beside"} {
		if _, err := control.NewClient("/run/weir").Taint(ctx, name, []string{"secret"}, "test", ""); err != nil {
			t.Errorf("taint %s: %v", name, err)
		}
	}
	if p.WaitLine("asked", rig.Late) == "" {
		t.Error("its file system was not asked")
	}
	if r := other.Run(t, append(user, insidePy, "resolved", strconv.Itoa(f.world.Port()), "text")...); !strings.Contains(r.Stdout, "the resolver answers") {
		t.Errorf("names of the other container: %s", r)
	}
	p.Signal(t, syscall.SIGKILL)
}
