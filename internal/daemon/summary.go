package daemon

import (
	"encoding/json"
	"sync"

	"weir/internal/control"
	"weir/internal/event"
)

// taintSummaries are of what happened in containers. Their methods may be called at the same time.
type taintSummaries struct {
	memory stateMemory
	mu     sync.Mutex
	counts map[string]*control.Summary // by container id
	stored string                      // counts as they were stored last
}

// recallSummaries takes up the summaries of an earlier daemon.
func recallSummaries(m stateMemory) (*taintSummaries, error) {
	s := &taintSummaries{memory: m, counts: map[string]*control.Summary{}}
	return s, m.Get(keySummaries, &s.counts)
}

// Count adds one event. A verdict is a person's approval.
func (s *taintSummaries) Count(id string, k event.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[id]
	if c == nil {
		c = &control.Summary{}
		s.counts[id] = c
	}
	switch k {
	case event.Hold:
		c.Asked++
	case event.Grant:
		c.Granted++
	case event.Verdict:
		c.Approved++
	case event.Connect:
		c.Denied++
	}
}

// Keep stores them when they have changed.
func (s *taintSummaries) Keep() error {
	s.mu.Lock()
	data, err := json.Marshal(s.counts)
	same := string(data) == s.stored
	s.mu.Unlock()
	if err != nil || same {
		return err
	}
	if err := s.memory.Put(keySummaries, json.RawMessage(data)); err != nil {
		return err
	}
	s.mu.Lock()
	s.stored = string(data)
	s.mu.Unlock()
	return nil
}

func (s *taintSummaries) of(id string) control.Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.counts[id]; c != nil {
		return *c
	}
	return control.Summary{}
}

func (s *taintSummaries) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.counts, id)
}
