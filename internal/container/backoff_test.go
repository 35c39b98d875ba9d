package container

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The wait doubles up to its bound, and is short again after a connection that lasted.
func TestNext(t *testing.T) {
	var got []time.Duration
	wait := time.Duration(0)
	for _, lasted := range []time.Duration{0, 0, 0, mostDelay, 0, 0, 0, 2 * mostDelay, 0} {
		wait = next(wait, lasted)
		got = append(got, wait)
	}
	want := []time.Duration{least, 2 * least, 4 * least, 8 * least, 16 * least, mostDelay, mostDelay, least, 2 * least}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each end is told but for the one that was asked for, and there is no further try.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tries, gone := 0, errors.New("gone")
		var told []error
		retryUntil(ctx, func(context.Context) error {
			if tries++; tries == 2 {
				cancel()
			}
			return gone
		}, func(err error) { told = append(told, err) })
		if tries != 2 || len(told) != 1 || told[0] != gone {
			t.Errorf("%d tries, told %v", tries, told)
		}
	})
}
