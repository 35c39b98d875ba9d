package prompt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/gate"
)

// A person whose terminal a full-screen program has is told on the desktop that something waits, and not too often.
func TestDesktop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &sensor{}
		ctx, cancel := context.WithCancel(t.Context())
		sent, fails := 0, false
		ended := make(chan bool)
		go func() {
			defer close(ended)
			Notify(ctx, fake, "g-1", nil, func(context.Context) error {
				if fails {
					return errors.New("no desktop")
				}
				sent++
				return nil
			})
		}()
		want := func(n int, what string) {
			t.Helper()
			synctest.Wait()
			if sent != n {
				t.Errorf("%s: %d notices, want %d", what, sent, n)
			}
		}
		other := held(t, "other2")
		other.Container.ID = "g-2"
		fake.ask(other)
		time.Sleep(refill)
		want(0, "of another container")
		fake.ask(held(t, "first2"))
		time.Sleep(2 * every)
		want(1, "a question")
		fake.ask(held(t, "secnd2"))
		fake.ask(held(t, "third2"))
		time.Sleep(2 * every)
		want(1, "two more at once, too soon")
		time.Sleep(refill)
		want(2, "two more")
		time.Sleep(3 * refill)
		want(2, "nothing new")
		fails = true
		fake.ask(held(t, "forth2"))
		time.Sleep(3 * refill)
		fails = false
		time.Sleep(2 * refill)
		want(3, "after a failure")
		cancel()
		<-ended
	})
}

// ask adds a question that waits.
func (s *sensor) ask(q gate.Question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, q)
}
