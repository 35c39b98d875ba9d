package witness

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/netegress"
	"weir/internal/taint"
)

// books have one container, and seen has one execution.
type books struct{ taint.Status }

func (b books) ByCgroup(id uint64) (taint.Status, bool) { return b.Status, id == b.CgroupID }

type seen struct{ event.Process }

func (s seen) Drain() {}

func (s seen) Find(pid int, start uint64) (event.Process, bool) {
	if pid != s.PID || start != s.Start {
		return event.Process{}, false
	}
	return s.Process, true
}

func TestContainer(t *testing.T) {
	w := &Witness{Books: books{taint.Status{Container: taint.Container{ID: "g-one", Name: "one", Cgroup: "/weir/g-one", CgroupID: 7}, Taint: taint.Secret}}}
	want := event.Container{ID: "g-one", Name: "one", Cgroup: "/weir/g-one", CgroupID: 7, Taint: (taint.Secret | taint.Corruption).Names()}
	if diff := cmp.Diff(want, w.Container(7, taint.Corruption)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// A record of another image than the one that was seen is about something older.
func TestProcessIsWhatItRunsNow(t *testing.T) {
	self := os.Getpid()
	w := &Witness{
		Ran: seen{event.Process{
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

func TestShort(t *testing.T) {
	long := strings.Repeat("x", 5<<10)
	for _, c := range []struct {
		argv []string
		last int // bytes of the last argument that is told
		n    int
	}{{[]string{"a", "b"}, 1, 2}, {[]string{"a", long, "b"}, 4<<10 - 3 + len("…"), 2}, {[]string{}, 0, 0}} {
		got := Short(c.argv)
		if len(got) != c.n || c.n > 0 && len(got[c.n-1]) != c.last {
			t.Errorf("%d arguments, the last of %d bytes", len(got), len(got[len(got)-1]))
		}
	}
}
