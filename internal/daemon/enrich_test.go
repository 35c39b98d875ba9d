package daemon

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/netegress"
	"weir/internal/taint"
)

// books have one container, and seen has one execution.
type books struct{ taint.Status }

func (b books) Recorded(id uint64) (taint.Container, taint.Bits, bool) {
	return b.Container, b.Own, id == b.CgroupID
}

func (b books) ByCgroup(id uint64) (taint.Status, bool) { return b.Status, id == b.CgroupID }

type seen struct {
	event.Process
	doubtful bool // a later one may have been lost
}

func (s seen) Drain() {}

func (s seen) Find(pid int, start uint64) (p event.Process, sure, ok bool) {
	if pid != s.PID || start != s.Start && !linux.SameStart(start, s.Start) {
		return event.Process{}, false, false
	}
	return s.Process, !s.doubtful, true
}

func TestContainer(t *testing.T) {
	w := &processCache{Books: books{taint.Status{Container: taint.Container{ID: "g-one", Name: "one", Cgroup: "/weir/g-one", CgroupID: 7}, Taint: taint.Secret}}}
	want := event.Container{ID: "g-one", Name: "one", Cgroup: "/weir/g-one", CgroupID: 7, Taint: (taint.Secret | taint.Corruption).Names()}
	if diff := cmp.Diff(want, w.Container(7, taint.Corruption)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// A record of another image than the one that was seen is about something older.
func TestProcessIsWhatItRunsNow(t *testing.T) {
	self := os.Getpid()
	w := &processCache{
		Ran: seen{Process: event.Process{
			PID: self, Start: 3, Argv: []string{"curl", "http://192.0.2.1/"}, ArgvHash: 5, Exe: &event.File{Device: unix.Mkdev(8, 1), Inode: 7},
		}},
		Parents: func() []string { return []string{"/weir"} },
	}
	asks := netegress.Process{PID: self, Start: 3, ExecPID: self, ExecStart: 3, UID: 9, Comm: "curl", ArgvHash: 5, Device: 8<<20 | 1, Inode: 7}
	got := w.Process(asks)
	if got.UID != 9 || got.Comm != "curl" || !cmp.Equal(got.Argv, []string{"curl", "http://192.0.2.1/"}) || len(got.Ancestry) == 0 {
		t.Errorf("got %+v", got)
	}
	for name, change := range map[string]func(*netegress.Process){
		"other arguments":                   func(p *netegress.Process) { p.ArgvHash = 6 },
		"another file, called alike":        func(p *netegress.Process) { p.Inode = 8 },
		"on another file system":            func(p *netegress.Process) { p.Device++ },
		"a file without a name (no claims)": func(p *netegress.Process) { p.Inode, p.ArgvHash = 8, 0 },
	} {
		other := asks
		change(&other)
		if got := w.Process(other); cmp.Equal(got.Argv, []string{"curl", "http://192.0.2.1/"}) || got.ArgvHash != other.ArgvHash {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// F02, F01: who can be let out besides the asker: in the container, below the agent, and not started from outside.
func TestF02Above(t *testing.T) {
	chain := func(pids ...int) (all []event.Ancestor) {
		for _, pid := range pids {
			all = append(all, event.Ancestor{PID: pid})
		}
		return all
	}
	inside := func(pid int) bool { return pid >= 100 } // the host's own are below
	for name, tt := range map[string]struct {
		asker, agent int
		above, want  []event.Ancestor
	}{
		"below the agent":                    {500, 200, chain(400, 300, 200, 150, 1), chain(400, 300)},
		"right below the agent":              {500, 200, chain(200, 1), nil},
		"the agent itself":                   {200, 200, chain(150, 140, 1), nil},
		"no agent known":                     {500, 0, chain(400, 300, 200, 1), chain(400, 300)},
		"started from outside":               {500, 0, chain(1), nil},
		"below one that outlives the agent":  {500, 200, chain(400, 300, 1), chain(400)},
		"more than were looked at":           {500, 0, chain(400, 300, 200), chain(400, 300)},
		"nothing is known":                   {500, 200, nil, nil},
		"through one that is in between out": {500, 200, chain(400, 50, 300, 200, 1), nil},
	} {
		if diff := cmp.Diff(tt.want, above(event.Process{PID: tt.asker, Ancestry: tt.above}, tt.agent, inside), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: want - got +\n%s", name, diff)
		}
	}
}

// F02: the parents are those that live, with starts that another daemon would tell as well.
func TestF02AboveOfLiveOnes(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	self, err := linux.ReadStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	exact := self.Start + 1 // as the kernel tells it
	w := &processCache{
		Books: books{taint.Status{Container: taint.Container{Cgroup: "/", CgroupID: 7}}}, Parents: func() []string { return []string{"/"} },
		Ran: seen{Process: event.Process{PID: self.PID, Start: exact, Argv: []string{"go", "test"}}},
	}
	p := event.Process{PID: cmd.Process.Pid, Ancestry: []event.Ancestor{{PID: self.PID, Start: exact, Comm: self.Comm}, {PID: self.PPID}}}
	want := []event.Member{{PID: self.PID, Start: self.Start, Comm: self.Comm, Argv: []string{"go", "test"}}}
	if diff := cmp.Diff(want, w.Above(7, p)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	p.Ancestry[0].Start += 1e9
	if got := w.Above(7, p); got != nil {
		t.Errorf("another with the same id: %+v", got)
	}
}

// F02: of each the whole command line is told, as it was executed; else as /proc has it now, which the process could have changed.
func TestF02Member(t *testing.T) {
	self := os.Getpid()
	st, err := linux.ReadStat(self)
	if err != nil {
		t.Fatal(err)
	}
	long := []string{"bash", "-c", strings.Repeat("x", 10<<10)}
	w := &processCache{Ran: seen{Process: event.Process{PID: 70, Start: 3, Argv: long, Exe: &event.File{Path: "/bin/bash", Inode: 7}}}}
	want := event.Member{PID: 70, Start: 3, Comm: "bash", Argv: long, Exe: "/bin/bash"}
	if diff := cmp.Diff(want, w.member(netegress.Process{PID: 70, Start: 3, Comm: "bash"})); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	// A shell that has only forked runs what its parent executed.
	want.PID, want.Start = 71, 4
	if diff := cmp.Diff(want, w.member(netegress.Process{PID: 71, Start: 4, Comm: "bash", ExecPID: 70, ExecStart: 3, Inode: 7})); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if m := w.member(netegress.Process{PID: self, Start: st.Start}); !m.Truncated || !cmp.Equal(m.Argv, os.Args) || m.Exe == "" || m.Comm != st.Comm {
		t.Errorf("%+v", m)
	}
	if m := w.member(netegress.Process{PID: self, Start: st.Start + 1e9, Comm: "x"}); !m.Truncated || m.Argv != nil || m.Comm != "x" {
		t.Errorf("another with the same id: %+v", m)
	}
}

// F03: a grant tells who it lets out.
func TestF03Grant(t *testing.T) {
	w := &processCache{Ran: seen{Process: event.Process{PID: 70, Start: 3, Argv: []string{"curl", strings.Repeat("x", 10<<10)}}}}
	info := w.Grant(netegress.Grant{ID: 9, Kind: "cgroup", State: "made", Root: netegress.Process{PID: 70, Start: 3, Comm: "curl"}})
	if p := info.Process; info.ID != 9 || p == nil || p.PID != 70 || p.Start != 3 || p.Argv[0] != "curl" || len(p.Argv[1]) > 5<<10 || !p.Truncated {
		t.Errorf("%+v", info.Process)
	}
	if info := w.Grant(netegress.Grant{ID: 9, Kind: "claim"}); info.Process != nil {
		t.Errorf("%+v", info.Process)
	}
}

// Who executed something that was lost is not told as what it ran before, wherever it stands in a chain.
func TestStaleExecutionB150(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	st, err := linux.ReadStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	stale := event.Process{PID: st.PID, Start: st.Start, Argv: []string{"make", "deps"}, ArgvHash: 5, Exe: &event.File{Path: "/usr/bin/make", Device: unix.Mkdev(8, 1), Inode: 7}}
	w := &processCache{
		Books: books{taint.Status{Container: taint.Container{Cgroup: "/", CgroupID: 7}}}, Parents: func() []string { return []string{"/"} }, Ran: seen{Process: stale},
	}
	shown := w.member(netegress.Process{PID: st.PID, Start: st.Start})
	if shown.Exe != "/usr/bin/make" || !w.Still(shown) {
		t.Errorf("while it is sure: %+v", shown)
	}
	w.Ran = seen{stale, true}
	if m := w.member(netegress.Process{PID: st.PID, Start: st.Start}); !cmp.Equal(m.Argv, cmd.Args) || !m.Claimed || m.Exe == "/usr/bin/make" {
		t.Errorf("a parent: %+v", m)
	}
	if w.Still(shown) {
		t.Error("it is still what was shown")
	}
	claims := shown // it writes what was shown into its memory, and lies at that path
	now := w.member(netegress.Process{PID: st.PID, Start: st.Start})
	claims.Exe, claims.Argv = now.Exe, now.Argv
	if w.Still(claims) {
		t.Error("its own account counts as what was shown")
	}
	if p := w.Cause(taint.Change{PID: st.PID, Start: st.Start}); p.Argv != nil || p.Exe != nil {
		t.Errorf("a cause: %+v", p)
	}
	asks := netegress.Process{PID: st.PID, Start: st.Start, ExecPID: st.PID, ExecStart: st.Start, ArgvHash: 5, Device: 8<<20 | 1, Inode: 7}
	if p := w.Process(asks); !cmp.Equal(p.Argv, stale.Argv) {
		t.Errorf("an asker of whom the kernel says the same: %+v", p)
	}
	asks.Inode = 0
	if p := w.Process(asks); !cmp.Equal(p.Argv, cmd.Args) || !p.Truncated {
		t.Errorf("an asker of whom the kernel does not: %+v", p)
	}
	if p := w.surely(st.PID, st.Start); p.Argv != nil || p.PID != 0 {
		t.Errorf("an ancestor, as a reviewer is shown it: %+v", p)
	}
}

func TestShort(t *testing.T) {
	long := strings.Repeat("x", 5<<10)
	for _, c := range []struct {
		argv []string
		last int // bytes of the last argument that is told
		n    int
	}{{[]string{"a", "b"}, 1, 2}, {[]string{"a", long, "b"}, 4<<10 - 3 + len("…"), 2}, {[]string{}, 0, 0}} {
		got := shortArgv(c.argv)
		if len(got) != c.n || c.n > 0 && len(got[c.n-1]) != c.last {
			t.Errorf("%d arguments, the last of %d bytes", len(got), len(got[len(got)-1]))
		}
	}
}

// F01: a parent that a person chose is let out only while it runs what was shown.
func TestStillRunsWhatWasShown(t *testing.T) {
	st, err := linux.ReadStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ran := event.Process{PID: st.PID, Start: st.Start, Argv: []string{"bash", strings.Repeat("x", cutFrom), "more"}, Exe: &event.File{Path: "/bin/bash"}}
	w := &processCache{Ran: seen{Process: ran}}
	for name, c := range map[string]struct {
		change func(*event.Member)
		want   bool
	}{
		"the same":            {func(*event.Member) {}, true},
		"a part was kept":     {func(m *event.Member) { m.Argv, m.Truncated = m.Argv[:2], true }, true},
		"a short part":        {func(m *event.Member) { m.Argv, m.Truncated = m.Argv[:1], true }, false},
		"other arguments":     {func(m *event.Member) { m.Argv = []string{"bash", "other.sh"} }, false},
		"fewer arguments":     {func(m *event.Member) { m.Argv = m.Argv[:1] }, false},
		"another program":     {func(m *event.Member) { m.Exe = "/bin/sh" }, false},
		"another process":     {func(m *event.Member) { m.Start++; m.Start += 1e9 }, false},
		"one that has ended":  {func(m *event.Member) { m.PID = 1 << 22 }, false},
		"nothing is known":    {func(m *event.Member) { m.Argv = nil }, false},
		"a part of something": {func(m *event.Member) { m.Argv, m.Truncated = []string{"sh"}, true }, false},
	} {
		shown := ran.Member()
		c.change(&shown)
		if got := w.Still(shown); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
