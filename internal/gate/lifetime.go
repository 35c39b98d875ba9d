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
	napAtMost    = 10 * time.Second // a timer stands still while the host sleeps
)

// ended is a stored question that leads to no verdict any more.
type ended struct {
	id     string
	at     time.Time
	person bool // answered it
}

// drop ends q's life in memory; its record stays for a day.
func (d *queue) drop(q *question) {
	d.live = slices.DeleteFunc(d.live, func(o *question) bool { return o == q })
	d.ended = append(d.ended, ended{q.ID, q.Answered, q.By != ""})
}

// sweep ends what is over. Every call does it, so that a late timer opens nothing.
func (d *queue) sweep() {
	if d.closed {
		return
	}
	now := d.clock()
	for _, q := range slices.Clone(d.live) {
		if now.Before(q.until) {
			continue
		}
		switch q.State {
		case StatePending:
			d.giveUp(q, Timeout)
		case StateApproved:
			d.lapse(q)
		default:
			d.drop(q)
		}
	}
	d.sweepStanding(now)
	d.prune(d.gate.now(), pruneAtLeast)
}

// giveUp ends a question that nobody answered.
func (d *queue) giveUp(q *question, r Reason) {
	if err := d.end(q, r, Reply{}); err != nil {
		d.gate.logger.WithError(err).WithField("question", q.ID).Error("end a question")
	}
}

// lapse ends an approval that was not used.
func (d *queue) lapse(q *question) {
	if q.ClaimedBy == (process{}) {
		v := q.verdict(Unclaimed)
		if err := d.gate.write(event.Verdict, q.Request(), v, ""); err == nil {
			d.gate.count(Unclaimed)
		}
	}
	q.State = StateExpired
	if err := d.store.put(q.record); err != nil {
		d.gate.logger.WithError(err).Error("store the end of an approval") // its time is stored and over
	}
	d.drop(q)
}

// dropUnanswerable ends what waits for a person when there is none.
func (d *queue) dropUnanswerable() {
	if !d.approver {
		d.giveUpAll(NoApprover, func(*question) bool { return true })
	}
}

// giveUpAll ends the questions that wait and that which names.
func (d *queue) giveUpAll(r Reason, which func(*question) bool) {
	if d.closed {
		return
	}
	for _, q := range slices.Clone(d.live) {
		if q.State == StatePending && which(q) {
			d.giveUp(q, r)
		}
	}
}

// prune removes old ended questions, unless they are fewer than least.
func (d *queue) prune(now time.Time, least int) {
	if least > 1 && len(d.ended) < d.pruned.size+least && now.Sub(d.pruned.at) < pruneEvery {
		return
	}
	defer func() { d.pruned.at, d.pruned.size = now, len(d.ended) }()
	var ids []string
	var kept []ended
	answered, others := 0, 0
	for _, e := range slices.Backward(d.ended) {
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
	if err := d.store.remove(ids...); err != nil {
		d.gate.logger.WithError(err).Error("prune ended questions")
		return
	}
	slices.Reverse(kept)
	d.ended = kept
}

// schedule wakes the gate when the next question is over, so that who waits is
// told, and the log says so, without another call.
func (d *queue) schedule() {
	if d.timer != nil {
		d.timer.Stop()
	}
	var ends []time.Time
	for _, q := range d.live {
		ends = append(ends, q.until)
	}
	for _, s := range d.standing {
		if !s.until.IsZero() {
			ends = append(ends, s.until)
		}
	}
	if d.closed || len(ends) == 0 {
		return
	}
	next := slices.MinFunc(ends, time.Time.Compare)
	d.timer = time.AfterFunc(min(next.Sub(d.clock()), napAtMost), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.closed {
			d.sweep()
			d.schedule()
		}
	})
}

// restore takes up the stored questions.
func (d *queue) restore() error {
	all, bad, err := d.store.load()
	if err != nil {
		return fmt.Errorf("take up questions: %w", err)
	}
	if len(bad) > 0 {
		d.gate.logger.WithField("ids", bad).Error("drop stored questions that cannot be read")
		if err := d.store.remove(bad...); err != nil {
			return fmt.Errorf("take up questions: %w", err)
		}
	}
	slices.SortStableFunc(all, func(a, b record) int {
		return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID))
	})
	now, clock := d.gate.now(), d.clock()
	for _, r := range all {
		q := &question{record: r}
		switch r.State {
		case StatePending:
			q.until = d.resume(now, r, r.Asked, r.Deadline)
			q.Deadline = now.Add(q.until.Sub(clock)).UTC()
		case StateApproved, StateDenied:
			q.until = d.resume(now, r, r.Answered, r.Claim)
		}
		if q.until.IsZero() || r.State == StateDenied && r.Outcome != Denied {
			d.ended = append(d.ended, ended{r.ID, r.Answered, r.By != ""})
			continue
		}
		d.live = append(d.live, q)
	}
	slices.SortStableFunc(d.ended, func(a, b ended) int { return a.at.Compare(b.at) })
	if err := d.restoreStanding(now); err != nil {
		return fmt.Errorf("take up approvals: %w", err)
	}
	d.sweep()
	d.dropUnanswerable()
	d.prune(now, 1)
	d.schedule()
	return nil
}

// ends notes the end of the present state on the clock of this boot.
func (r *record) ends(boot func() (string, time.Duration), in time.Duration) {
	id, since := boot()
	r.Boot, r.Ends = id, since+in
}

// resume puts a stored end on the queue's clock. In the same boot the wall clock
// counts for nothing. Else, one that was set back while nobody looked lengthens
// nothing: it ends at once.
func (d *queue) resume(now time.Time, r record, began, end time.Time) time.Time {
	clock := d.clock()
	if id, since := d.opts.Boot(); id != "" && id == r.Boot {
		return clock.Add(r.Ends - since)
	}
	if now.Before(began) {
		return clock
	}
	return clock.Add(end.Sub(now))
}

// clockOf is what deadlines hold on: the time since the boot, which nobody sets and which goes on while the host sleeps. Where that is not known
// it is the time of day.
func clockOf(now func() time.Time, boot func() (string, time.Duration)) func() time.Time {
	if id, _ := boot(); id == "" {
		return now
	}
	return func() time.Time {
		_, since := boot()
		return time.Unix(0, 0).Add(since)
	}
}
