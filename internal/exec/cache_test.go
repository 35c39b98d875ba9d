package exec

import (
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"weir/internal/event"
	"weir/internal/linux"
)

func TestCacheFind(t *testing.T) {
	c := newCache()
	c.put(event.Process{PID: 5, Start: 20_000_003, Comm: "old"})
	c.put(event.Process{PID: 5, Start: 20_000_003, Comm: "new"})
	for start, want := range map[uint64]string{20_000_003: "new", 20_000_000: "new", 20_000_004: "", 30_000_000: "", 0: ""} {
		if p, _, ok := c.get(5, start); p.Comm != want || ok != (want != "") {
			t.Errorf("start %d: %q, %v; want %q", start, p.Comm, ok, want)
		}
	}
	c.put(event.Process{PID: 5, Start: 90_000_000, Comm: "reused"})
	if _, _, ok := c.get(5, 20_000_003); ok {
		t.Error("a process whose id was reused is still there")
	}
	if _, _, ok := c.get(6, 20_000_003); ok {
		t.Error("found a process that was never there")
	}
}

func TestCacheForgets(t *testing.T) {
	c := newCache()
	c.commands = 3
	c.alive = func(pid int, _ uint64) bool { return pid == 1 }
	for pid := range 6 {
		c.put(event.Process{PID: pid + 1, Start: 1})
	}
	var kept []int
	for pid := range 10 {
		if _, _, ok := c.get(pid, 1); ok {
			kept = append(kept, pid)
		}
	}
	if diff := cmp.Diff([]int{1, 5, 6}, kept); diff != "" {
		t.Errorf("a live process and the newest are kept: -want +got\n%s", diff)
	}
}

func TestCacheBounds(t *testing.T) {
	c := newCache()
	c.bytes = 100_000
	c.alive = func(int, uint64) bool { return true }
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		c.put(event.Process{PID: rnd.IntN(300), Argv: []string{strings.Repeat("x", rnd.IntN(16384))}})
		if c.used > c.bytes || len(c.byPID) != c.ages.Len() {
			t.Fatalf("%d bytes, %d by id, %d by age", c.used, len(c.byPID), c.ages.Len())
		}
	}
	for c.ages.Len() > 0 {
		c.drop(c.ages.Front())
	}
	if c.used != 0 {
		t.Errorf("%d bytes used by nothing", c.used)
	}
}

func TestServe(t *testing.T) {
	p := &Probe{running: make(chan struct{})}
	in := 24
	available := func() int { return in }
	first, second := &waiter{served: make(chan struct{})}, &waiter{served: make(chan struct{})}
	p.waiters = append(p.waiters, first)
	if !p.serve(100, available) {
		t.Error("nobody waits, though 24 bytes are left")
	}
	in = 64
	p.waiters = append(p.waiters, second)
	if !p.serve(116, available) || closed(first) {
		t.Error("the first was let go early")
	}
	if !p.serve(124, available) || !closed(first) || closed(second) {
		t.Error("at its mark only the first is to go")
	}
	if p.serve(180, available) || !closed(second) {
		t.Error("the second was not let go")
	}
	in = 0
	third := &waiter{served: make(chan struct{})}
	p.waiters = append(p.waiters, third)
	if p.serve(180, available) || !closed(third) {
		t.Error("an empty ring keeps a waiter")
	}
}

func TestDrainIsBounded(t *testing.T) {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	p := &Probe{logger: logger, cache: newCache(), lost: func() (uint64, error) { return 0, nil }}
	p.Drain() // Run never ran
	p.running = make(chan struct{})
	begin := time.Now()
	p.Drain()
	if took := time.Since(begin); took < drainMost || len(p.waiters) != 0 {
		t.Errorf("after %v, %d waiters left", took, len(p.waiters))
	}
	close(p.running)
	p.Drain()
	if len(p.waiters) != 0 {
		t.Errorf("%d waiters left", len(p.waiters))
	}
}

// What a process executed is sure only as long as nothing newer can have been lost.
func TestLostExecutionB150(t *testing.T) {
	lost, failed := uint64(3), error(nil) // an earlier sensor's
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	p := &Probe{logger: logger, cache: newCache(), names: newNames(), running: make(chan struct{}), lost: func() (uint64, error) { return lost, failed }}
	stop := make(chan struct{})
	served := make(chan struct{})
	go func() { // as the reader, of an empty ring
		defer close(served)
		for {
			select {
			case <-stop:
				return
			default:
				p.serve(0, func() int { return 0 })
				time.Sleep(time.Millisecond)
			}
		}
	}()
	make5 := func() { p.cache.put(event.Process{PID: 5, Start: 1}) }
	sure := func(what string, want bool) {
		t.Helper()
		if _, sure, ok := p.Find(5, 1); sure != want || !ok {
			t.Errorf("%s: sure %t, known %t", what, sure, ok)
		}
	}
	make5()
	p.Drain()
	sure("something was lost, nobody knows when", false)
	make5()
	p.Drain()
	p.Drain()
	sure("nothing was lost since", true)
	lost++
	p.Drain()
	sure("one was lost", false)
	make5()
	sure("it executed again", true)
	failed = io.ErrClosedPipe
	p.Drain()
	sure("nobody can tell", false)
	failed = nil
	make5()
	p.take([]byte("x"), nil)
	sure("one could not be read", false)
	make5()
	close(stop)
	<-served
	p.Drain()
	sure("those on their way are not handled in time", false)
	make5()
	close(p.running)
	p.Drain()
	sure("nobody reads", false)
}

func TestRingSize(t *testing.T) {
	for length, want := range map[int]uint64{0: 8, 1: 16, 8: 16, 9: 24} {
		if got := ringSize(length); got != want {
			t.Errorf("a record of %d takes %d, want %d", length, got, want)
		}
	}
}

func TestFromProc(t *testing.T) {
	self, err := linux.ReadStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p, err := FromProc(self.PID, self.Start+3)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Truncated || !p.Claimed || p.ArgvHash != 0 {
		t.Error("argv from /proc counts as whole")
	}
	if diff := cmp.Diff(os.Args, p.Argv); diff != "" {
		t.Error(diff)
	}
	if p.PID != self.PID || p.Start != self.Start+3 || p.Exe == nil || p.Exe.Inode == 0 || p.NetNS == 0 || p.PidNS == 0 {
		t.Errorf("%+v", p)
	}
	if len(p.Ancestry) == 0 || p.Ancestry[0].PID != os.Getppid() {
		t.Errorf("ancestry %+v, parent %d", p.Ancestry, os.Getppid())
	}
	if _, err := FromProc(self.PID, self.Start+20_000_000); err == nil {
		t.Error("described a process with another start")
	}
}

func closed(w *waiter) bool {
	select {
	case <-w.served:
		return true
	default:
		return false
	}
}
