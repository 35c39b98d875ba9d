//go:build vmguest

package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// killed: without the daemon, what is held fails soon, all else is denied, and the next daemon knows taint and questions (G1, G15, B32).
func (f *fixture) killed(t *testing.T) {
	held, open, lasting, s := f.raw(t), f.raw(t), f.raw(t), f.guard(t, "secret")
	granted := s.Start(t, open.Egress("tcp -wait connect")...)
	open.approve(t, granted, "opened")
	goesOn := s.Start(t, "python3", "-c", rig.Tries, rig.World4, itoa(lasting.Port), lasting.Text)
	lasts := lasting.asked(t)
	waits := s.Start(t, held.Egress("tcp")...)
	q := held.asked(t)
	began := time.Now()
	f.sensor.Kill(t)
	r, ended := waits.WaitFor(rig.Late)
	if took := r.At.Sub(began); !ended || took > 5*time.Second || r.Exit != 3 || !strings.Contains(r.Stdout, "EPERM") {
		t.Errorf("held when the daemon died: after %v %v: %s", took, ended, r)
	}
	held.Nothing(t)
	for _, words := range []string{"tcp", "udp-sendto", "raw-icmp", "nest -n 1"} {
		to := f.raw(t)
		if r := s.Run(t, to.Egress(words)...); r.Exit != 3 {
			t.Errorf("%s without a daemon: %s", words, r)
		}
		to.Nothing(t)
	}
	granted.Signal(t, syscall.SIGKILL)
	granted.Wait(t)

	f.sensor.Restart(t)
	for _, c := range f.sensor.Containers(t) {
		if c.Name == s.Name && !slices.Equal(c.Taint, []string{"secret"}) {
			t.Errorf("the taint did not survive: %+v", c)
		}
	}
	f.sensor.Deny(t, q.ID) // it is still open
	if after := lasting.asked(t); after.ID != lasts.ID {
		t.Errorf("the question was %s and is %s", lasts.ID, after.ID)
	}
	lasting.Nothing(t)
	f.sensor.Approve(t, lasts.ID)
	succeeded(t, goesOn, "sent")
	lasting.Arrived(t)
	to := f.web(t)
	p := s.Start(t, to.Curl()...)
	f.sensor.Approve(t, to.asked(t).ID)
	succeeded(t, p, "answer")
	to.Arrived(t)
	f.untaint(t, s)
}

// lostSession: the policy that a session brought is nobody else's, also when the session ended while no sensor ran.
func (f *fixture) lostSession(t *testing.T) {
	to, file := f.raw(t), filepath.Join(t.TempDir(), "own.yaml")
	own := "allow:\n  - prefix: " + rig.World4 + "/32\n    protocol: tcp\n    ports: [" + itoa(to.Port) + "]\n"
	if err := os.WriteFile(file, []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	s := f.sensor.Guard(t, "lost"+itoa(to.Port), "--policy", file, "--taint", "secret")
	succeeded(t, s.Start(t, to.Egress("tcp")...), "ok")
	to.Arrived(t)
	f.sensor.KillBoth(t)
	s.Close()
	rig.RemoveCgroup(t, s.Cgroup)
	f.sensor.Restart(t)
	p := f.guard(t, "secret").Start(t, to.Egress("tcp")...)
	f.sensor.Deny(t, to.asked(t).ID)
	refused(t, p)
}

// untaint is an operator's, with a reason, and logged (G1).
func (f *fixture) untaint(t *testing.T, s *rig.Session) {
	t.Helper()
	if _, exit := f.sensor.Weir(t, "untaint", s.Name, "secret"); exit != 2 {
		t.Errorf("weir untaint without --why: exit %d, want 2", exit)
	}
	to := f.raw(t)
	p := s.Start(t, to.Egress("tcp")...)
	f.sensor.Deny(t, to.asked(t).ID)
	refused(t, p)
	to.Nothing(t)
	f.sensor.Must(t, "untaint", s.Name, "secret", "--why", "rebuilt clean")
	f.sensor.Event(t, func(e event.Event) bool {
		return e.Kind == event.Taint && e.Container.Name == s.Name && slices.Equal(e.Change.Cleared, []string{"secret"}) &&
			e.Change.Why == "rebuilt clean" && e.Change.By != ""
	})
	again := f.raw(t)
	succeeded(t, s.Start(t, again.Egress("tcp")...), "ok")
	again.Arrived(t)
}
