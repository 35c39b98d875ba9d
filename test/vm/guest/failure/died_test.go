//go:build vmguest

package failure

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
	"weir/internal/taint"
	"weir/test/vm/guest/rig"
)

// stopped: a daemon that SIGSTOP holds for ten seconds holds nobody, and goes on afterwards as if nothing had been (B32).
func (f *fixture) stopped(t *testing.T) {
	l := f.leave(t)
	began := time.Now()
	f.sensor.Signal(t, syscall.SIGSTOP)
	l.waits.fails(t, began, "while the daemon is stopped")
	to := f.target(t)
	if r := f.session.Run(t, to.Egress("tcp")...); r.Exit != 3 {
		t.Errorf("while the daemon is stopped: %s", r)
	}
	time.Sleep(10*time.Second - time.Since(began))
	to.Nothing(t)
	f.sensor.Signal(t, syscall.SIGCONT)
	f.remembered(t, l)
	f.sensor.Deny(t, l.waits.q.ID)
	f.sensor.Deny(t, to.asked(t).ID)
	f.works(t)
}

// left is what must outlive a daemon: a question that waits, one that was approved and is to be claimed, and a grant.
type left struct {
	waits   held
	claim   target
	granted *rig.Proc
	open    target
	grant   event.GrantInfo
	ends    time.Duration // of the grant, on the clock that nobody sets
}

func (f *fixture) leave(t *testing.T) left {
	t.Helper()
	l := left{claim: f.target(t)}
	gone := f.session.Start(t, l.claim.Egress("tcp")...)
	q := l.claim.asked(t)
	gone.Signal(t, syscall.SIGKILL)
	gone.Wait(t)
	f.grant(t, &l)
	f.sensor.Approve(t, q.ID)
	l.waits = f.hold(t)
	return l
}

// grant leaves a grant: its command has connected, and waits.
func (f *fixture) grant(t *testing.T, l *left) {
	t.Helper()
	l.open = f.target(t)
	l.granted = f.session.Start(t, l.open.Egress("tcp -wait connect")...)
	f.sensor.Approve(t, l.open.asked(t).ID)
	if l.granted.WaitLine("opened", rig.Late) == "" {
		t.Fatal("the approved command did not connect")
	}
	l.grant = f.granted(t, l.open)
	l.ends = ends(l.grant)
}

// ends is when a grant ends by what the sensor says of it, since the boot: the wall clock is set back and forth here.
func ends(g event.GrantInfo) time.Duration {
	return time.Duration(taint.Now()) + time.Until(g.Expires)
}

// granted is the grant for a target.
func (f *fixture) granted(t *testing.T, to target) event.GrantInfo {
	t.Helper()
	g, ok := f.find(t, to)
	if !ok {
		t.Errorf("no grant for %s", to.To)
	}
	return g
}

// find looks for a grant, or a claim, for a target.
func (f *fixture) find(t *testing.T, to target) (event.GrantInfo, bool) {
	t.Helper()
	for _, c := range f.sensor.Containers(t) {
		for _, g := range c.Grants {
			for _, d := range g.To {
				if int(d.Port) == to.Port {
					return g, true
				}
			}
		}
	}
	return event.GrantInfo{}, false
}

// still fails t unless there is a grant, or a claim, for a target as it was, and it ends when it was to.
func (f *fixture) still(t *testing.T, to target, was event.GrantInfo, end time.Duration) {
	t.Helper()
	is := f.granted(t, to)
	if late := ends(is) - end; is.ID != was.ID || is.Kind != was.Kind || late.Abs() > 2*time.Second {
		t.Errorf("the grant was %+v and is %+v: it ends %v later", was, is, late)
	}
}

// remembered fails t unless the daemon that runs now knows all that was left. The question that waited has its id.
func (f *fixture) remembered(t *testing.T, l left) {
	t.Helper()
	f.wantTaint(t, "failing", "secret")
	f.wantTaint(t, "probe", "corruption")
	if q := l.waits.to.asked(t); q.ID != l.waits.q.ID || q.State != gate.StatePending {
		t.Errorf("the question was %+v and is %+v", l.waits.q, q)
	}
	f.still(t, l.open, l.grant, l.ends)
	l.granted.Input(t, "\n")
	if r := l.granted.Wait(t); r.Exit != 0 {
		t.Errorf("the granted command: %s", r)
	}
	l.open.Arrived(t)
	if r := f.session.Run(t, l.claim.Egress("tcp")...); r.Exit != 0 {
		t.Errorf("the approval is lost: %s", r)
	}
	l.claim.Arrived(t)
}

// killed: a daemon that is killed is missed by nobody but who asks (B32); a container that is made meanwhile is found (B33).
func (f *fixture) killed(t *testing.T) {
	l := f.leave(t)
	began := time.Now()
	f.sensor.Kill(t)
	l.waits.fails(t, began, "when the daemon was killed")
	to := f.target(t)
	if r := f.session.Run(t, to.Egress("tcp")...); r.Exit != 3 {
		t.Errorf("without a daemon: %s", r)
	}
	makeCgroup(t, parent+"/meanwhile")
	f.probe.Steady(t)
	f.sensor.Restart(t)
	f.remembered(t, l)
	f.sensor.Taint(t, parent+"/meanwhile", "secret")
	to.Nothing(t)
}

