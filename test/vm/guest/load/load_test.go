//go:build vmguest

// Package load gives the sensor much to do, and counts what is left of it when all is over.
package load

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
	"weir/internal/gate/question"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	root   = "/sys/fs/cgroup"
	parent = "/load"
	pins   = "/sys/fs/bpf/weir"
)

// amount is how much is done.
type amount struct{ cgroups, grants, holds int }

// amounts are those of WEIR_LOAD.
func amounts(t *testing.T) (much amount) {
	t.Helper()
	text := os.Getenv("WEIR_LOAD")
	if _, err := fmt.Sscanf(text, "%d,%d,%d", &much.cgroups, &much.grants, &much.holds); err != nil {
		t.Fatalf("WEIR_LOAD=%s: %v: name the numbers of cgroups, grants and holds", text, err)
	}
	return much
}

// TestNothingIsLeft: guarded cgroups, grants and held commands come and go, and leave no descriptor, map, program, link, cgroup or
// goroutine behind, and nothing in the maps.
func TestNothingIsLeft(t *testing.T) {
	much := amounts(t)
	world := rig.NewOutside(t)
	rig.Must(t, "mkdir -p "+root+parent)
	t.Cleanup(func() { rig.RemoveCgroup(t, root+parent) })
	sensor := rig.StartSensor(t, "guard:\n  parents: ["+parent+"]\nask_seconds: 900\nclaim_seconds: 5\n")
	session := sensor.Guard(t, "load", "--taint", "secret")
	l := &load{world: world, sensor: sensor, session: session}
	l.port = world.Port()
	world.World.Listen(t, "tcp", fmt.Sprintf("[::]:%d", l.port))
	for _, part := range []struct {
		name string
		do   func(t *testing.T, many int)
		many int
	}{
		{"cgroups", l.cgroups, much.cgroups},
		{"grants", l.grants, much.grants},
		{"holds", l.holds, much.holds},
	} {
		part.do(t, 2) // whatever is made once and kept
		before := l.settle(t, count{})
		t.Run(part.name, func(t *testing.T) {
			began := time.Now()
			part.do(t, part.many)
			took := time.Since(began)
			after := l.settle(t, before)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("after %d: before - after +\n%s", part.many, diff)
			}
			t.Logf("%d in %v; the daemon has %s", part.many, took.Round(time.Second), l.memory(t))
		})
	}
}

type load struct {
	world   *rig.Outside
	sensor  *rig.Sensor
	session *rig.Session
	port    int
}

// count is what must not grow.
type count struct {
	FDs, Goroutines       int
	Maps, Programs, Links int
	Cgroups               int
	Entries               map[string]int
}

func (l *load) count(t *testing.T) count {
	t.Helper()
	c := count{Entries: map[string]int{}}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", l.sensor.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	c.FDs = len(fds)
	st, err := client().Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.Goroutines = st.Goroutines
	for id, err := ebpf.MapGetNextID(0); err == nil; id, err = ebpf.MapGetNextID(id) {
		c.Maps++
	}
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		c.Programs++
	}
	it := new(link.Iterator)
	for it.Next() {
		c.Links++
	}
	it.Close()
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			c.Cgroups++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"holds", "grants", "grant_dests", "claims", "socks"} {
		m, err := ebpf.LoadPinnedMap(filepath.Join(pins, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		entries := m.Iterate()
		key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
		for entries.Next(&key, &value) {
			c.Entries[name]++
		}
		m.Close()
	}
	return c
}

// settle counts until nothing of what was done is on its way any more, and what is left is want, if that is not empty.
func (l *load) settle(t *testing.T, want count) count {
	t.Helper()
	var last count
	same := 0
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		now := l.count(t)
		if same++; !cmp.Equal(now, last) {
			same = 0
		}
		last = now
		if want.FDs != 0 && cmp.Equal(now, want) || want.FDs == 0 && same >= 6 && len(now.Entries) == 0 {
			break
		}
	}
	return last
}

// memory is what the daemon has in memory.
func (l *load) memory(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.sensor.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.Join(strings.Fields(rest), " ")
		}
	}
	return "?"
}

