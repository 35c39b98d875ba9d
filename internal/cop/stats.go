package cop

import (
	"maps"
	"time"
)

// Bounds are the upper bounds of Stats.Latency; one more count is for what took longer.
var Bounds = [...]time.Duration{
	10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second,
}

// Stats are counts since New.
type Stats struct {
	Calls     uint64 // of Review
	Hits      uint64 // answered from the cache
	Shared    uint64 // answered together with an equal case
	Asked     uint64 // requests to the model, retries included
	Retries   uint64
	Overruled uint64 // flagged by static facts without asking the model
	Flagged   uint64
	Passed    uint64
	Waiting   int64           // now
	Failures  map[Code]uint64 // of Review, by code; only those that happened
	Latency   [len(Bounds) + 1]uint64
	Took      time.Duration // by all requests to the model together
}

// count changes the counts.
func (c *Cop) count(change func(s *Stats)) {
	c.counting.Lock()
	defer c.counting.Unlock()
	change(&c.stats)
}

// asked counts a request to the model.
func (c *Cop) asked(took time.Duration) {
	c.count(func(s *Stats) {
		s.Asked++
		s.Took += took
		i := 0
		for i < len(Bounds) && took > Bounds[i] {
			i++
		}
		s.Latency[i]++
	})
}

// Stats gives the counts.
func (c *Cop) Stats() Stats {
	c.counting.Lock()
	defer c.counting.Unlock()
	s := c.stats
	s.Waiting, s.Failures = c.waiting.Load(), maps.Clone(s.Failures)
	return s
}
