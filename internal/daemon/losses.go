package daemon

import (
	"maps"

	"weir/internal/event"
)

// loss is a counter of what did not arrive, with where and what it was.
type loss struct {
	Counter, Stage, What string

	Kernel bool // it goes on counting when the daemon ends
}

// losses are all of them; the log itself tells what it could not write.
var losses = []loss{
	{"lost_exec", "ring", "exec", true},
	{"lost_question", "ring", "hold", true},
	{"lost_record", "ring", "connect", true},
	{"lost_move", "ring", "move", true},
	{"lost_secret", "ring", "taint", true},
	{"lost_unreadable", "ring", "exec", false},
	{"lost_record_queue", "queue", "connect", false},
	{"lost_notification", "sink", "notification", false},
}

// counterMemory outlives a restart.
type counterMemory interface {
	Put(key memoryKey, value any) error
	Get(key memoryKey, value any) error
}

// counters is how much of each loss has been told.
type counters struct {
	log    *eventLog
	memory counterMemory
	counts map[string]uint64
}

// recallCounters takes up what an earlier daemon has told.
func recallCounters(log *eventLog, m counterMemory) (*counters, error) {
	t := &counters{log: log, memory: m, counts: map[string]uint64{}}
	return t, m.Get(keyLosses, &t.counts)
}

// Tell writes an event for each stage that lost something since the last time, also
// if a daemon before this one told that.
func (t *counters) Tell(counts map[string]uint64) error {
	kernel := map[string]uint64{}
	for _, l := range losses {
		if counts[l.Counter] < t.counts[l.Counter] {
			t.counts[l.Counter] = 0 // the counters are new
		}
		n := counts[l.Counter] - t.counts[l.Counter]
		if n > 0 && t.log.Write(event.Event{Kind: event.Lost, Loss: &event.Loss{Stage: l.Stage, What: l.What, Count: n}}) == nil {
			t.counts[l.Counter] = counts[l.Counter]
		}
		if l.Kernel {
			kernel[l.Counter] = t.counts[l.Counter]
		}
	}
	var stored map[string]uint64
	if err := t.memory.Get(keyLosses, &stored); err != nil || maps.Equal(stored, kernel) {
		return err
	}
	return t.memory.Put(keyLosses, kernel) // else they would be told again
}
