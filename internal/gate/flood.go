package gate

import (
	"fmt"
	"time"
)

// What one container may ask, so that it starves no other (B38).
const (
	sharePending = 4               // it may have 1/4 of the questions that wait at once
	burst        = 64              // new questions in a row,
	refill       = 2 * time.Second // and then one more each time
)

// pace is a container's room for new questions: when the last of its burst is back.
type pace struct{ full time.Time }

// rateLimited gives the denial of a new question that finds no room, if it finds none.
// Joining a question that waits needs no room.
func (d *queue) rateLimited(a CheckedRequest) (Verdict, bool) {
	waiting, own := 0, 0
	for _, q := range d.live {
		if q.State == StatePending {
			waiting++
			if q.Container.ID == a.Container.ID {
				own++
			}
		}
	}
	if share := max(d.opts.MaxPending/sharePending, 1); own >= share {
		return No(Flood, fmt.Sprintf("%d questions of this container wait already, its share; answer some, then run the command again", own)), true
	}
	if waiting >= d.opts.MaxPending {
		return No(QueueFull, fmt.Sprintf("%d questions wait already; answer some, then run the command again", waiting)), true
	}
	now := d.clock()
	for id, p := range d.paces {
		if !p.full.After(now) {
			delete(d.paces, id)
		}
	}
	p := d.paces[a.Container.ID]
	if p.full.Before(now) {
		p.full = now
	}
	if p.full.Sub(now) > (burst-1)*refill {
		return No(Flood, fmt.Sprintf("this container asks too much: more than %d questions, and one in %v after that; run the command again later", burst, refill)), true
	}
	p.full = p.full.Add(refill)
	if d.paces == nil {
		d.paces = make(map[string]pace)
	}
	d.paces[a.Container.ID] = p
	return Verdict{}, false
}
