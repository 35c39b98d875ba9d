//go:build vmguest

package failure

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weir/internal/gate"
	"weir/internal/linux"
	"weir/test/vm/guest/rig"
)

// seat is the beginning of the name of the cgroup that a held command is frozen in.
const seat = "weir-grant-"

// steps are what a daemon does to hold a command, and to carry out a verdict, as test/vm/attack/halt has them. Those from the
// verdict on that let a command go on have let it go on whoever lives then; a refusal that was not written yet is one all the same.
var steps = []struct {
	name, place string
	answer      string // when the command is held; empty: it is being held
	out         bool   // it goes on, with what it asked for
}{
	{"made", "mkdir:" + seat, "", false},
	{"entered", "run", "", false},
	{"freezes", "write:cgroup.freeze:1", "", false},
	{"moves", "writing:cgroup.procs:", "", false},
	{"moved", "write:cgroup.procs:", "", false},
	{"settled", "map:held:update", "", false},
	{"held", "", "", false},
	{"approved", "map:grant_dests:update", "approve", false},
	{"opened", "map:grants:update", "approve", true},
	{"answered", "map:held:take", "approve", true},
	{"thaws", "writing:cgroup.freeze:0", "approve", true},
	{"thawed", "write:cgroup.freeze:0", "approve", true},
	{"denied", "map:refusals:update", "deny", false},
	{"thaws_denied", "writing:cgroup.freeze:0", "deny", false},
	{"withdrawn", "map:cgroups:delete", "taint", false},
}

// halted is a daemon one of whose threads stays where it is.
type halted struct {
	lines chan string
}

// halt lets the daemon run until one of its threads comes to a place.
func (f *fixture) halt(t *testing.T, place string) halted {
	t.Helper()
	if place == "" {
		return halted{}
	}
	cmd := exec.Command("halt", itoa(f.sensor.Pid()), place)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	h := halted{make(chan string, 4)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(h.lines)
		for all := bufio.NewScanner(out); all.Scan(); {
			h.lines <- all.Text()
		}
		_ = cmd.Wait() // it ends with the daemon, or is killed
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	h.says(t, "ready")
	return h
}

// reached waits until a thread is there.
func (h halted) reached(t *testing.T) {
	t.Helper()
	if h.lines != nil {
		t.Log(h.says(t, "halted"))
	}
}

func (h halted) says(t *testing.T, begin string) string {
	t.Helper()
	select {
	case line := <-h.lines:
		if !strings.HasPrefix(line, begin) {
			t.Fatalf("halt says %q, not %s", line, begin)
		}
		return line
	case <-time.After(rig.Late):
		t.Fatalf("nothing is %s after %v", begin, rig.Late)
		return ""
	}
}

// killedAtEach kills the daemon, and the daemon and its watcher, at each step of holding a command and of answering it (B32, B36, F05).
func (f *fixture) killedAtEach(t *testing.T) {
	all := f.session
	defer func() { f.session = all }()
	for i, step := range steps {
		for _, kill := range []struct {
			name string
			at   func(*fixture, *testing.T, string, string, bool)
		}{{"daemon", (*fixture).killedAt}, {"both", (*fixture).bothKilledAt}} {
			if i%5 == 0 || step.answer == "taint" { // a container asks few questions in a row
				f.session = f.sensor.Guard(t, fmt.Sprintf("steps-%d-%s", i, kill.name), "--taint", "secret")
			}
			t.Run(step.name+"_"+kill.name, func(t *testing.T) { kill.at(f, t, step.place, step.answer, step.out) })
			if syscall.Kill(f.sensor.Pid(), 0) != nil {
				f.sensor.Restart(t) // it failed halfway
			}
		}
	}
}

// stepTo has a command asked for and answered until the daemon is where it is to be killed.
func (f *fixture) stepTo(t *testing.T, place, answer string) held {
	t.Helper()
	if answer == "" && place != "" {
		h := held{to: f.target(t)}
		at := f.halt(t, place)
		h.p = f.session.Start(t, h.to.Egress("tcp")...)
		at.reached(t)
		return h
	}
	h := f.hold(t)
	at := f.halt(t, place)
	if answer != "" {
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			if answer == "taint" {
				_, _ = client().Taint(t.Context(), f.session.Name, []string{"corruption"}, "test", "") // it may die before it says so
				return
			}
			_, _ = client().Answer(t.Context(), h.q.ID, gate.Reply{Allow: answer == "approve", By: "test"}) // the same
		}()
		t.Cleanup(func() { <-answered })
	}
	at.reached(t)
	return h
}

