//go:build vmguest

package rig

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"weir/internal/cgroup"
	"weir/internal/event"
)

// Frozen says whether a process stands still in a cgroup that the sensor made for it.
func Frozen(pid int) bool {
	in, err := cgroup.Of(pid)
	return err == nil && strings.HasPrefix(path.Base(in), "weir-grant-") && cgroup.Frozen(in)
}

// Held waits until a process is held, and fails t if it does anything while it is.
func Held(t testing.TB, pid int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("process %d is frozen", pid), func() bool { return Frozen(pid) })
	before := ticks(t, pid)
	time.Sleep(time.Second)
	if now := ticks(t, pid); now != before || !Frozen(pid) {
		t.Errorf("process %d goes on: its processor time was %s and is %s", pid, before, now)
	}
}

// ticks is the processor time of a process, in user mode and in the kernel.
func ticks(t testing.TB, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	return string(fields[11]) + "+" + string(fields[12])
}

// Questions counts those that were asked about a port so far.
func (s *Sensor) Questions(t testing.TB, port int) int {
	t.Helper()
	n := 0
	for _, e := range s.Events(t, event.Hold) {
		if e.Destination != nil && int(e.Destination.Port) == port {
			n++
		}
	}
	return n
}
