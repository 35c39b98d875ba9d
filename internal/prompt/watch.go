package prompt

import (
	"cmp"
	"context"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
)

// Sensor is whose questions are told; control.Client is one.
type Sensor interface {
	Pending(ctx context.Context) ([]gate.Question, error)
	History(ctx context.Context, most int) ([]gate.Question, error)
	Answer(ctx context.Context, id string, r gate.Reply) (gate.Question, error)
	// Events calls fn for each event that f matches, with follow for those to come until ctx ends.
	Events(ctx context.Context, f event.Filter, follow bool, fn func(event.Event) error) error
}

// Overview is a sensor that is seen as a whole; control.Client is one.
type Overview interface {
	Sensor
	Status(ctx context.Context) (control.Status, error)
	Containers(ctx context.Context) ([]control.Container, error)
	Approvals(ctx context.Context) ([]gate.StandingApproval, error)
}

const (
	every = time.Second            // the sensor is asked what waits,
	least = 100 * time.Millisecond // and where there is news not more often than this
)

// update is what has changed.
type update struct {
	list  []gate.Question // that wait, oldest first
	ended []gate.Question // since the last update
	err   error           // the sensor cannot be asked; list is as before

	// Of an Overview, without err.
	at         time.Time
	status     control.Status
	containers []control.Container
	approvals  []gate.StandingApproval
}

// watch tells what look sees each second, and when kicked, until ctx ends.
func watch(ctx context.Context, look func(before []gate.Question) update, kick <-chan struct{}, tell func(update)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var u update
	for ctx.Err() == nil {
		next := time.After(least)
		u = look(u.list)
		tell(u)
		select {
		case <-tick.C:
		case <-kick:
		case <-ctx.Done():
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}

// news kicks when a question is asked or ends, until ctx ends. Without it each look is later.
func news(ctx context.Context, s Sensor, to chan<- struct{}) {
	for ctx.Err() == nil {
		_ = s.Events(ctx, event.Filter{Kinds: []event.Kind{event.Hold, event.Verdict}}, true, func(event.Event) error { kick(to); return nil })
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
	}
}

func kick(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// overlook is next with all the rest.
func overlook(ctx context.Context, s Overview, before []gate.Question) update {
	u := next(ctx, s, before)
	if u.err != nil {
		return u
	}
	var errs [3]error
	u.at = time.Now()
	u.status, errs[0] = s.Status(ctx)
	u.containers, errs[1] = s.Containers(ctx)
	u.approvals, errs[2] = s.Approvals(ctx)
	u.err = cmp.Or(errs[0], errs[1], errs[2]) // what waits is as the sensor said all the same
	return u
}

func next(ctx context.Context, s Sensor, before []gate.Question) update {
	list, err := s.Pending(ctx)
	if err != nil {
		return update{list: before, err: err}
	}
	u := update{list: list}
	waits := map[string]bool{}
	for _, q := range list {
		waits[q.ID] = true
	}
	gone := map[string]gate.Question{}
	for _, q := range before {
		if !waits[q.ID] {
			gone[q.ID] = q
		}
	}
	if len(gone) == 0 {
		return u
	}
	past, err := s.History(ctx, 300)
	if err != nil {
		return update{list: before, err: err}
	}
	for _, q := range past {
		if _, ok := gone[q.ID]; ok {
			u.ended = append(u.ended, q)
			delete(gone, q.ID)
		}
	}
	for _, q := range gone { // pruned already, or more than that ended
		q.State = gate.StateExpired
		u.ended = append(u.ended, q)
	}
	return u
}

// Lines calls tell for each question that waits, and again when it has ended, until
// ctx ends. The first error of tell, or of the first question to the sensor, ends it;
// later ones call lost.
func Lines(ctx context.Context, s Sensor, tell func(q gate.Question) error, lost func(error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates := make(chan update)
	look := func(before []gate.Question) update { return next(ctx, s, before) }
	go watch(ctx, look, nil, func(u update) {
		select {
		case updates <- u:
		case <-ctx.Done():
		}
	})
	known := map[string]bool{}
	begun, failing := false, false
	for {
		var u update
		select {
		case <-ctx.Done():
			return nil
		case u = <-updates:
		}
		if u.err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if !begun {
				return u.err
			}
			if !failing {
				lost(u.err)
			}
			failing = true
			continue
		}
		begun, failing = true, false
		for _, q := range u.ended {
			delete(known, q.ID)
			if err := tell(q); err != nil {
				return err
			}
		}
		for _, q := range u.list {
			if known[q.ID] {
				continue
			}
			known[q.ID] = true
			if err := tell(q); err != nil {
				return err
			}
		}
	}
}
