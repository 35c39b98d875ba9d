package event_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

// brief is a followed event in short: its kind, or what was lost.
func brief(e event.Event) string {
	if e.Loss != nil {
		return e.Loss.Stage + " lost " + e.Loss.What + " " + string(rune('0'+e.Loss.Count))
	}
	return string(e.Kind) + e.Message
}

func TestSlowFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := event.NewLog()
		slow, endSlow := l.Subscribe(2)
		quick, endQuick := l.Subscribe(100)
		write := func(k event.Kind, message string) {
			t.Helper()
			if err := l.Write(event.Event{Kind: k, Message: message}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		read := func(from <-chan event.Event, n int) (got []string) {
			for range n {
				got = append(got, brief(<-from))
			}
			return got
		}
		for _, m := range []string{"1", "2", "3", "4", "5"} { // one is on its way to the reader, two wait
			write(event.Hold, m)
		}
		write(event.Exec, "6")
		got := read(slow, 5) // the losses arrive although nothing else is written
		if diff := cmp.Diff([]string{"hold1", "hold2", "hold3", "queue lost exec 1", "queue lost hold 2"}, got); diff != "" {
			t.Errorf("slow follower, want - got +\n%s", diff)
		}
		for _, m := range []string{"7", "8", "9", "10"} {
			write(event.Hold, m)
		}
		got = read(slow, 1)
		synctest.Wait() // the queue has room again, and the loss must come before what follows
		write(event.Stop, "11")
		got = append(got, read(slow, 4)...)
		if diff := cmp.Diff([]string{"hold7", "hold8", "hold9", "queue lost hold 1", "stop11"}, got); diff != "" {
			t.Errorf("slow follower again, want - got +\n%s", diff)
		}
		got = read(quick, 11)
		if diff := cmp.Diff([]string{"hold1", "hold2", "hold3", "hold4", "hold5", "exec6", "hold7", "hold8", "hold9", "hold10", "stop11"}, got); diff != "" {
			t.Errorf("quick follower, want - got +\n%s", diff)
		}
		endSlow()
		endSlow()
		if _, open := <-slow; open {
			t.Error("an ended follower still gets events")
		}
		write(event.Stop, "")
		endQuick() // with an event that nobody reads
		synctest.Wait()
	})
}
