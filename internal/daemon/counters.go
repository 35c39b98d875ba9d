package daemon

import (
	"maps"
	"sync"

	"weir/internal/event"
)

// eventCounters counts the events that were handed to the log.
type eventCounters struct {
	mu     sync.Mutex
	kinds  map[string]uint64
	taints map[string]uint64 // set, by source
	grants map[string]uint64 // by state
}

func newEventCounters() *eventCounters {
	t := &eventCounters{kinds: map[string]uint64{}, taints: map[string]uint64{}, grants: map[string]uint64{}}
	for _, k := range event.Kinds() {
		t.kinds[string(k)] = 0
	}
	return t
}

func (t *eventCounters) add(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kinds[string(e.Kind)]++
	if e.Change != nil && len(e.Change.Set) > 0 {
		t.taints[e.Change.Source]++
	}
	if e.Kind == event.Grant && e.Grant != nil {
		t.grants[e.Grant.State]++
	}
}

// Counts are events by kind, taints that were set by source, and grants by state.
func (t *eventCounters) Counts() (kinds, taints, grants map[string]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.kinds), maps.Clone(t.taints), maps.Clone(t.grants)
}
