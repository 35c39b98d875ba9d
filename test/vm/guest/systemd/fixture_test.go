//go:build vmguest

// Package systemd runs the sensor as deploy/systemd has it, under a systemd that is process 1, and kills, stops and replaces it
// while a tainted command tries to get out twenty times a second: not one try may pass.
package systemd

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	soon   = 5 * time.Second // how long a held command may stay so when nobody can answer; it takes a tenth of that
	binary = "/usr/local/bin/weir"
	units  = "/weir/deploy/systemd/"
)

const policy = `version: 1
guard:
  parents: [agents.slice]
approval_timeout: 900
events:
  file: /var/log/weir/rig-events.jsonl
  also: journal
cop:
  reviewer: none
`

type fixture struct {
	world   *rig.Outside
	sensor  *rig.Sensor // what a unit runs; not to be started or stopped by the rig
	session *rig.Session
	probe   *rig.Probe
}

// TestSystemd installs the units as docs/deploy.md says.
func TestSystemd(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t), sensor: &rig.Sensor{}}
	f.install(t)
	f.session = f.sensor.Guard(t, "agent", "--taint", "secret")
	f.probe = f.sensor.Probe(t, f.world)
	f.probe.Steady(t)
	for _, test := range []struct {
		name string
		run  func(*fixture, *testing.T)
	}{
		{"started", (*fixture).started},
		{"journal", (*fixture).journal},
		{"B32_killed_for_good", (*fixture).killedForGood},
		{"B33_killed", (*fixture).killed},
		{"watchdog", (*fixture).watchdog},
		{"upgrade", (*fixture).upgrade},
		{"B45_restarted_container", (*fixture).restartedContainer},
		{"units_by_name", (*fixture).byName},
		{"stopped", (*fixture).stopped},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(f, t)
			f.probe.Steady(t)
		})
	}
	f.probe.Stop(t)
}

func (f *fixture) install(t *testing.T) {
	t.Helper()
	rig.Must(t, "install -m 755 /opt/weir/weir "+binary+" && install -m 644 "+units+"*.service /etc/systemd/system/ && mkdir -p /etc/weir")
	if err := os.WriteFile("/etc/weir/policy.yaml", []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(rig.Must(t, "journalctl --no-pager -o short-monotonic -u weir -u weir-watch | tail -80"))
		}
	})
	rig.Must(t, "systemctl daemon-reload")
	began := time.Now()
	rig.Must(t, "systemctl start weir")
	t.Logf("systemctl start weir: ready after %v", time.Since(began).Round(10*time.Millisecond))
}

// property is one of a unit's, as systemctl show prints it.
func property(t *testing.T, unit, name string) string {
	t.Helper()
	return strings.TrimSpace(rig.Must(t, "systemctl show --value -p "+name+" "+unit))
}

func number(t *testing.T, unit, name string) int {
	t.Helper()
	n, err := strconv.Atoi(property(t, unit, name))
	if err != nil {
		t.Fatalf("%s of %s: %v", name, unit, err)
	}
	return n
}

// daemon is the child of the unit's main process.
func daemon(t *testing.T) int {
	t.Helper()
	main := number(t, "weir", "MainPID")
	pid, err := strconv.Atoi(strings.TrimSpace(rig.Must(t, fmt.Sprintf("cat /proc/%d/task/*/children", main))))
	if err != nil {
		t.Fatalf("find the daemon below weir run: %v", err)
	}
	return pid
}

// back waits until systemd has started another main process than before, and it is ready.
func (f *fixture) back(t *testing.T, before int) {
	t.Helper()
	for end := time.Now().Add(5 * rig.Late); ; time.Sleep(500 * time.Millisecond) { // systemctl is slow here, and slows down what is waited for
		show := strings.Fields(rig.Must(t, "systemctl show --value -p ActiveState,MainPID weir"))
		if len(show) == 2 && slices.Contains(show, "active") && !slices.Contains(show, "0") && !slices.Contains(show, strconv.Itoa(before)) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the unit is not active again: %v", show)
		}
	}
	f.healthy(t)
}

// healthy waits until weir health says so: on a busy machine a heartbeat can be late.
func (f *fixture) healthy(t *testing.T) {
	t.Helper()
	rig.Eventually(t, "weir health", func() bool {
		out, exit := f.sensor.Weir(t, "health")
		if exit != 0 {
			t.Logf("weir health: exit %d: %s", exit, out)
		}
		return exit == 0
	})
}

// held starts a command that stops in its connect, and returns it with its question and where it wants to.
func (f *fixture) held(t *testing.T) (p *rig.Proc, question string, to rig.Place) {
	t.Helper()
	to = f.world.Raw(t)
	p = f.session.Start(t, to.Egress("tcp")...)
	return p, f.sensor.Asked(t, to.About).ID, to
}
