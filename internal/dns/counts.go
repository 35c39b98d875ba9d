package dns

import "sync/atomic"

// Counts are what became of questions, and of resolvers.
type Counts struct{ asked, stood, lookedUp, refused, failed, malformed, unserved atomic.Uint64 }

// Counters tells them by name.
func (c *Counts) Counters() map[string]uint64 {
	return map[string]uint64{
		"name_asked":      c.asked.Load(),
		"name_stood":      c.stood.Load(), // answered with an address that stands for the name
		"name_looked_up":  c.lookedUp.Load(),
		"name_refused":    c.refused.Load(), // the name leads where it may not
		"name_failed":     c.failed.Load(),  // no server answered, or there was no room
		"name_malformed":  c.malformed.Load(),
		"resolver_failed": c.unserved.Load(), // a resolver could not be started
	}
}
