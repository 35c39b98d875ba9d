//go:build vmguest

package failure

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"weir/internal/event"
	"weir/test/vm/guest/rig"
)

// fill leaves no room on the disk.
func (f *fixture) fill(t *testing.T) {
	t.Helper()
	f.disk.Fill(t, f.sensor, func() { f.session.Run(t, "true") })
}

// fullDisk: what is not written is not allowed, what is tainted meanwhile is so at once and is stored when there is room, and the
// log says how much it has missed.
func (f *fixture) fullDisk(t *testing.T) {
	const count = 12
	l, waits := f.leave(t), f.hold(t)
	clean := f.sensor.Guard(t, "clean")
	begin, old := len(log(t)), f.counter(t, "lost_sink")
	f.fill(t)

	// answers and questions are refused, and say why
	began := time.Now()
	out, exit := weir(t, "approve", waits.q.ID)
	if exit != 1 || !strings.Contains(out, "no space is left") {
		t.Errorf("weir approve: exit %d: %s", exit, out)
	}
	waits.fails(t, began, "approved, which could not be written")
	to := f.target(t)
	if r := f.session.Run(t, to.Egress("tcp")...); r.Exit != 3 {
		t.Errorf("a question that could not be written: %s", r)
	}
	to.Nothing(t)

	// taint is in force at once
	if out, exit = weir(t, "taint", "clean", "secret"); exit != 1 || !strings.Contains(out, "no space is left") {
		t.Errorf("weir taint: exit %d: %s", exit, out)
	}
	to = f.target(t)
	if r := clean.Run(t, to.Egress("tcp")...); r.Exit != 3 {
		t.Errorf("tainted, which could not be written: %s", r)
	}
	to.Nothing(t)
	f.probe.Steady(t)

	lost := f.counter(t, "lost_sink")
	for i := range count {
		f.session.Run(t, "true", "full-"+itoa(i))
	}
	rig.Eventually(t, "they are missed", func() bool { return f.counter(t, "lost_sink") >= lost+count-1 })
	f.disk.Free(t)
	f.session.Run(t, "true", "room-again")
	rig.Eventually(t, "events are written again", func() bool {
		seen, _ := told(log(t), "", event.Exec, arg(1, "room-again"))
		return seen == 1
	})
	f.works(t)
	all := func(e event.Event) bool { return true }
	var missed uint64
	for _, k := range event.Kinds() {
		_, n := told(log(t)[begin:], "sink", k, all)
		missed += n
	}
	if now := f.counter(t, "lost_sink") - old; missed != now {
		t.Errorf("the log tells of %d events that it missed, status of %d", missed, now)
	}
	mine := func(e event.Event) bool {
		return e.Process != nil && len(e.Process.Argv) == 2 && strings.HasPrefix(e.Process.Argv[1], "full-")
	}
	if seen, _ := told(log(t), "sink", event.Exec, mine); seen > 1 { // a short one may still fit
		t.Errorf("%d of %d events found room on a full disk", seen, count)
	}
	rig.Eventually(t, "the taint is stored", func() bool { return rig.StoredTaint(t, "clean") })
	if r, ended := l.waits.p.WaitFor(0); ended {
		t.Errorf("held before the disk was full, and not answered: %s", r)
	}
	began = time.Now()
	f.sensor.Kill(t)
	l.waits.fails(t, began, "when the daemon was killed after its disk had been full")
	rig.TidyLog(t)
	f.sensor.Restart(t)
	f.remembered(t, l)
	f.sensor.Deny(t, l.waits.q.ID)
	f.wantTaint(t, "clean", "secret")
	f.works(t)
}

// weir runs a command and returns all that it says.
func weir(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command("weir", args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("weir %v: %v", args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// broken says whether a message tells that the disk takes nothing: which it is depends on the kernel.
func broken(out string) bool {
	return strings.Contains(out, "its file system is read-only") || strings.Contains(out, "the disk cannot be read or written")
}

// readOnlyDisk: a disk that the kernel takes for broken. The sensor goes on and denies; another one does not start, and says why;
// what is tainted stays denied, and the next start on a good disk has it all.
func (f *fixture) readOnlyDisk(t *testing.T) {
	l, waits := f.leave(t), f.hold(t)
	other := f.sensor.Guard(t, "other")
	f.disk.Break(t)
	if out, exit := weir(t, "taint", "other", "secret"); exit != 1 || !broken(out) {
		t.Errorf("weir taint: exit %d: %s", exit, out)
	}
	to := f.target(t)
	if r := other.Run(t, to.Egress("tcp")...); r.Exit != 3 {
		t.Errorf("tainted, which could not be written: %s", r)
	}
	to.Nothing(t)
	began := time.Now()
	if out, exit := weir(t, "approve", waits.q.ID); exit != 1 {
		t.Errorf("weir approve: exit %d: %s", exit, out)
	}
	waits.fails(t, began, "approved, which could not be written")
	f.probe.Steady(t)
	if r, ended := l.waits.p.WaitFor(0); ended {
		t.Errorf("held before the disk broke, and not answered: %s", r)
	}

	began = time.Now()
	f.sensor.Kill(t)
	l.waits.fails(t, began, "when the daemon was killed over a broken disk")
	const slow = "weir run: getting ready: it loads its programs into the kernel, which can take half a minute\n"
	out, exit := weir(t, "run", "--policy", file)
	if said := strings.Replace(out, slow, "", 1); exit != 1 || strings.Count(said, "\n") != 1 || !broken(said) || strings.Contains(said, "remove it") {
		t.Errorf("weir run on a read-only disk: exit %d: %s", exit, out)
	}
	f.probe.Steady(t)
	f.disk.Unmount(t)
	f.disk.Mount(t)
	rig.TidyLog(t)
	f.sensor.Restart(t)
	f.remembered(t, l)
	f.sensor.Deny(t, l.waits.q.ID)
	f.wantTaint(t, "other", "secret")
	f.works(t)
}
