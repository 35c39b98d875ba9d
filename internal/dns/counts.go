package dns

// RedirectCounts are sums over all resolvers, also those that have ended.
type RedirectCounts struct{ asked, stood, lookedUp, refused, failed, malformed uint64 }

func (c *RedirectCounts) add(r *Counts) {
	c.asked += r.Asked.Load()
	c.stood += r.Stood.Load()
	c.lookedUp += r.LookedUp.Load()
	c.refused += r.Refused.Load()
	c.failed += r.Failed.Load()
	c.malformed += r.Malformed.Load()
}

// Counters tells what became of questions, by name.
func (s *Redirect) Counters() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.past
	for _, b := range s.containers {
		for _, r := range b.open {
			all.add(r.Counts())
		}
	}
	return map[string]uint64{
		"name_asked": all.asked, "name_stood": all.stood, "name_looked_up": all.lookedUp, "name_refused": all.refused,
		"name_failed": all.failed, "name_malformed": all.malformed, "resolver_failed": s.failed.Load(),
	}
}
