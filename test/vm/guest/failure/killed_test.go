//go:build vmguest

package failure

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"weir/internal/event"
	"weir/internal/linux"
	"weir/test/vm/guest/rig"
)

// bothKilled: without a watcher what is held stays so until the next start; then it is refused. Its question stays, and an approval is
// for the next try, whatever the wall clock says meanwhile.
func (f *fixture) bothKilled(t *testing.T) {
	l := f.leave(t)
	f.sensor.KillBoth(t)
	setClock(t, -time.Hour)
	f.probe.Steady(t)
	if _, ended := l.waits.p.WaitFor(time.Second); ended {
		t.Error("nobody could wake it, and it ended")
	}
	began := time.Now()
	f.sensor.Restart(t)
	l.waits.fails(t, began, "when the sensor was started after both had been killed")
	f.remembered(t, l)
	l.waits.answered(t)

	waits := f.hold(t)
	f.sensor.KillBoth(t)
	setClock(t, 2*time.Hour)
	began = time.Now()
	f.sensor.Restart(t)
	waits.fails(t, began, "when the sensor was started at once after both had been killed")
	if q := waits.to.asked(t); q.ID != waits.q.ID {
		t.Errorf("the question was %s and is %s", waits.q.ID, q.ID)
	}
	waits.answered(t)
	setClock(t, -time.Hour)
}

// answered approves the question of a command that was refused: the next try of the same command has the approval.
func (h held) answered(t *testing.T) {
	t.Helper()
	h.to.f.sensor.Approve(t, h.q.ID)
	if r := h.to.f.session.Run(t, h.to.Egress("tcp")...); r.Exit != 0 {
		t.Errorf("approved: %s", r)
	}
	h.to.Arrived(t)
}

// outOfMemory: the kernel kills the daemon, whose memory is limited, and never the watcher, which wakes whom it held.
func (f *fixture) outOfMemory(t *testing.T) {
	const small = "/sys/fs/cgroup/small"
	f.sensor.Stop(t)
	makeCgroup(t, "/small")
	f.sensor.Cgroup = small
	f.sensor.Restart(t)
	f.sensor.Cgroup = ""
	l := f.leave(t)
	// less and less, until it can take back nothing more from either without killing
	var began time.Time
	limit := atoi(strings.TrimSpace(rig.Must(t, "cat "+small+"/memory.current")))
	for strings.Contains(rig.Must(t, "cat "+small+"/memory.events"), "oom_kill 0\n") {
		began = time.Now()
		limit -= 512 << 10
		rig.Must(t, "echo "+itoa(limit)+" >"+small+"/memory.max")
	}
	if err := f.sensor.Died(t); err == nil {
		t.Error("weir run ended without an error")
	}
	if events := rig.Must(t, "cat "+small+"/memory.events"); !strings.Contains(events, "oom_kill 1\n") {
		t.Errorf("one is to be killed for its memory, and no more: %s", events)
	}
	l.waits.fails(t, began, "when the daemon was killed for its memory")
	f.probe.Steady(t)
	f.sensor.Restart(t)
	f.remembered(t, l)
	f.sensor.Deny(t, l.waits.q.ID)
}

// upgrade: another build takes over under load, and nothing is lost or open meanwhile.
func (f *fixture) upgrade(t *testing.T) {
	const execs = 600
	to := f.target(t)
	f.loaded(t, func() { write(t, whole(allow(to))) })
	defer f.loaded(t, func() { write(t, whole(policy)) })
	under := f.load(t, to)
	l := f.leave(t)
	before := f.programs(t)
	burst := f.session.Start(t, "nice", "-n", "10", "execs", "many", itoa(execs), "/bin/busybox", "meanwhile")
	began := time.Now()
	f.sensor.Stop(t)
	l.waits.fails(t, began, "when the sensor was stopped")
	if _, ended := burst.WaitFor(0); ended {
		t.Error("the burst of executions was over before the other build began")
	}
	f.sensor.Program = "weir-next"
	f.sensor.Restart(t)
	// who claims an approval is known by what it executed: that must not be a second behind
	if r, ended := burst.WaitFor(5 * time.Minute); !ended || r.Exit != 0 {
		t.Errorf("burst: ended %v: %s", ended, r)
	}
	f.allTold(t, execs, "meanwhile")
	f.remembered(t, l)
	f.sensor.Deny(t, l.waits.q.ID)
	status, err := client().Status(t.Context())
	if err != nil || status.Version != "next" {
		t.Errorf("version %q, %v", status.Version, err)
	}
	after := f.programs(t)
	for name, tag := range before {
		if after[name] == tag || after[name] == "" {
			t.Errorf("program of %s: tag %s, before %s", name, after[name], tag)
		}
	}
	f.works(t)
	f.sensor.Program = ""
	f.sensor.Kill(t)
	f.sensor.Restart(t) // and back
	f.works(t)
	under.neverRefused(t)
}

// allTold waits until all executions of a burst are told. One that the first sensor had not acknowledged is told by both.
func (f *fixture) allTold(t *testing.T, count int, text string) {
	t.Helper()
	rig.Eventually(t, "all executions are told", func() bool {
		told := map[string]bool{}
		for _, e := range f.sensor.Events(t, event.Exec) {
			if arg(2, text)(e) {
				told[e.Process.Argv[1]] = true
			}
		}
		return len(told) == count
	})
}

// there says whether there is a cgroup with this id.
func there(id uint64) bool {
	_, err := linux.CgroupPath(id)
	return err == nil
}

// programs are the tags of what is attached, by the names of their pins.
func (f *fixture) programs(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(pins + "/links/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("no links are pinned: %v", err)
	}
	tags := map[string]string{}
	for _, name := range names {
		if _, id, of := strings.Cut(filepath.Base(name), "-"); of {
			if n, err := strconv.ParseUint(id, 10, 64); err == nil && !there(n) {
				continue // of a parent that is gone: no program can take the place of one there
			}
		}
		l, err := link.LoadPinnedLink(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := l.Info()
		l.Close()
		if err != nil {
			t.Fatal(err)
		}
		p, err := ebpf.NewProgramFromID(info.Program)
		if err != nil {
			t.Fatal(err)
		}
		tag, err := p.Info()
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		tags[filepath.Base(name)] = tag.Tag
	}
	return tags
}
