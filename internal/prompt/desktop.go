package prompt

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"weir/internal/gate"
)

// Desktop calls send when questions of the container wait that were not told yet, at most once in refill, until ctx ends. It says nothing of
// them: other programs of the person's can read what comes to a desktop, and the container chose the words of a question. Failures are not
// told: the terminal and the queue have the question all the same.
func Desktop(ctx context.Context, s Sensor, container string, send func(context.Context) error) {
	limit := rate.NewLimiter(rate.Every(refill), 1)
	told := map[string]bool{}
	for {
		var fresh []gate.Question
		list, _ := s.Pending(ctx)
		for _, q := range list {
			if q.Container.ID == container && !q.Gone && !told[q.ID] {
				fresh = append(fresh, q)
			}
		}
		if len(fresh) > 0 && limit.Allow() && send(ctx) == nil {
			for _, q := range fresh {
				told[q.ID] = true
			}
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
	}
}
