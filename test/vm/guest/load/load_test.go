//go:build vmguest

// Package load gives the sensor much to do, and counts what is left of it when all is over.
package load

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
	"weir/internal/gate"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	root   = "/sys/fs/cgroup"
	parent = "/load"
)

// maps are those that are empty when nothing is under way.
var maps = []string{"held", "grants", "grant_dests", "claims", "socks"}

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
	sensor := rig.StartSensor(t, "guard:\n  parents: ["+parent+"]\napproval_timeout: 900\napproval_ttl: 5\n")
	l := &load{world: world, sensor: sensor}
	l.port = world.Port()
	world.World.Listen(t, "tcp", fmt.Sprintf("[::]:%d", l.port))
	for _, part := range []struct {
		name string
		do   func(t *testing.T, many int)
		many int
	}{
		{"cgroups", l.cgroups, much.cgroups},
		{"grants", l.grants, much.grants},
		{"held", l.holds, much.holds},
	} {
		part.do(t, 2) // whatever is made once and kept
		before := sensor.Settle(t, nil, maps...)
		if len(before.Entries) != 0 {
			t.Fatalf("%s: there are entries at the start: %v", part.name, before.Entries)
		}
		t.Run(part.name, func(t *testing.T) {
			began := time.Now()
			part.do(t, part.many)
			took := time.Since(began)
			after := sensor.Settle(t, &before, maps...)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("after %d: before - after +\n%s", part.many, diff)
			}
			t.Logf("%d in %v; the daemon has %s", part.many, took.Round(time.Second), l.memory(t))
		})
	}
}

type load struct {
	world  *rig.Outside
	sensor *rig.Sensor
	port   int
	made   int // containers of batches
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
	rig.Eventually(t, "all containers are known", func() bool { return len(l.sensor.Containers(t)) >= many }) // one that nobody tainted is told just after
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
			if _, err := client().Answer(context.Background(), q.ID, gate.Reply{Allow: allow, By: "test"}); err != nil {
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

const (
	together = 8
	// share is how many questions a container asks: fewer than the 64 that it may ask in a row, after which it is refused, not held.
	share = 56
)

// round runs commands in containers, all containers at once and the commands of each one after the other, and answers what they ask.
// It returns how many were held, and what the commands ended with.
func (l *load) round(t *testing.T, containers [][][]string, allow bool) (held int, results []rig.Result) {
	t.Helper()
	all := make([][]rig.Result, len(containers))
	var sessions []*rig.Session
	var running sync.WaitGroup
	for i, commands := range containers {
		l.made++
		name := fmt.Sprintf("r%d", l.made)
		dir := root + parent + "/" + name
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		session := rig.BareIn(t, name, dir)
		l.sensor.Taint(t, parent+"/"+name, "secret")
		sessions = append(sessions, session)
		running.Go(func() {
			for _, argv := range commands {
				p := session.Start(t, argv...)
				p.Close(t)
				r, ended := p.WaitFor(10 * time.Minute)
				if !ended {
					r.Error = "it does not end"
				}
				all[i] = append(all[i], r)
			}
		})
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	held = l.answer(t, done, allow)
	for _, s := range sessions {
		s.Close()
		rig.RemoveCgroup(t, s.Cgroup)
	}
	return held, slices.Concat(all...)
}

// grants lets commands out, each with a grant of its own.
func (l *load) grants(t *testing.T, many int) {
	held, failed := 0, 0
	for next := 0; next < many; {
		var containers [][][]string
		for len(containers) < together && next < many {
			var commands [][]string
			for ; len(commands) < share && next < many; next++ {
				// the limit makes it another command than the others
				commands = append(commands, []string{"busybox", "nc", "-w", fmt.Sprint(100 + next), rig.World4, fmt.Sprint(l.port)})
			}
			containers = append(containers, commands)
		}
		now, results := l.round(t, containers, true)
		held += now
		for _, r := range results {
			if r.Exit != 0 || r.Error != "" {
				failed++
				t.Logf("granted: %s", r)
			}
		}
	}
	if failed > many-held {
		t.Errorf("%d of %d that were held and approved were not let out", failed-(many-held), held)
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
	const first = 20000
	mark := l.world.Mark(t)
	next := first
	for held := 0; held < many; {
		var containers [][][]string
		for rest := many - held; rest > 0 && len(containers) < together; rest -= share {
			n := min(rest, share)
			containers = append(containers, [][]string{{"python3", "-c", connects, rig.World4, fmt.Sprint(next), fmt.Sprint(n)}})
			next += n
		}
		now, results := l.round(t, containers, false)
		held += now
		for _, r := range results {
			if r.Exit != 0 || r.Error != "" || r.Stdout != "" {
				t.Errorf("denied: %s", r)
			}
		}
		if asked := next - first; asked > 100 && held < asked*9/10 {
			t.Fatalf("only %d of %d were held", held, asked)
		}
	}
	if n := l.world.Packets(t, mark, first, next); n != 0 {
		t.Errorf("%d packets of denied commands arrived", n)
	}
	t.Logf("%d of %d were held", many, next-first)
}

func client() *control.Client { return control.NewClient("/run/weir") }
