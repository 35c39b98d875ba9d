package gate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"weir/internal/event"
)

const (
	keepEnded    = 24 * time.Hour
	maxEnded     = 1024 // a container that asks without end must not fill the disk
	keepAnswered = 30 * 24 * time.Hour
	maxAnswered  = 4096 // by people: these no container can push out
	pruneAtLeast = 64   // one write removes many
	pruneEvery   = time.Hour
)

// ended is a stored question that leads to no verdict any more.
type ended struct {
	id     string
	at     time.Time
	person bool // answered it
}

// drop ends q's life in memory; its record stays for a day.
func (g *Gate) drop(q *question) {
	g.live = slices.DeleteFunc(g.live, func(o *question) bool { return o == q })
	g.ended = append(g.ended, ended{q.ID, q.Answered, q.By != ""})
}

// sweep ends what is over. Every call does it, so that a late timer opens nothing.
func (g *Gate) sweep() {
	if g.closed {
		return
	}
	now := g.now()
	for _, q := range slices.Clone(g.live) {
		if now.Before(q.until) {
			continue
		}
		switch q.State {
		case StatePending:
			g.giveUp(q, Timeout)
		case StateApproved:
			g.lapse(q)
		default:
			g.drop(q)
		}
	}
	g.prune(now, pruneAtLeast)
}

// giveUp ends a question that nobody answered.
func (g *Gate) giveUp(q *question, r Reason) {
	if err := g.end(q, r, Reply{}); err != nil {
		g.logger.WithError(err).WithField("question", q.ID).Error("end a question")
	}
}

// lapse ends an approval that was not used.
func (g *Gate) lapse(q *question) {
	if q.Taker == (process{}) {
		v := q.verdict(Unclaimed)
		if err := g.write(event.Verdict, q.request(), v, ""); err == nil {
			g.counters[Unclaimed].Add(1)
		}
	}
	q.State = StateExpired
	if err := g.store.put(q.record); err != nil {
		g.logger.WithError(err).Error("store the end of an approval") // its time is stored and over
	}
	g.drop(q)
}

// dropUnanswerable ends what waits for a person when there is none.
func (g *Gate) dropUnanswerable() {
	if g.approver || g.closed {
		return
	}
	for _, q := range slices.Clone(g.live) {
		if q.State == StatePending {
			g.giveUp(q, NoApprover)
		}
	}
}

// prune removes old ended questions, unless they are fewer than least.
func (g *Gate) prune(now time.Time, least int) {
	if least > 1 && len(g.ended) < g.pruned.size+least && now.Sub(g.pruned.at) < pruneEvery {
		return
	}
	defer func() { g.pruned.at, g.pruned.size = now, len(g.ended) }()
	var ids []string
	var kept []ended
	answered, others := 0, 0
	for _, e := range slices.Backward(g.ended) {
		n, most, keep := &others, maxEnded, keepEnded
		if e.person {
			n, most, keep = &answered, maxAnswered, keepAnswered
		}
		if *n++; *n > most || now.Sub(e.at) >= keep {
			ids = append(ids, e.id)
		} else {
			kept = append(kept, e)
		}
	}
	if len(ids) < least {
		return
	}
	if err := g.store.remove(ids...); err != nil {
		g.logger.WithError(err).Error("prune ended questions")
		return
	}
	slices.Reverse(kept)
	g.ended = kept
}

// schedule wakes the gate when the next question is over, so that who waits is
// told, and the log says so, without another call.
func (g *Gate) schedule() {
	if g.timer != nil {
		g.timer.Stop()
	}
	if g.closed || len(g.live) == 0 {
		return
	}
	next := slices.MinFunc(g.live, func(a, b *question) int { return a.until.Compare(b.until) })
	g.timer = time.AfterFunc(next.until.Sub(g.now()), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.closed {
			g.sweep()
			g.schedule()
		}
	})
}

// restore takes up the stored questions.
func (g *Gate) restore() error {
	all, bad, err := g.store.load()
	if err != nil {
		return fmt.Errorf("open gate: %w", err)
	}
	if len(bad) > 0 {
		g.logger.WithField("ids", bad).Error("drop stored questions that cannot be read")
		if err := g.store.remove(bad...); err != nil {
			return fmt.Errorf("open gate: %w", err)
		}
	}
	slices.SortStableFunc(all, func(a, b record) int {
		return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID))
	})
	now := g.now()
	for _, r := range all {
		q := &question{record: r}
		switch r.State {
		case StatePending:
			q.until = g.resume(now, r, r.Asked, r.Deadline)
			q.Deadline = q.until.UTC()
		case StateApproved, StateDenied:
			q.until = g.resume(now, r, r.Answered, r.Claim)
		}
		if q.until.IsZero() || r.State == StateDenied && r.Outcome != Denied {
			g.ended = append(g.ended, ended{r.ID, r.Answered, r.By != ""})
			continue
		}
		g.live = append(g.live, q)
	}
	slices.SortStableFunc(g.ended, func(a, b ended) int { return a.at.Compare(b.at) })
	g.sweep()
	g.dropUnanswerable()
	g.prune(now, 1)
	g.schedule()
	return nil
}

// ends notes the end of the present state on the clock of this boot.
func (r *record) ends(boot func() (string, time.Duration), in time.Duration) {
	id, since := boot()
	r.Boot, r.Ends = id, since+in
}

// resume puts a stored end on the running clock. In the same boot the wall clock
// counts for nothing. Else, one that was set back while nobody looked lengthens
// nothing: it ends at once.
func (g *Gate) resume(now time.Time, r record, began, end time.Time) time.Time {
	if id, since := g.boot(); id != "" && id == r.Boot {
		return now.Add(r.Ends - since)
	}
	if now.Before(began) {
		return now
	}
	return now.Add(end.Sub(now))
}
