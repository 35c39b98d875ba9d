package container

import (
	"context"
	"time"
)

const (
	least     = 200 * time.Millisecond
	mostDelay = 5 * time.Second
)

// retryUntil serves one connection after the other until ctx ends. lost is told why each ended, but for the last.
func retryUntil(ctx context.Context, serve func(context.Context) error, lost func(error)) {
	var wait time.Duration
	for ctx.Err() == nil {
		begun := time.Now()
		err := serve(ctx)
		if ctx.Err() != nil {
			return
		}
		lost(err)
		wait = next(wait, time.Since(begun))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// next is how long to wait after a connection that lasted so long, when the wait before it was last.
func next(last, lasted time.Duration) time.Duration {
	if lasted > mostDelay {
		return least
	}
	return min(max(2*last, least), mostDelay)
}
