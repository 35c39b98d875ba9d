package netegress

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/taint"
)

// The cgroup of a grant that has ended is removed while nobody waits, and tried again until it is gone (B37).
func TestRemoveGrants(t *testing.T) {
	e := &Egress{grants: map[uint64]*live{}}
	for id, g := range map[uint64]Grant{
		1: {Kind: "cgroup", Cgroup: "/none/weir-grant-1"}, 2: {Kind: "cgroup", Cgroup: "/none/weir-grant-2"}, 3: {Kind: "cgroup"},
	} {
		g.ID = id
		e.grants[id] = &live{Grant: g, over: true}
	}
	both := []string{"/none/weir-grant-1", "/none/weir-grant-2"}
	for i, step := range []struct {
		busy string
		want []string
		left int
	}{
		{both[0], both, 1}, {both[0], both[:1], 1}, {"", both[:1], 0}, {"", nil, 0},
	} {
		empty, err := e.lapse()
		if err != nil {
			t.Fatal(err)
		}
		var tried []string
		err = e.remove(empty, func(path string) error {
			if !e.mu.TryLock() {
				t.Fatal("who revokes has to wait")
			}
			e.mu.Unlock()
			tried = append(tried, path)
			if path == step.busy {
				return unix.EBUSY
			}
			return nil
		})
		slices.Sort(tried)
		if !slices.Equal(tried, step.want) || errors.Is(err, unix.EBUSY) != (step.busy != "") || len(e.grants) != step.left {
			t.Errorf("step %d: tried %v, %v; %d are left", i, tried, err, len(e.grants))
		}
	}
}

// The sweep rests while there is nothing to end, and begins as soon as there is.
func TestSweepRests(t *testing.T) {
	e := &Egress{grants: map[uint64]*live{}, closing: map[uint64]closing{}, saw: saw{}, stirred: make(chan struct{}, 1)}
	looks := func(what string, want time.Duration, rests bool) {
		t.Helper()
		if every, stirred := e.rest(); every != want || (stirred != nil) != rests {
			t.Errorf("%s: looks after %v, rests %v; want %v, %v", what, every, stirred != nil, want, rests)
		}
	}
	looks("nothing", tidyEvery, true)
	e.keep(1, &live{})
	_, stirred := e.rest()
	if stirred != nil || len(e.stirred) != 1 {
		t.Error("a grant does not stir the sweep")
	}
	looks("a grant", sweepEvery, false)
	e.grants[1].over = true
	looks("one that is over", sweepOver, false)
	delete(e.grants, 1)
	e.closing[1] = closing{}
	looks("sockets to be closed", sweepEvery, false)
	clear(e.closing)
	looks("nothing again", tidyEvery, true)
}

// What is asked from before taint was cleared is not given for that taint: it may have come again since.
func TestClearedSince(t *testing.T) {
	e := &Egress{grants: map[uint64]*live{}, cleared: map[clearing]uint64{}}
	before := taint.Now()
	e.grants[1] = &live{Grant: Grant{ID: 1, Container: 7}, unused: []unusedGrant{{ask: Ask{Taint: taint.Secret | taint.Corruption}}}}
	e.grants[2] = &live{Grant: Grant{ID: 2, Container: 8}, bits: taint.Secret}
	if err := e.loseEach(7, taint.Secret); err != nil {
		t.Fatal(err)
	}
	after := taint.Now() + 1
	for _, c := range []struct {
		container, asked uint64
		want             taint.Bits
	}{{7, before, taint.Secret}, {7, 0, taint.Secret}, {7, after, 0}, {8, before, 0}} {
		if got := e.clearedSince(c.container, c.asked); got != c.want {
			t.Errorf("%+v: %v", c, got.Names())
		}
	}
	if e.grants[1].unused[0].ask.Taint != taint.Corruption || e.grants[2].bits != taint.Secret {
		t.Errorf("%+v, %+v", e.grants[1].unused, e.grants[2])
	}
}

// A grant that was claimed keeps what a program let its own packets taint with, before the daemon heard of the claim; it loses what was cleared.
func TestStale(t *testing.T) {
	g := &live{bits: taint.Secret}
	if got := g.stale(egressGrant{Taint: uint32(taint.Secret | taint.Corruption)}); got != 0 {
		t.Errorf("added by a program: %v", got.Names())
	}
	e := &Egress{grants: map[uint64]*live{1: g}, cleared: map[clearing]uint64{}}
	if err := e.loseEach(0, taint.Secret); err != nil {
		t.Fatal(err)
	}
	if got := g.stale(egressGrant{Taint: uint32(taint.Secret | taint.Corruption)}); got != taint.Secret || g.bits != 0 {
		t.Errorf("cleared: %v, %v", got.Names(), g.bits.Names())
	}
}

// A daemon that is killed when it has just cleared taint leaves grants with it: the next one takes it from them.
func TestLoseClearedAtStart(t *testing.T) {
	both := taint.Secret | taint.Corruption
	e := &Egress{grants: map[uint64]*live{
		1: {Grant: Grant{ID: 1, Container: 7}, bits: both}, 2: {Grant: Grant{ID: 2, Container: 8}, bits: both},
		3: {Grant: Grant{ID: 3}, bits: both}, 4: {Grant: Grant{ID: 4, Container: 7}, bits: both, over: true},
		5: {Grant: Grant{ID: 5, Container: 7}, bits: taint.Corruption},
	}}
	err := e.loseCleared(func(container uint64) (taint.Bits, bool) { return taint.Corruption, container != 8 })
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[uint64]taint.Bits{1: taint.Corruption, 2: both, 3: both, 4: both, 5: taint.Corruption} {
		if got := e.grants[id].bits; got != want {
			t.Errorf("grant %d: %v", id, got.Names())
		}
	}
	if e.grants[1].cleared != taint.Secret || e.grants[5].cleared != 0 {
		t.Errorf("%v, %v", e.grants[1].cleared.Names(), e.grants[5].cleared.Names())
	}
}
