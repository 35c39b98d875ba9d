package netegress

import (
	"errors"
	"slices"
	"testing"

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
