//go:build vmguest

// Package failure breaks the sensor, its disks, its clock and its policy while a tainted command tries to get out twenty times a
// second: not one try may pass, and nothing may be forgotten.
package failure

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	soon     = 30 * time.Second // how long a held command may stay so when nobody can answer
	parent   = "/failing"       // a guarded parent
	stateDir = "/var/lib/weir"
	logDir   = "/var/log/weir"
	file     = "/run/rig-policy.yaml"
)

// limits that no slow machine reaches
const policy = "guard:\n  parents: [" + parent + "]\napproval_timeout: 900\napproval_ttl: 900\ngrant:\n  seconds: 900\n"

type fixture struct {
	world   *rig.Outside
	sensor  *rig.Sensor
	session *rig.Session // tainted
	probe   *rig.Probe
	disk    *rig.Disk
}

// TestFailure has one sensor, and one probe that is never let out: a start takes long in a VM.
func TestFailure(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t)}
	f.disk = rig.NewDisk(t, 24)
	makeCgroup(t, parent)
	f.sensor = rig.StartSensor(t, policy)
	f.session = f.sensor.Guard(t, "failing", "--taint", "secret")
	f.probe = f.sensor.Probe(t, f.world)
	f.probe.Steady(t)
	type test struct {
		name string
		run  func(*fixture, *testing.T)
	}
	var long []test
	if os.Getenv("WEIR_LOAD") != "" {
		long = []test{{"B31_losses", (*fixture).losses}}
	}
	for _, test := range append(long, []test{
		{"B32_stopped", (*fixture).stopped},
		{"clock", (*fixture).clock},
		{"B45_made_again", (*fixture).madeAgain},
		{"parent_made_again", (*fixture).parentMadeAgain},
		{"policy", (*fixture).policy},
		{"bad_policy", (*fixture).badPolicy},
		{"mode", (*fixture).mode},
		{"B33_B32_killed", (*fixture).killed},
		{"B32_restarts", (*fixture).restarts},
		{"B32_grant_ends", (*fixture).grantEnds},
		{"B32_both_killed", (*fixture).bothKilled},
		{"B32_B36_F05_killed_at_each_step", (*fixture).killedAtEach},
		{"B32_F05_killed_before_the_move", (*fixture).beforeTheMove},
		{"B32_F05_killed_before_it_begins", (*fixture).notBegun},
		{"B32_F05_not_moved", (*fixture).notMoved},
		{"B32_F05_killed_over_a_full_disk", (*fixture).killedFull},
		{"B32_F05_killed_with_a_stuck_log", (*fixture).killedStuck},
		{"B32_out_of_memory", (*fixture).outOfMemory},
		{"upgrade", (*fixture).upgrade},
		{"stuck_output", (*fixture).stuckOutput},
		{"full_disk", (*fixture).fullDisk},
		{"read_only_disk", (*fixture).readOnlyDisk},
		{"pins_unmounted", (*fixture).unmounted}, // leaves no sensor
	}...) {
		t.Run(test.name, func(t *testing.T) {
			test.run(f, t)
			f.probe.Steady(t)
		})
	}
	f.probe.Stop(t)
}

func makeCgroup(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll("/sys/fs/cgroup"+path, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rig.RemoveCgroup(t, "/sys/fs/cgroup"+path) })
}

// target is a place of one command, and who asks about it.
type target struct {
	rig.Place
	f *fixture
}

func (f *fixture) target(t *testing.T) target { t.Helper(); return target{f.world.Raw(t), f} }

func (to target) asked(t *testing.T) gate.Question {
	t.Helper()
	return to.f.sensor.Asked(t, to.About)
}

// held is a command that waits in the kernel.
type held struct {
	to target
	p  *rig.Proc
	q  gate.Question
}

func (f *fixture) hold(t *testing.T) (h held) {
	t.Helper()
	rig.Eventually(t, "a command is held", func() bool { // none is while a busy machine keeps the daemon from beating
		h.to = f.target(t)
		h.p = f.session.Start(t, h.to.Egress("tcp")...)
		if h.q = h.to.asked(t); !h.q.Held {
			t.Logf("refused, not held: %+v", h.q)
			f.sensor.Deny(t, h.q.ID)
			h.p.Wait(t)
		}
		return h.q.Held
	})
	return h
}

// fails fails t unless the command gets EPERM soon after what began, and nothing of it arrives.
func (h held) fails(t *testing.T, began time.Time, when string) {
	t.Helper()
	r, ended := h.p.WaitFor(rig.Late)
	if took := r.At.Sub(began); !ended || took > soon || r.Exit != 3 || !strings.Contains(r.Stdout, "EPERM") {
		t.Errorf("held, %s: after %v ended %v: %s", when, took, ended, r)
	} else {
		t.Logf("held, %s: refused after %v", when, took)
	}
	h.to.Nothing(t)
}

// approve fails t unless the command goes on and its text arrives.
func (h held) approve(t *testing.T) {
	t.Helper()
	h.to.Nothing(t)
	h.to.f.sensor.Approve(t, h.q.ID)
	if r := h.p.Wait(t); r.Exit != 0 {
		t.Errorf("approved: %s", r)
	}
	h.to.Arrived(t)
}

// works fails t unless a command is held, approved and let out.
func (f *fixture) works(t *testing.T) { t.Helper(); f.hold(t).approve(t) }

// taint is what the sensor says of a container.
func (f *fixture) taint(t *testing.T, name string) []string {
	t.Helper()
	for _, c := range f.sensor.Containers(t) {
		if c.Name == name || c.ID == name {
			return c.Taint
		}
	}
	return nil
}

func (f *fixture) wantTaint(t *testing.T, name string, want ...string) {
	t.Helper()
	if got := f.taint(t, name); !slices.Equal(got, want) {
		t.Errorf("taint of %s: %v, want %v", name, got, want)
	}
}

// message waits for an event with a text.
func (f *fixture) message(t *testing.T, text string) {
	t.Helper()
	f.sensor.Event(t, func(e event.Event) bool { return strings.Contains(e.Message, text) })
}
