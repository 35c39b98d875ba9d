package taint

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"weir/internal/event"
	"weir/internal/linux"
)

// because notes why bits are set.
func (r *record) because(bits Bits, c event.Cause) {
	all := slices.Clone(r.Causes)
	for _, c.Bit = range bits.Names() {
		all = append(all, c)
	}
	r.Causes = firstAndNewest(all)
}

// cause is what a change says of itself.
func (c Change) cause(at time.Time) event.Cause {
	return event.Cause{At: at, Source: c.Source, By: c.By, Why: c.Why, Argv: c.Argv, PID: c.PID, Tool: c.Tool, Above: c.Above, From: c.From}
}

// firstAndNewest keeps two causes of each bit at most, in the order of their times.
func firstAndNewest(all []event.Cause) []event.Cause {
	slices.SortStableFunc(all, func(a, b event.Cause) int { return cmp.Or(strings.Compare(a.Bit, b.Bit), a.At.Compare(b.At)) })
	var kept []event.Cause
	for _, c := range all {
		if n := len(kept); n > 1 && kept[n-2].Bit == c.Bit {
			kept[n-1] = c
		} else {
			kept = append(kept, c)
		}
	}
	return kept
}

// Causes are why a container has its taint, with what its ancestors add: of each bit what set it first, and what set it last (F11). What an
// earlier sensor set has none.
func (s *State) Causes(id string) []event.Cause {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.containers[id]
	if r == nil {
		return nil
	}
	var all []event.Cause
	for _, o := range s.containers {
		if o == r || o.CgroupID != 0 && linux.PathWithin(r.Cgroup, o.Cgroup) {
			all = append(all, o.Causes...)
		}
	}
	return firstAndNewest(all)
}
