package gate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// model is what an approval may lead to, kept apart from the gate.
type model struct {
	r        *rig
	asked    map[string]Request // by question: what the person saw
	approved map[string]time.Time
	taken    map[string]process
	released map[string]bool
	used     map[string]bool
	calls    []*flight
}

type flight struct {
	*call
	request Request
}

// G15, G16: no sequence of asking, answering, claiming, giving up, waiting and
// crashing lets B out on A's approval, nor A twice, nor A after its time.
func TestNoSequenceLetsBRunOnAG15G16(t *testing.T) {
	steps := 400
	if testing.Short() {
		steps = 100
	}
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.Close()
				r.o.MaxPending = 6
				r.crash()
				m := &model{
					r: r, asked: map[string]Request{}, approved: map[string]time.Time{},
					taken: map[string]process{}, released: map[string]bool{}, used: map[string]bool{},
				}
				rnd := rand.New(rand.NewPCG(seed, 16))
				for range steps {
					m.step(rnd)
					m.check()
				}
				if len(m.approved) == 0 || len(m.used) == 0 {
					t.Errorf("nothing was tried: %d approved, %d used", len(m.approved), len(m.used))
				}
				for _, c := range m.calls {
					c.cancel()
				}
				synctest.Wait()
			})
		})
	}
}

// some makes one of a few requests, so that they meet often.
func some(rnd *rand.Rand) Request {
	req := curl(func(r *Request) {
		r.Container.ID = []string{"c1", "c2"}[rnd.IntN(2)]
		r.Process.PID = 100 + rnd.IntN(3)
		r.Process.Start = 5000 + uint64(rnd.IntN(2))
		r.Process.Argv[1] = []string{"https://a", "https://b"}[rnd.IntN(2)]
		r.Process.ArgvHash = uint64(rnd.IntN(2)) // collides, and is 0 at times
		r.Process.Exe.Inode = uint64(41 + rnd.IntN(2))
		r.Destination.Port = uint16(80 + rnd.IntN(2))
		r.Held = rnd.IntN(2) == 0
	})
	return req
}

func (m *model) step(rnd *rand.Rand) {
	r := m.r
	switch n := rnd.IntN(100); {
	case n < 45:
		req := some(rnd)
		m.calls = append(m.calls, &flight{r.ask(req), req})
	case n < 65:
		p := r.Pending()
		if len(p) == 0 {
			return
		}
		q := p[rnd.IntN(len(p))]
		m.asked[q.ID] = Request{Container: q.Container, Process: q.Process, Destination: q.Destination}
		yes := rnd.IntN(3) > 0
		if yes {
			m.approved[q.ID] = time.Now()
		}
		if _, err := r.Answer(q.ID, Reply{Allow: yes, By: "alice"}); err != nil {
			r.t.Fatal(err)
		}
	case n < 75:
		if len(m.calls) > 0 {
			m.calls[rnd.IntN(len(m.calls))].cancel()
		}
	case n < 85:
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Second)
	case n < 92:
		ids := slices.Sorted(maps.Keys(m.approved))
		if len(ids) == 0 {
			return
		}
		if id := ids[rnd.IntN(len(ids))]; r.Release(id) == nil {
			m.released[id] = true
		}
	default:
		r.crash()
	}
}

// check looks at every verdict that came.
func (m *model) check() {
	synctest.Wait()
	left := m.calls[:0]
	for _, c := range m.calls {
		select {
		case v := <-c.done:
			if v.Decision == Allow {
				m.allowed(c.request, v)
			}
		default:
			left = append(left, c)
		}
	}
	m.calls = left
}

func (m *model) allowed(got Request, v Verdict) {
	t := m.r.t
	want, ok := m.asked[v.Question]
	at, yes := m.approved[v.Question]
	if !ok || !yes || v.Reason != Approved {
		t.Fatalf("allowed what nobody approved: %+v for %+v", v, got)
	}
	same := want.Process.PID == got.Process.PID && want.Process.Start == got.Process.Start
	if want.Container.ID != got.Container.ID || want.Destination != got.Destination ||
		want.Process.Exe.Inode != got.Process.Exe.Inode || want.Process.Argv[1] != got.Process.Argv[1] ||
		want.Process.ArgvHash != got.Process.ArgvHash || got.Process.ArgvHash == 0 && !same {
		t.Fatalf("B was let out on A's approval %s:\nA %+v\nB %+v", v.Question, want, got)
	}
	if late := time.Since(at); late >= 300*time.Second {
		t.Fatalf("approval %s was given %v after the answer", v.Question, late)
	}
	self := process{got.Process.PID, got.Process.Start}
	if other, ok := m.taken[v.Question]; ok && other != self && !m.released[v.Question] {
		t.Fatalf("approval %s was given to %v and to %v", v.Question, other, self)
	}
	m.taken[v.Question], m.released[v.Question] = self, false
	if len(m.taken)%2 == 0 {
		return // not used at once
	}
	if err := m.r.Consume(v.Question); err == nil {
		if m.used[v.Question] {
			t.Fatalf("approval %s was used twice", v.Question)
		}
		m.used[v.Question] = true
	} else if !m.used[v.Question] {
		t.Fatalf("approval %s was given and cannot be used: %v", v.Question, err)
	}
}