// restarts: a sensor that is killed in each stage of its start, again and again, lets nobody out, and forgets nothing (B32).
func (f *fixture) restarts(t *testing.T) {
	l := f.leave(t)
	lasts := f.target(t)
	goesOn := f.session.Start(t, "python3", "-c", rig.Tries, rig.World4, itoa(lasts.Port), lasts.Text)
	q := lasts.asked(t)
	f.sensor.KillBoth(t)
	f.loop(t, f.sensor.Took)
	lasts.Nothing(t)
	f.probe.Steady(t)
	began := time.Now()
	f.sensor.Restart(t)
	l.waits.fails(t, began, "while the sensor was started again and again")
	if again := lasts.asked(t); again.ID != q.ID {
		t.Errorf("the question was %s and is %s", q.ID, again.ID)
	}
	f.remembered(t, l)
	f.sensor.Deny(t, l.waits.q.ID)
	lasts.Nothing(t)
	f.sensor.Approve(t, q.ID)
	if r := goesOn.Wait(t); r.Exit != 0 {
		t.Errorf("approved: %s", r)
	}
	lasts.Arrived(t)
}

// grantEnds: a grant and a claim of some seconds end when they were to, whichever daemon runs then.
func (f *fixture) grantEnds(t *testing.T) {
	short := int(f.sensor.Took/time.Second)*5 + 40 // another daemon is to come before
	few := strings.NewReplacer("approval_ttl: 900", "approval_ttl: "+itoa(short), "grant:\n  seconds: 900", "grant:\n  seconds: "+itoa(short))
	f.loaded(t, func() { write(t, whole(few.Replace(policy))) })
	defer f.loaded(t, func() { write(t, whole(policy)) })
	unheld := func(to target) rig.Result {
		return f.session.Run(t, append([]string{"egress.386"}, to.Egress("tcp")[1:]...)...)
	}
	used, claim := f.target(t), f.target(t)
	for _, to := range []target{used, claim} {
		if r := unheld(to); r.Exit != 3 {
			t.Errorf("a call that cannot be held: %s", r)
		}
	}
	f.sensor.Approve(t, used.asked(t).ID)
	q := claim.asked(t)
	f.sensor.Approve(t, q.ID)
	var l left
	f.grant(t, &l)
	claimed := f.granted(t, claim)
	claimEnds := ends(claimed)
	if claimed.Kind != "claim" {
		t.Errorf("not a claim: %+v", claimed)
	}
	if left := l.ends - time.Duration(taint.Now()); left > time.Duration(short)*time.Second {
		t.Errorf("the grant is to last %v", left)
	}
	f.sensor.Kill(t)
	f.sensor.Restart(t)
	f.still(t, l.open, l.grant, l.ends)
	f.still(t, claim, claimed, claimEnds)
	if r := unheld(used); r.Exit != 0 {
		t.Errorf("before the end of the claim: %s", r)
	}
	used.Arrived(t)
	time.Sleep(l.ends + time.Second - time.Duration(taint.Now()))
	mark := f.world.Mark(t)
	l.granted.Input(t, "\n")
	l.granted.Wait(t) // what it writes is dropped, and it is not told
	f.world.Nothing(t, mark, l.open.Text, l.open.Port)
	rig.Eventually(t, "the grant and the claim have ended", func() bool {
		_, granted := f.find(t, l.open)
		_, claimed := f.find(t, claim)
		return !granted && !claimed
	})
	if r := unheld(claim); r.Exit != 3 {
		t.Errorf("after the end of the claim: %s", r)
	}
	if again := claim.asked(t); again.ID == q.ID {
		t.Error("the question that was answered is asked again")
	}
	f.sensor.Deny(t, claim.asked(t).ID)
	claim.Nothing(t)
	p := f.session.Start(t, l.open.Egress("tcp")...)
	f.sensor.Deny(t, l.open.asked(t).ID)
	if r := p.Wait(t); r.Exit != 3 {
		t.Errorf("after the end of the grant: %s", r)
	}
	f.world.Nothing(t, mark, l.open.Text, l.open.Port)
}

// loop starts the sensor again and again, and kills it in each stage of its start, which takes whole.
func (f *fixture) loop(t *testing.T, whole time.Duration) {
	t.Helper()
	const rounds = 10
	for i := range rounds {
		cmd := exec.Command("weir", "run", "--policy", file)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i+1) / rounds)
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil { // so that it starts nobody between the next two lines
			t.Fatal(err)
		}
		rig.Eventually(t, "it stands", func() bool {
			st, err := linux.ReadStat(cmd.Process.Pid)
			return err != nil || st.State == 'T' || st.State == 'Z'
		})
		children := rig.Must(t, "cat /proc/"+itoa(cmd.Process.Pid)+"/task/*/children")
		for _, pid := range append(strings.Fields(children), itoa(cmd.Process.Pid)) {
			rig.Must(t, "kill -9 "+pid+" || true") // it may have ended
		}
		_ = cmd.Wait() // killed
		t.Logf("killed at %d/%d of a start, %v: heartbeat %d, %d links", i+1, rounds, whole, rig.Heartbeat(t), len(f.programs(t)))
		f.probe.Nothing(t)
	}
}
