package prompt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
)

// mostRefused is how many denials wait for a line.
const mostRefused = 64

// refusals are denials that nobody was asked about, and that have no line yet.
type refusals struct {
	mu   sync.Mutex
	list []event.Event
	more int // that found no room
}

// follow collects what is refused, until ctx ends.
func (n *notifier) follow(ctx context.Context) {
	f := event.Filter{Kinds: []event.Kind{event.Connect, event.Verdict}, Container: n.container}
	for ctx.Err() == nil {
		// It ends with the sensor, and the next one is followed.
		_ = n.sensor.Events(ctx, f, true, func(e event.Event) error {
			if refuses(e) {
				n.refused.add(e)
			}
			return nil
		})
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
	}
}

// refuses says whether e is a denial that has no other line and that a person would miss: not what programs try by the way (a Unix socket of the
// host, QUIC before TCP), and not what nobody waits for.
func refuses(e event.Event) bool {
	if e.Question != "" || e.Process == nil || e.Verdict == nil || e.Verdict.Decision != "deny" || e.Destination != nil && e.Destination.Protocol == "unix" {
		return false
	}
	return !slices.Contains([]gate.Reason{gate.QUIC, gate.Cancelled, gate.UsedOnce, gate.Unclaimed}, gate.Reason(e.Verdict.Reason))
}

func (r *refusals) add(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == mostRefused {
		r.more++
		return
	}
	r.list = append(r.list, e)
}

// take gives what has been collected.
func (r *refusals) take() (list []event.Event, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, more = r.list, r.more
	r.list, r.more = nil, 0
	return list, more
}

// refuse writes a line for each denial, or one for the rest of many.
func (n *notifier) refuse() {
	list, more := n.refused.take()
	told := ""
	for i, e := range list {
		head, middle, tail := refusal(e)
		if head+middle+tail == told {
			continue // tried again
		}
		told = head + middle + tail
		switch rest := len(list) - i + more; {
		case !n.limit.Allow():
			n.refused.putBack(list[i:], more)
			return
		case rest > 1 && n.limit.Tokens() < 1:
			_ = n.say(fmt.Sprintf("weir: and %d more were refused: weir events says which", rest), "", "")
			return
		}
		if n.say(head, middle, tail) != nil {
			return // the event log has it
		}
	}
}

// putBack keeps for the next look what found no line.
func (r *refusals) putBack(list []event.Event, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := append(slices.Clone(list), r.list...)
	r.more += more + max(len(all)-mostRefused, 0)
	r.list = all[:min(len(all), mostRefused)]
}

// refusal is the line of a denial, in three parts: the container made the one in the middle.
func refusal(e event.Event) (head, middle, tail string) {
	what, was := caller(*e.Process), " was refused ("
	switch {
	case e.Command != "":
		what = event.Command([]string{e.Command}, 0, 0)
	case e.Destination != nil:
		what += " → " + strings.TrimSuffix(e.Destination.String(), "/tcp")
	default:
		was = " was killed before it began ("
	}
	code := event.Visible(e.Verdict.Reason)
	if e.Verdict.Failed != "" {
		code += " after " + event.Visible(e.Verdict.Failed)
	}
	return "weir: ", what, was + code + "); weir events says why"
}
