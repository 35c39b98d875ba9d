package daemon

import (
	"encoding/json"
	"sync"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
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

// count adds what the log is told, whoever decided it: the kernel, the gate, or a hook before it (F10).
func (s *taintSummaries) count(e event.Event) {
	what := counted(e)
	if what == "" || e.Container == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[e.Container.ID]
	if c == nil {
		c = &control.Summary{}
		s.counts[e.Container.ID] = c
	}
	switch what {
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

// counted is what an event counts as: a question, a grant that is made, a person's approval (verdict), a denial (connect), or nothing.
func counted(e event.Event) event.Kind {
	switch v := e.Verdict; {
	case e.Kind == event.Hold, e.Kind == event.Grant && e.Process != nil: // what comes of a grant later names nobody
		return e.Kind
	case v != nil && v.Decision == "deny" && denies(e.Kind, gate.Reason(v.Reason)):
		return event.Connect
	case v != nil && e.Kind == event.Verdict && v.Reason == string(gate.Approved) && v.From != nil: // the answer itself, not who claims it
		return event.Verdict
	}
	return ""
}

// denies says whether a denial in the log refuses something that a container wanted, and is not told a second time.
func denies(k event.Kind, r gate.Reason) bool {
	switch k {
	case event.Connect, event.Deny, event.Verdict, event.Model:
		return r != gate.UsedOnce && r != gate.Cancelled && r != gate.Unclaimed // it asks for itself, or nobody wants it any more
	case event.Tool:
		return r.Tier() == "" // else the gate has told it
	}
	return false
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
