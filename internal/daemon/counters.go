package daemon

import (
	"maps"
	"sync"

	"weir/internal/event"
)

// tally counts by name. Its methods may be called at the same time.
type tally struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]uint64{}
	}
	t.counts[name]++
}

// Counts are those of all names so far.
func (t *tally) Counts() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// invariants are the rules that always hold, and that the daemon's books are held against: a broken one is a fault of Weir's, and allows nothing.
var invariants = []string{"bytes", "taint", "verdict"}

// breaks counts a broken one, and tells of it.
func (d *daemon) breaks(invariant, what string) {
	d.broken.add(invariant)
	d.write(event.Event{Kind: event.Error, Message: "a rule that always holds was broken (" + invariant + "), and nothing was allowed by it: " + what})
}

// brokenCounts are those of all.
func (d *daemon) brokenCounts() map[string]uint64 {
	counts := map[string]uint64{}
	for _, name := range invariants {
		counts[name] = 0
	}
	maps.Copy(counts, d.broken.Counts())
	return counts
}

// eventCounters counts the events that were handed to the log.
type eventCounters struct{ kinds, taints, grants tally }

func (t *eventCounters) add(e event.Event) {
	t.kinds.add(string(e.Kind))
	if e.Change != nil && len(e.Change.Set) > 0 {
		t.taints.add(e.Change.Source)
	}
	if e.Kind == event.Grant && e.Grant != nil {
		t.grants.add(e.Grant.State)
	}
}

// Counts are events by kind, taints that were set by source, and grants by state.
func (t *eventCounters) Counts() (kinds, taints, grants map[string]uint64) {
	kinds = map[string]uint64{}
	for _, k := range event.Kinds() {
		kinds[string(k)] = 0
	}
	maps.Copy(kinds, t.kinds.Counts())
	return kinds, t.taints.Counts(), t.grants.Counts()
}
