//go:build vmguest

// Package cgroups guards cgroups that somebody else made: by path, and where runtimes without an interface put containers.
package cgroups

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/internal/control"
	"weir/internal/event"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	policy = "hold: false\napprover: none\n"
	root   = "/sys/fs/cgroup"
)

// mkdir makes a cgroup for as long as t runs.
func mkdir(t *testing.T, at string) {
	t.Helper()
	rig.Must(t, "mkdir -p "+root+at)
	t.Cleanup(func() { rig.RemoveCgroup(t, root+at) })
}

// denied checks that nothing of a session gets out, in any of these ways.
func denied(t *testing.T, world *rig.Outside, s *rig.Session) {
	t.Helper()
	for _, words := range []string{"tcp", "udp-sendto", "nest -n 1"} {
		to := world.Raw(t)
		if r := s.Run(t, to.Egress(words)...); r.Exit == 0 {
			t.Errorf("%s is not refused: %s", words, r)
		}
		to.Nothing(t)
	}
}

func free(t *testing.T, world *rig.Outside, s *rig.Session) {
	t.Helper()
	to := world.Raw(t)
	if r := s.Run(t, to.Egress("tcp")...); r.Exit != 0 {
		t.Errorf("not free: %s", r)
	}
	to.Arrived(t)
}

func known(t *testing.T, s *rig.Sensor, cgroup string, want func(control.Container) bool) control.Container {
	t.Helper()
	var found control.Container
	rig.Eventually(t, "the sensor knows "+cgroup, func() bool {
		for _, c := range s.Containers(t) {
			if c.Cgroup == cgroup && (want == nil || want(c)) {
				found = c
				return true
			}
		}
		return false
	})
	return found
}

func refused(t *testing.T, s *rig.Sensor, want string, args ...string) {
	t.Helper()
	out, exit := s.Weir(t, args...)
	if exit == 0 || !strings.Contains(out, want) || strings.Count(strings.TrimSpace(out), "\n") > 0 {
		t.Errorf("weir %v: exit %d: %q, want one line with %q", args, exit, out, want)
	}
}

// A cgroup below no guarded parent is guarded by its path, from then on (G1, B33, B45).
func TestByPath(t *testing.T) {
	world := rig.NewOutside(t)
	one, two := rig.Bare(t, "one"), rig.Bare(t, "two")
	free(t, world, one)
	s := rig.StartSensor(t, policy)
	free(t, world, one)
	refused(t, s, "guard it with `weir guard --cgroup /bare-one`", "taint", "--cgroup", "/bare-one", "secret")
	if out := s.Must(t, "guard", "--cgroup", root+"/bare-one/", "--name", "review"); !strings.Contains(out, "/bare-one is guarded") {
		t.Errorf("weir guard --cgroup says %q", out)
	}
	free(t, world, one)
	if out := s.Must(t, "taint", "--cgroup", "/bare-one", "secret"); !strings.Contains(out, "review (/bare-one) is tainted: secret") {
		t.Errorf("weir taint --cgroup says %q", out)
	}
	denied(t, world, one)
	free(t, world, two)

	t.Run("mistakes", func(t *testing.T) {
		mkdir(t, "/bare-one/inner")
		mkdir(t, "/outer")
		mkdir(t, "/outer/inner")
		s.Must(t, "guard", "--cgroup", "/outer/inner")
		for name, want := range map[string]string{
			"/": "whole host", "/weir": "guarded parent", "/nope": "no cgroup /nope", "agent-9.scope": "no cgroup of a unit agent-9.scope",
			"bare-one": "leading slash", "/bare-one/inner": "in container /bare-one", "/outer": "container /outer/inner is in it",
		} {
			refused(t, s, want, "guard", "--cgroup", name)
		}
		if at := strings.TrimPrefix(strings.TrimSpace(rig.Must(t, "cat /proc/1/cgroup")), "0::"); at != "/" {
			refused(t, s, "process 1", "guard", "--cgroup", at)
		}
	})
	t.Run("the sensor is restarted", func(t *testing.T) {
		s.KillBoth(t)
		denied(t, world, one)
		s.Restart(t)
		denied(t, world, one)
		known(t, s, "/bare-one", func(c control.Container) bool { return c.Name == "review" && slices.Equal(c.Taint, []string{"secret"}) })
	})
	t.Run("it is made again", func(t *testing.T) {
		one.Close()
		rig.RemoveCgroup(t, root+"/bare-one")
		known(t, s, "/bare-one", func(c control.Container) bool { return !c.Live })
		again := rig.Bare(t, "one")
		s.Event(t, func(e event.Event) bool { return strings.Contains(e.Message, "/bare-one was made again") })
		denied(t, world, again)
		s.Untaint(t, "review", "secret")
		free(t, world, again)
	})
	t.Run("guard.cgroups", func(t *testing.T) {
		s.Policy(t, policy+"guard:\n  cgroups: [/bare-three, agent-3.service]\ntaint:\n  at_start: [corruption]\n")
		three := rig.Bare(t, "three")
		known(t, s, "/bare-three", func(c control.Container) bool { return slices.Equal(c.Taint, []string{"corruption"}) })
		denied(t, world, three)
		mkdir(t, "/system.slice/agent-3.service")
		known(t, s, "/system.slice/agent-3.service", nil)
		s.Taint(t, "agent-3.service", "secret")
		known(t, s, "/system.slice/agent-3.service", func(c control.Container) bool { return len(c.Taint) == 2 })
		free(t, world, two)
	})
}

