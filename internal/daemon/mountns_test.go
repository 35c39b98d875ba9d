package daemon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"weir/internal/taint"
)

// fake has lists, and knows no namespace.
type fake struct{}

func (fake) Listed() bool                                  { return true }
func (fake) Knows(uint64) bool                             { return false }
func (fake) Refresh(map[uint64]int, map[uint64]bool) error { return nil }
func (fake) Untold() error                                 { return nil }

// ailing fails each time, and has something else to tell the third time.
type ailing struct {
	fake
	n int
}

func (a *ailing) Refresh(map[uint64]int, map[uint64]bool) error {
	a.n++
	return errors.New("a file system does not answer")
}

func (a *ailing) Untold() error {
	if a.n != 3 {
		return nil
	}
	return errors.New("too many")
}

// What is told once is told also while all else fails (G2).
func TestToldG2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		s := newMountSpaces(&ailing{}, func(func(taint.Container)) {}, func(what string, err error) { told = append(told, what+": "+err.Error()) })
		ctx, cancel := context.WithTimeout(t.Context(), 5*lookEvery+lookEvery/2)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		want := []string{"look for secret files: a file system does not answer", "look for secret files: too many"}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("- want + got\n%s", diff)
		}
	})
}

// Of many containers some are looked at in turn, and besides those that are new or have executed something.
func TestTurns(t *testing.T) {
	var list []taint.Container
	add := func(n int) {
		for i := len(list) + 1; n > 0; i, n = i+1, n-1 {
			list = append(list, taint.Container{ID: fmt.Sprintf("c%02d", i), Cgroup: strconv.Itoa(i), CgroupID: uint64(i)})
		}
	}
	add(20)
	s := newMountSpaces(fake{}, func(f func(taint.Container)) {
		for _, c := range list {
			f(c)
		}
	}, nil)
	s.within = func(path string) map[uint64]int {
		n, err := strconv.Atoi(path)
		if err != nil {
			t.Fatal(err)
		}
		return map[uint64]int{uint64(n): 1000 + n}
	}
	some := func(ids ...int) map[uint64]bool {
		all := map[uint64]bool{}
		for _, id := range ids {
			all[uint64(id)] = true
		}
		return all
	}
	span := func(from, to int) (ids []int) {
		for ; from <= to; from++ {
			ids = append(ids, from)
		}
		return ids
	}
	for _, step := range []struct {
		name string
		do   func()
		want map[uint64]bool
	}{
		{"all are new", func() {}, some(span(1, 20)...)},
		{"the second turn", func() {}, some(span(5, 8)...)},
		{"one has executed something", func() { s.Saw(2, s.own) }, some(append(span(9, 12), 2)...)},
		{"another has, out of turn", func() { s.Saw(20, s.own) }, some(append(span(13, 16), 20)...)},
		{"one is new", func() { add(1) }, some(append(span(17, 20), 21)...)},
		{"most are gone", func() { list = list[:3] }, some(1, 2, 3)},
	} {
		step.do()
		if diff := cmp.Diff(step.want, s.visit()); diff != "" {
			t.Errorf("%s: - want + got\n%s", step.name, diff)
		}
		if got := len(s.all()); got != len(list) {
			t.Errorf("%s: %d namespaces are known of %d", step.name, got, len(list))
		}
	}
}
