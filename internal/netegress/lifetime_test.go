package netegress

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
