//go:build vmguest

// Package bare shows that the attacks work where there is no sensor: what a guarded test sees stopped would have arrived.
package bare

import (
	"os"
	"testing"

	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

func TestAttempts(t *testing.T) {
	if _, err := os.Stat("/sys/fs/bpf/weir"); err == nil {
		t.Fatal("a sensor is loaded")
	}
	world := rig.NewOutside(t)
	session := rig.Bare(t, "session")
	for _, a := range rig.Attempts() {
		t.Run(a.Title(), func(t *testing.T) {
			a.Arrived(t, a.Try(t, world, session, nil))
		})
	}
}