// Where Docker and podman put containers, they are found by the runtime's id; what one has in common with its neighbours is not tainted.
func TestRuntimes(t *testing.T) {
	world := rig.NewOutside(t)
	id := strings.Repeat("0123456789abcdef", 4)
	for _, dir := range []string{"/docker", "/machine.slice"} {
		mkdir(t, dir)
	}
	s := rig.StartSensor(t, policy+"guard:\n  parents: [/docker, machine.slice]\n")
	for runtime, at := range map[string]string{"docker": "/docker/" + id, "podman": "/machine.slice/libpod-" + strings.Repeat("fedcba9876543210", 4) + ".scope"} {
		mkdir(t, at)
		inside := rig.BareIn(t, runtime, root+at)
		c := known(t, s, at, nil)
		free(t, world, inside)
		s.Taint(t, c.RuntimeID[:12], "secret") // as docker ps shows it
		denied(t, world, inside)
		if e := s.Event(t, func(e event.Event) bool { return e.Kind == event.Taint && e.Container.Cgroup == at }); e.Container.Runtime != runtime || !strings.Contains(at, e.Container.RuntimeID) {
			t.Errorf("the log says %+v", e.Container)
		}
	}
}

// A process that leaves its container is killed before it sends, wherever it is put and whoever puts it there: outside all that is guarded,
// into a clean container beside it, into one by itself (B28). That it is clean makes no difference.
func TestMoved(t *testing.T) {
	world := rig.NewOutside(t)
	mkdir(t, "/agents")
	mkdir(t, "/aside")
	mkdir(t, "/alone")
	mkdir(t, "/agents/clean")
	const waits = "import os, sys; print('ready', flush=True); sys.stdin.readline(); os.execvp(sys.argv[1], sys.argv[1:])"
	moves := func(s *rig.Session, to string) (self, other rig.Result, places [2]rig.Place) {
		places = [2]rig.Place{world.Raw(t), world.Raw(t)}
		self = s.Run(t, places[0].Egress("move -cgroup "+root+to)...)
		p := s.Start(t, append([]string{"python3", "-c", waits}, places[1].Egress("tcp")...)...)
		if p.WaitLine("ready", rig.Late) == "" {
			t.Fatalf("the process to move does not start: %s", p.Wait(t))
		}
		if err := os.WriteFile(root+to+"/cgroup.procs", []byte(strconv.Itoa(p.Pid())), 0); err != nil {
			t.Fatalf("move it: %v", err)
		}
		p.Input(t, "\n")
		return self, p.Wait(t), places
	}
	targets := []string{"", "/aside", "/agents/clean", "/alone"}
	bare := rig.Bare(t, "mover")
	for _, to := range targets {
		self, other, places := moves(bare, to)
		if self.Exit != 0 || other.Exit != 0 {
			t.Errorf("without the sensor, to %q: %s, %s", to, self, other)
		}
		places[0].Arrived(t)
		places[1].Arrived(t)
	}

	s := rig.StartSensor(t, policy+"guard:\n  parents: [/agents]\n  cgroups: [/alone]\n")
	known(t, s, "/alone", nil)
	known(t, s, "/agents/clean", nil)
	mkdir(t, "/agents/mover")
	below, single := rig.BareIn(t, "below", root+"/agents/mover"), rig.Bare(t, "single")
	s.Must(t, "guard", "--cgroup", "/bare-single")
	for _, bits := range []bool{false, true} {
		if bits {
			s.Taint(t, "/agents/mover", "secret")
			s.Taint(t, "/bare-single", "secret")
		}
		for _, from := range []*rig.Session{below, single} {
			for _, to := range targets {
				self, other, places := moves(from, to)
				for _, r := range []rig.Result{self, other} {
					if r.Exit != 128+int(syscall.SIGKILL) {
						t.Errorf("%s, tainted %t, to %q: want it killed, got %s", from.Name, bits, to, r)
					}
				}
				places[0].Nothing(t)
				places[1].Nothing(t)
			}
		}
	}
	left := 0
	for _, e := range s.Events(t, event.Error) {
		if strings.Contains(e.Message, "left its container") && strings.Contains(e.Message, "killed") {
			left++
		}
	}
	if want := 2 * 2 * 2 * len(targets); left != want {
		t.Errorf("%d were told to have left, want %d", left, want)
	}
	free(t, world, rig.BareIn(t, "clean", root+"/agents/clean"))
}
