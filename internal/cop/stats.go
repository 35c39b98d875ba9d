package cop

import (
	"sync/atomic"
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

type stats struct {
	calls, hits, shared, askedCount, retries, overruled, flagged, passed atomic.Uint64
	failures                                                             [12]atomic.Uint64 // by index of Codes
	latency                                                              [len(Bounds) + 1]atomic.Uint64
	took                                                                 atomic.Int64
}

func (s *stats) fail(code Code) {
	for i, c := range Codes {
		if c == code {
			s.failures[i].Add(1)
			return
		}
	}
}

func (s *stats) asked(took time.Duration) {
	s.askedCount.Add(1)
	s.took.Add(int64(took))
	i := 0
	for i < len(Bounds) && took > Bounds[i] {
		i++
	}
	s.latency[i].Add(1)
}

// Stats gives the counts. They are read one by one, so sums may be off by what happens meanwhile.
func (c *Cop) Stats() Stats {
	s := &c.stats
	out := Stats{
		Calls: s.calls.Load(), Hits: s.hits.Load(), Shared: s.shared.Load(), Asked: s.askedCount.Load(), Retries: s.retries.Load(),
		Overruled: s.overruled.Load(), Flagged: s.flagged.Load(), Passed: s.passed.Load(), Waiting: c.waiting.Load(),
		Failures: map[Code]uint64{}, Took: time.Duration(s.took.Load()),
	}
	for i, code := range Codes {
		if n := s.failures[i].Load(); n > 0 {
			out.Failures[code] = n
		}
	}
	for i := range s.latency {
		out.Latency[i] = s.latency[i].Load()
	}
	return out
}