func (f *fixture) killedAt(t *testing.T, place, answer string, out bool) {
	h := f.stepTo(t, place, answer)
	began := time.Now()
	f.sensor.Kill(t)
	if out {
		h.goesOn(t, began)
	} else {
		h.fails(t, began, "when the daemon was killed")
	}
	f.nothingFrozen(t)
	f.sensor.Restart(t)
	f.nothingLeft(t)
}

// bothKilledAt: the next daemon comes as if one had been killed while it began: its watcher leaves all as it is, for some seconds.
func (f *fixture) bothKilledAt(t *testing.T, place, answer string, out bool) {
	h := f.stepTo(t, place, answer)
	f.sensor.KillBoth(t)
	if !out {
		h.to.Nothing(t)
	}
	beat(t, 0)
	f.sensor.Restart(t)
	began := time.Now()
	if out {
		h.goesOn(t, began)
		f.nothingLeft(t)
		return
	}
	q, r, ended := f.askedUnlessEnded(t, h, h.to.About)
	h.q = q
	switch {
	case answer == "approve" && ended && r.Exit == 0: // who approved may be asked again, or not
		h.to.Arrived(t)
	case ended:
		t.Logf("refused %v after the start", r.At.Sub(began))
		if r.Exit != 3 || !strings.Contains(r.Stdout, "EPERM") {
			t.Errorf("after both were killed: %s", r)
		}
		h.to.Nothing(t)
	case answer == "deny":
		t.Errorf("denied, and asked again: %+v", h.q)
	default:
		if answer == "taint" && !slices.Contains(q.Container.Taint, "corruption") { // it was asked for less, and is asked anew
			f.sensor.Approve(t, q.ID)
			h.q = f.sensor.Asked(t, func(o gate.Question) bool { return o.ID != q.ID && h.to.About(o) })
		}
		h.approve(t)
	}
	f.nothingLeft(t)
}

// goesOn fails t unless the command, which was approved, goes on soon after what began.
func (h held) goesOn(t *testing.T, began time.Time) {
	t.Helper()
	r, ended := h.p.WaitFor(rig.Late)
	if took := r.At.Sub(began); !ended || took > soon || r.Exit != 0 {
		t.Errorf("approved: after %v ended %v: %s", took, ended, r)
	} else {
		t.Logf("approved: it went on after %v", took)
	}
	h.to.Arrived(t)
}

