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

	"weir/internal/event"
	"weir/internal/linux"
)

// Frozen says whether a process stands still in a cgroup that the sensor made for it.
func Frozen(pid int) bool {
	in, err := linux.CgroupOf(pid)
	return err == nil && strings.HasPrefix(path.Base(in), "weir-grant-") && linux.CgroupFrozen(in)
}

// Held waits until a process is held, and fails t if it does anything while it is. For a signal that it is sent the kernel lets it turn
// round once, inside the freezer.
func Held(t testing.TB, pid int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("process %d is frozen", pid), func() bool { return Frozen(pid) })
	user, kernel := ticks(t, pid)
	time.Sleep(time.Second)
	if u, k := ticks(t, pid); u != user || k > kernel+1 || !Frozen(pid) {
		t.Errorf("process %d goes on: its processor time was %d+%d and is %d+%d", pid, user, kernel, u, k)
	}
}

// ticks is the processor time of a process, in user mode and in the kernel.
func ticks(t testing.TB, pid int) (user, kernel int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(strings.Join(strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))[11:13], " "), "%d %d", &user, &kernel); err != nil {
		t.Fatal(err)
	}
	return user, kernel
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
