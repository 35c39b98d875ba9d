package event_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

// slow is a sink that takes its time, or never returns while it is stuck.
type slow struct {
	mu     sync.Mutex
	each   time.Duration
	stuck  chan struct{} // closed when it goes on; nil: it is not stuck
	events []event.Event
}

func (s *slow) Write(e event.Event) error {
	if s.stuck != nil {
		<-s.stuck
	}
	time.Sleep(s.each)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	return nil
}

func exec(n int) event.Event { return event.Event{Kind: event.Exec, Message: fmt.Sprint(n)} }

// TestSlowSink: what nobody waits for is queued, and what somebody waits for goes ahead of it.
func TestSlowSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{each: 100 * time.Millisecond}
		l := event.NewLog(s)
		begin := time.Now()
		for n := range 50 {
			l.WriteAsync(exec(n))
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("WriteAsync waited %v", took)
		}
		synctest.Wait()
		if err := l.Write(event.Event{Kind: event.Verdict}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != 200*time.Millisecond {
			t.Errorf("Write took %v, want the time of one event and its own", took)
		}
		l.Flush()
		if len(s.events) != 51 || s.events[1].Kind != event.Verdict {
			t.Errorf("%d events, the second is %s", len(s.events), s.events[1].Kind)
		}
		for i, want := range []string{"0", "1"} {
			if got := s.events[2*i].Message; got != want {
				t.Errorf("event %d is %s, want %s", 2*i, got, want)
			}
		}
	})
}

// TestG9StuckSink: who must be sure that an event is written learns within two seconds that it is not, and after that at once; what
// is lost is counted.
func TestG9StuckSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{stuck: make(chan struct{})}
		l := event.NewLog(s)
		l.WriteAsync(exec(0))
		synctest.Wait()
		for i, want := range []time.Duration{2 * time.Second, 0, 0} {
			begin := time.Now()
			if err := l.Write(event.Event{Kind: event.Verdict}); err == nil {
				t.Error("a stuck sink took an event")
			}
			if took := time.Since(begin); took != want {
				t.Errorf("Write %d took %v, want %v", i, took, want)
			}
		}
		const posted = 20000
		for n := range posted {
			l.WriteAsync(exec(n))
		}
		sink, queue := l.Missed()
		if sink != 3 || queue == 0 {
			t.Errorf("missed %d at the sink and %d in the queue, want 3 and some", sink, queue)
		}
		time.Sleep(time.Minute)
		close(s.stuck)
		synctest.Wait()
		if err := l.Write(event.Event{Kind: event.Stop}); err != nil {
			t.Error(err)
		}
		got := map[string]uint64{}
		for _, e := range s.events {
			if e.Kind == event.Lost {
				got[e.Loss.Stage+" "+e.Loss.What] += e.Loss.Count
			} else {
				got[string(e.Kind)]++
			}
		}
		want := map[string]uint64{"exec": posted + 1 - queue, "queue exec": queue, "sink verdict": 3, "stop": 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
	})
}

// TestLateWrite: an event that was on its way when its writer gave up is there in the end, and not counted as lost.
func TestLateWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{each: 3 * time.Second}
		l := event.NewLog(s)
		if err := l.Write(event.Event{Kind: event.Verdict}); err == nil {
			t.Error("written after three seconds, and nobody gave up")
		}
		time.Sleep(2 * time.Second)
		if sink, queue := l.Missed(); sink+queue != 0 || len(s.events) != 1 {
			t.Errorf("missed %d and %d, wrote %d", sink, queue, len(s.events))
		}
	})
}

// TestPostFailed: a sink that fails is told of it by no error, but by its counter.
func TestPostFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{fail: errors.New("no space")}
		l := event.NewLog(m)
		l.WriteAsync(exec(1))
		l.Flush()
		if sink, _ := l.Missed(); sink != 1 {
			t.Errorf("missed %d, want 1", sink)
		}
	})
}

// What nobody waits for holds up nobody, takes a bounded number of events, and is told and counted what it has missed.
func TestAlso(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main, also := &memory{}, &slow{stuck: make(chan struct{})}
		l := event.NewLog(main)
		l.Also(also, event.Grant)
		const written = 6000
		begin := time.Now()
		for n := range written {
			if err := l.Write(exec(n)); err != nil {
				t.Fatal(err)
			}
		}
		l.WriteAsync(event.Event{Kind: event.Grant})
		l.Flush()
		if took := time.Since(begin); took > 2*time.Second || len(main.events) != written+1 {
			t.Errorf("%d events in %v: a stuck output held up the log", len(main.events), took)
		}
		missed := l.AlsoMissed()
		if sink, queue := l.Missed(); missed == 0 || sink+queue != 0 {
			t.Errorf("missed %d, and %d by the log itself", missed, sink+queue)
		}
		close(also.stuck)
		synctest.Wait()
		l.WriteAsync(event.Event{Kind: event.Stop})
		synctest.Wait()
		got := map[string]uint64{}
		for _, e := range also.events {
			if e.Kind == event.Lost {
				got[e.Loss.Stage+" "+e.Loss.What] += e.Loss.Count
			} else {
				got[string(e.Kind)]++
			}
		}
		if diff := cmp.Diff(map[string]uint64{"exec": written - missed, "queue exec": missed, "stop": 1}, got); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
	})
}

// An output that is gone fails nothing, and is counted.
func TestAlsoGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := event.NewLog(&memory{})
		l.Also(&memory{fail: errors.New("closed")})
		if err := l.Write(event.Event{Kind: event.Verdict}); err != nil {
			t.Error(err)
		}
		l.Flush()
		if n := l.AlsoMissed(); n != 1 {
			t.Errorf("missed %d, want 1", n)
		}
	})
}