// beat writes a heartbeat.
func beat(t *testing.T, value uint64) {
	t.Helper()
	m, err := ebpf.LoadPinnedMap(pins+"/config", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	settings, err := m.LookupBytes(uint32(0))
	if err == nil {
		binary.NativeEndian.PutUint64(settings, value) // its first member
		err = m.Put(uint32(0), settings)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// seats are the cgroups of held and granted commands of the session.
func (f *fixture) seats(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(f.session.Cgroup, func(dir string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), seat) {
			dirs = append(dirs, dir)
		}
		return nil // it may be gone
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// nothingFrozen fails t if a process of the session is frozen.
func (f *fixture) nothingFrozen(t *testing.T) {
	t.Helper()
	for _, dir := range f.seats(t) {
		state, _ := os.ReadFile(dir + "/cgroup.events") // it may be gone
		if s := string(state); strings.Contains(s, "populated 1") && strings.Contains(s, "frozen 1") {
			t.Errorf("%s is frozen", dir)
		}
	}
}

// nothingLeft waits until the session has no cgroup of a held or granted command any more.
func (f *fixture) nothingLeft(t *testing.T) {
	t.Helper()
	var dirs []string
	for end := time.Now().Add(rig.Late / 2); ; time.Sleep(50 * time.Millisecond) {
		if dirs = f.seats(t); len(dirs) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, dir := range dirs {
		procs, _ := os.ReadFile(dir + "/cgroup.procs")
		state, _ := os.ReadFile(dir + "/cgroup.events")
		t.Errorf("left: %s: processes %q, %q", dir, procs, state)
		_ = os.WriteFile(dir+"/cgroup.freeze", []byte("0"), 0) // for the tests that come
		_ = os.Remove(dir)
	}
	if n := len(dests(t)); n != 0 {
		t.Errorf("left: %d destinations that are open to no grant", n)
	}
}

// dests are the destinations that the kernel has for grants which it does not have.
func dests(t *testing.T) (lost [][]byte) {
	t.Helper()
	open := map[string]bool{}
	entries(t, "grants", func(key []byte) { open[string(key)] = true })
	entries(t, "grant_dests", func(key []byte) {
		if !open[string(key[:8])] {
			lost = append(lost, key)
		}
	})
	return lost
}

// entries gives f the keys of a pinned map.
func entries(t *testing.T, name string, f func(key []byte)) {
	t.Helper()
	m, err := ebpf.LoadPinnedMap(pins+"/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	for it := m.Iterate(); it.Next(&key, &value); {
		f(slices.Clone(key))
	}
}

// beforeTheMove: a command whose call goes round, or has been stopped since the daemon did not come, when that is killed.
func (f *fixture) beforeTheMove(t *testing.T) {
	for _, both := range []bool{false, true} {
		for _, state := range []byte{'R', 'T'} {
			h := held{to: f.target(t)}
			f.sensor.Signal(t, syscall.SIGSTOP)
			h.p = f.session.Start(t, h.to.Egress("tcp")...)
			rig.Eventually(t, "the command asks", func() bool { return holds(t, h.p.Pid()) })
			if state == 'T' {
				h.stands(t, state)
			}
			began := time.Now()
			if both {
				f.sensor.KillBoth(t)
				h.to.Nothing(t)
				f.sensor.Restart(t)
				if q, _, ended := f.askedUnlessEnded(t, h, h.to.About); !ended {
					f.sensor.Deny(t, q.ID)
				}
				began = time.Now()
			} else {
				f.sensor.Kill(t)
			}
			h.fails(t, began, fmt.Sprintf("when the daemon was killed before it came; state %c, both %v", state, both))
			if !both {
				f.sensor.Restart(t)
			}
			f.nothingLeft(t)
		}
	}
}

// stands waits until a process is in a state.
func (h held) stands(t *testing.T, state byte) {
	t.Helper()
	rig.Eventually(t, "it stands", func() bool {
		st, err := linux.ReadStat(h.p.Pid())
		return err != nil || byte(st.State) == state
	})
}

// holds says whether the kernel has a question of a process.
func holds(t *testing.T, pid int) bool {
	t.Helper()
	found := false
	entries(t, "held", func(key []byte) { found = found || int(binary.NativeEndian.Uint32(key)) == pid })
	return found
}

// says is a command that says something, which nobody lets begin unasked.
func says(text string) []string { return []string{"python3", "-c", "print('" + text + "')"} }

// about says whether a question is about it.
func about(text string) func(gate.Question) bool {
	return func(q gate.Question) bool { return strings.Contains(strings.Join(q.Process.Argv, " "), text) }
}

// notBegun: a command that is held before it begins, since all are to be judged, does not begin when the daemon dies, wherever it is.
func (f *fixture) notBegun(t *testing.T) {
	shared := f.session
	defer func() { f.session = shared }()
	f.session = f.sensor.Guard(t, "not-begun", "--taint", "secret")
	f.loaded(t, func() { write(t, whole(policy+"review: exec\n")) })
	defer f.loaded(t, func() { write(t, whole(policy)) })
	for i, place := range []string{"stopped", "mkdir:" + seat, "write:cgroup.freeze:1", "writing:cgroup.procs:", "write:cgroup.procs:", "map:held:update", ""} {
		for _, both := range []bool{false, true} {
			name := fmt.Sprintf("begun-%d-%v", i, both)
			if place == "stopped" {
				f.sensor.Signal(t, syscall.SIGSTOP)
			}
			var at halted
			if place != "stopped" {
				at = f.halt(t, place)
			}
			h := held{p: f.session.Start(t, says(name)...)}
			if place == "stopped" {
				h.stands(t, 'T')
			} else {
				at.reached(t)
			}
			if place == "" {
				if q := f.sensor.Asked(t, about(name)); !q.Held {
					t.Errorf("not held: %+v", q)
				}
			}
			began := time.Now()
			if both {
				f.sensor.KillBoth(t)
				began = time.Now()
				f.sensor.Restart(t)
				if q, _, ended := f.askedUnlessEnded(t, h, about(name)); !ended {
					f.sensor.Deny(t, q.ID)
				}
			} else {
				f.sensor.Kill(t)
			}
			r, ended := h.p.WaitFor(rig.Late)
			if took := r.At.Sub(began); !ended || took > soon && !both || r.Exit != 128+9 || r.Stdout != "" {
				t.Errorf("%s, both %v: after %v ended %v: %s", place, both, took, ended, r)
			}
			if !both {
				f.sensor.Restart(t)
			}
			f.nothingLeft(t)
		}
	}
}

// askedUnlessEnded waits until a command has ended, or the next daemon asks of it, which may be ready before its watcher finds the old
// heartbeat stale.
func (f *fixture) askedUnlessEnded(t *testing.T, h held, about func(gate.Question) bool) (q gate.Question, r rig.Result, ended bool) {
	t.Helper()
	rig.Eventually(t, "it has ended, or is asked again", func() bool {
		if r, ended = h.p.WaitFor(0); ended {
			return true
		}
		for _, q = range f.sensor.Pending(t) {
			if about(q) && q.Held {
				t.Log("held by the next daemon")
				return true
			}
		}
		return false
	})
	return q, r, ended
}

// notMoved: one that has no cgroup to be frozen in, since no more may be made, stands still all the same, and begins when it may.
func (f *fixture) notMoved(t *testing.T) {
	s := f.sensor.Guard(t, "not-moved", "--taint", "secret")
	rig.Must(t, "echo 0 >"+s.Cgroup+"/cgroup.max.descendants")
	f.loaded(t, func() { write(t, whole(policy+"review: exec\n")) })
	defer f.loaded(t, func() { write(t, whole(policy)) })
	asked := func(name string) (h held) {
		h.p = s.Start(t, says(name)...)
		h.q = f.sensor.Asked(t, about(name))
		h.stands(t, 'T')
		return h
	}
	h := asked("approved")
	f.sensor.Approve(t, h.q.ID)
	if r := h.p.Wait(t); r.Exit != 0 || r.Stdout == "" {
		t.Errorf("approved: %s", r)
	}
	h = asked("denied")
	f.sensor.Deny(t, h.q.ID)
	if r := h.p.Wait(t); r.Exit != 128+9 || r.Stdout != "" {
		t.Errorf("denied: %s", r)
	}
	h = asked("killed")
	f.sensor.Kill(t)
	if r := h.p.Wait(t); r.Exit != 128+9 || r.Stdout != "" {
		t.Errorf("the daemon was killed: %s", r)
	}
	f.sensor.Restart(t)
}

// killedFull: a daemon is killed while its disk is full, then both, and one cannot even start: what is held goes on all the same.
func (f *fixture) killedFull(t *testing.T) {
	first := f.hold(t)
	f.fill(t)
	began := time.Now()
	f.sensor.Kill(t)
	first.fails(t, began, "when the daemon was killed over a full disk")
	f.disk.Free(t)
	rig.TidyLog(t)
	f.sensor.Restart(t)
	f.sensor.Deny(t, first.to.asked(t).ID)
	second := f.hold(t)
	f.fill(t)
	f.sensor.KillBoth(t)
	if _, ended := second.p.WaitFor(time.Second); ended {
		t.Error("nobody could let it go on, and it ended")
	}
	began = time.Now()
	cmd := exec.Command("weir", "run", "--policy", file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	second.fails(t, began, "when the sensor was started over a full disk")
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = cmd.Wait()
	f.disk.Free(t)
	rig.TidyLog(t)
	f.sensor.Restart(t)
	f.sensor.Deny(t, second.to.asked(t).ID)
	f.nothingLeft(t)
	f.works(t)
}

// killedStuck: a daemon is killed while nobody reads what it tells.
func (f *fixture) killedStuck(t *testing.T) {
	f.sensor.Stop(t)
	write(t, "version: 1\ncop:\n  reviewer: none\n"+policy) // no events.file: they go to standard output
	read, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	f.sensor.Stdout = output
	f.sensor.Restart(t)
	output.Close()
	h := f.hold(t)
	for range 2 {
		f.connect(t, 250, f.world.Port()) // more than a pipe holds
	}
	to := f.target(t)
	if r := f.session.Run(t, to.Egress("tcp")...); r.Exit != 3 {
		t.Errorf("a question that could not be written: %s", r)
	}
	began := time.Now()
	f.sensor.Kill(t)
	h.fails(t, began, "when the daemon was killed while its log was stuck")
	write(t, whole(policy))
	f.sensor.Stdout = nil
	f.sensor.Restart(t)
	f.sensor.Deny(t, h.to.asked(t).ID)
	f.nothingLeft(t)
}
