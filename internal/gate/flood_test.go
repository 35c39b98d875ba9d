package gate

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// from is a different question of container c.
func from(c string, n int) func(*Request) {
	return func(r *Request) {
		r.Container.ID, r.Destination.Port = c, uint16(n+1)
		r.Process.PID, r.Process.Argv = n+1, []string{"curl", fmt.Sprint(n)}
	}
}

// A container that floods has its share of the questions, and others can ask.
func TestFloodHasItsShare(t *testing.T) {
	bubble(t, func(r *rig) {
		var flood []*call
		for n := range 64 {
			flood = append(flood, r.ask(curl(from("flood", n))))
			flood[n].blocks()
		}
		for n := range 100 {
			r.ask(curl(from("flood", 100+n))).gives(Deny, Flood)
		}
		r.wantCount(Flood, 100)
		r.wantCount(QueueFull, 0)
		r.ask(curl(from("flood", 3))).blocks() // joining is no new question
		for n := range 64 {
			r.ask(curl(from("other", n))).blocks()
			r.ask(curl(from("third", n))).blocks()
		}
		if p := r.Pending(); len(p) != 192 {
			t.Errorf("%d questions wait", len(p))
		}
		// The share lasts over a restart: the questions do.
		r.crash()
		r.ask(curl(from("flood", 300))).gives(Deny, Flood)
		r.ask(curl(from("fourth", 0))).blocks()
	})
}

// A container whose questions are answered at once may still not ask without end.
func TestFloodHasAPace(t *testing.T) {
	bubble(t, func(r *rig) {
		const burst, refill = 64, 2 * time.Second
		next := 0
		ask := func() *call { next++; return r.ask(curl(from("flood", next))) }
		for range burst {
			c := ask()
			r.answer(r.one(), false)
			c.gives(Deny, Denied)
		}
		ask().gives(Deny, Flood)
		r.ask(curl(from("other", 1))).blocks()
		r.answer(r.one(), false)
		time.Sleep(refill)
		c := ask()
		r.answer(r.one(), false)
		c.gives(Deny, Denied)
		ask().gives(Deny, Flood)
		time.Sleep(burst * refill)
		for range burst {
			c := ask()
			r.answer(r.one(), true)
			c.gives(Allow, Approved)
		}
		ask().gives(Deny, Flood)
		time.Sleep(2 * burst * refill)
		r.ask(curl(from("other", 2))).blocks()
	})
}

// 1,000 requests at once: as many as have room wait, the others are denied, and all
// end.
func TestThousandAtOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		verdicts := make(chan Verdict, 1000)
		var all sync.WaitGroup
		for n := range 1000 {
			all.Go(func() {
				verdicts <- r.Decide(context.Background(), curl(from(fmt.Sprint("c", n%10), n)))
			})
		}
		synctest.Wait()
		if p := r.Pending(); len(p) != 256 {
			t.Errorf("%d questions wait; want %d", len(p), 256)
		}
		if len(verdicts) != 1000-256 {
			t.Errorf("%d were denied at once", len(verdicts))
		}
		for i, q := range r.Pending() {
			r.answer(q.ID, i%2 == 0)
		}
		all.Wait()
		close(verdicts)
		got := map[Reason]int{}
		for v := range verdicts {
			got[v.Reason]++
		}
		if got[Approved] != 256/2 || got[Denied] != 256/2 || got[QueueFull]+got[Flood] != 1000-256 {
			t.Errorf("verdicts: %v", got)
		}
		for _, q := range r.Pending() {
			t.Errorf("still waits: %+v", q)
		}
	})
}

// A thousand processes that ask the same are one question.
func TestThousandAskTheSame(t *testing.T) {
	bubble(t, func(r *rig) {
		var all sync.WaitGroup
		allowed := make(chan Verdict, 1000)
		for n := range 1000 {
			all.Go(func() {
				v := r.Decide(context.Background(), curl(func(q *Request) { q.Process.PID = 1000 + n }))
				if v.Decision == Allow {
					allowed <- v
				}
			})
		}
		synctest.Wait()
		r.answer(r.one(), true)
		all.Wait()
		if len(allowed) != 1 {
			t.Errorf("%d were let out by one approval", len(allowed))
		}
	})
}
