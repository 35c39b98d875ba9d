package link

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/notify"
)

// ended servers have a bucket whose watchers end by themselves.
type ended struct{ jetstream.JetStream }

func (e *ended) KeyValue(ctx context.Context, name string) (jetstream.KeyValue, error) {
	bucket, err := e.JetStream.KeyValue(ctx, name)
	return &endedBucket{bucket}, err
}

type endedBucket struct{ jetstream.KeyValue }

func (e *endedBucket) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	w, err := e.KeyValue.WatchAll(ctx, opts...)
	if err == nil {
		err = w.Stop()
	}
	return w, err
}

// TestWatchEnds: who shows questions learns that no more are told, and is not given the same ones for ever.
func TestWatchEnds(t *testing.T) {
	s, _ := hub(t)
	s.js = &ended{s.js}
	calls := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := s.Watch(ctx, func(map[string]notify.Message) error {
		if calls++; calls > 100 {
			cancel()
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "tell no more") || calls > 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