// cgroups makes containers with a process each, taints every second one, and removes all.
func (l *load) cgroups(t *testing.T, many int) {
	var procs []*exec.Cmd
	for i := range many {
		dir := fmt.Sprintf("%s%s/c%d", root, parent, i)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		d, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("busybox", "sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(d.Fd())}
		err = cmd.Start()
		d.Close()
		if err != nil {
			t.Fatal(err)
		}
		procs = append(procs, cmd)
		if i%2 == 0 {
			l.sensor.Taint(t, fmt.Sprintf("%s/c%d", parent, i), "corruption")
		}
	}
	if n := len(l.sensor.Containers(t)); n < many {
		t.Errorf("%d containers of %d are known", n, many)
	}
	for i, p := range procs {
		if err := p.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = p.Wait() // killed
		rig.RemoveCgroup(t, fmt.Sprintf("%s%s/c%d", root, parent, i))
	}
}

// answer answers what is asked until done is closed, and says how many of those who asked were held.
func (l *load) answer(t *testing.T, done <-chan struct{}, allow bool) (held int) {
	t.Helper()
	for {
		for _, q := range l.sensor.Pending(t) {
			if _, err := client().Answer(context.Background(), q.ID, question.Reply{Allow: allow, By: "test"}); err != nil {
				t.Fatal(err)
			}
			if q.Held { // a daemon that could not beat for 3 s holds nobody
				held++
			}
		}
		select {
		case <-done:
			return held
		case <-time.After(5 * time.Millisecond):
		}
	}
}

const together = 8

// grants lets commands out, each with a grant of its own.
func (l *load) grants(t *testing.T, many int) {
	var failed atomic.Int32
	slots := make(chan struct{}, together)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range many {
			slots <- struct{}{}
			// the limit makes it another command than the others
			p := l.session.Start(t, "busybox", "nc", "-w", fmt.Sprint(100+i), rig.World4, fmt.Sprint(l.port))
			p.Close(t)
			go func() {
				defer func() { <-slots }()
				if r := p.Wait(t); r.Exit != 0 {
					failed.Add(1)
					t.Logf("granted: %s", r)
				}
			}()
		}
		for range together {
			slots <- struct{}{}
		}
	}()
	held := l.answer(t, done, true)
	if n := int(failed.Load()); n > many-held {
		t.Errorf("%d of %d that were held and approved were not let out", n-(many-held), held)
	}
	if held < many*9/10 {
		t.Errorf("only %d of %d were held", held, many)
	}
}

const connects = `
import socket, sys
first, many = int(sys.argv[2]), int(sys.argv[3])
for i in range(many):
    s = socket.socket()
    try:
        s.connect((sys.argv[1], first + i))
        print("connected")
    except PermissionError:
        pass
    s.close()
`

// holds lets commands ask for one destination after another; each is denied. A command asks for few, so that what the kernel
// remembers of it goes with it.
func (l *load) holds(t *testing.T, many int) {
	const first, each = 20000, 20
	mark := l.world.Mark(t)
	next := first
	for held := 0; held < many; {
		var procs []*rig.Proc
		done := make(chan struct{})
		for range min(together, (many-held+each-1)/each) {
			procs = append(procs, l.session.Start(t, "python3", "-c", connects, rig.World4, fmt.Sprint(next), fmt.Sprint(each)))
			next += each
		}
		go func() {
			defer close(done)
			for _, p := range procs {
				if r, ended := p.WaitFor(5 * time.Minute); !ended || r.Exit != 0 || r.Stdout != "" {
					t.Errorf("denied: ended %v: %s", ended, r)
				}
			}
		}()
		held += l.answer(t, done, false)
		if next > 65000 {
			t.Fatalf("%d of %d were held", held, next-first)
		}
	}
	if n := l.world.Packets(t, mark, first, next); n != 0 {
		t.Errorf("%d packets of denied commands arrived", n)
	}
}

func client() *control.Client { return control.NewClient("/run/weir") }
