package gate

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/event"
)

// G15: a pending question survives the daemon, with its id and its deadline, and
// its process is attached to it again.
func TestPendingSurvivesG15(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl())
		before := r.Pending()[0]
		time.Sleep(100 * time.Second)
		r.crash()
		after := r.Pending()
		if len(after) != 1 || after[0].ID != before.ID || !after[0].Deadline.Equal(before.Deadline) {
			t.Fatalf("before %+v\nafter %+v", before, after)
		}
		c := r.ask(curl())
		c.blocks()
		r.one()
		r.answer(before.ID, true)
		if v := c.gives(Allow, Approved); v.Question != before.ID {
			t.Errorf("verdict: %+v", v)
		}
		r.wantErr(r.Consume(before.ID), nil)
		r.crash()
		r.wantErr(r.Consume(before.ID), ErrUsed)
		r.ask(curl()).blocks()
	})
}

// A question says whether anybody waits for its answer, also when the daemon starts anew, and when it has ended.
func TestPendingTellsWhoWaits(t *testing.T) {
	bubble(t, func(r *rig) {
		gone := func(want bool) {
			t.Helper()
			if p := r.Pending(); len(p) != 1 || p[0].Gone != want || !p[0].Held {
				t.Errorf("gone: want %v: %+v", want, p)
			}
		}
		first := r.ask(curl())
		second := r.ask(curl(retry))
		first.leaves()
		gone(false)
		second.leaves()
		gone(true)
		r.ask(curl())
		gone(false)
		r.crash()
		gone(true)
		r.ask(curl(retry, retry, unheld))
		gone(true)
		r.answer(r.one(), false)
		if ended, err := r.Ended(1); err != nil || len(ended) != 1 || !ended[0].Gone {
			t.Errorf("%+v, %v", ended, err)
		}

		c := r.ask(curl(unheld, func(r *Request) { r.Destination.Port = 80 }))
		if p := r.Pending(); len(p) != 1 || p[0].Gone {
			t.Errorf("one that never waited is gone: %+v", p)
		}
		c.leaves()
		r.answer(r.one(), false)
		c = r.ask(curl(func(r *Request) { r.Ask, r.Command = Command, "scp a b:" }))
		c.leaves()
		if q, err := r.Answer(r.one(), Reply{Allow: true, By: "alice"}); err != nil || !q.Gone || !q.Again() {
			t.Errorf("%+v, %v", q, err)
		}
	})
}

func TestDeadlineSurvives(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl())
		r.crash()
		time.Sleep(200 * time.Second)
		r.crash()
		c := r.ask(curl())
		time.Sleep(100*time.Second - time.Nanosecond)
		c.blocks()
		time.Sleep(time.Nanosecond)
		c.gives(Deny, Timeout)
	})
}

// A deadline that passed while no daemon ran is a denial, and is written.
func TestDeadlinePassesMeanwhile(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl())
		id := r.one()
		r.Close()
		time.Sleep(301 * time.Second)
		r.crash()
		r.none()
		_, err := r.Answer(id, Reply{Allow: true, By: "alice"})
		r.wantErr(err, ErrExpired)
		r.wantEvents("hold", "connect deny cancelled", "verdict deny timeout")
		r.ask(curl()).blocks()
	})
}

// G15, G16: approved after reopening with nobody there: claimed once, also over
// another restart.
func TestApprovalAfterReopeningG15G16(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl(unheld))
		id := r.one()
		r.crash()
		r.answer(id, true)
		r.crash()
		r.none()
		if v := r.ask(curl(retry)).gives(Allow, Approved); v.Question != id || v.By != "alice" {
			t.Errorf("verdict: %+v", v)
		}
		r.crash()
		r.ask(curl(retry, retry)).blocks() // it has been handed out
		r.ask(curl(retry)).gives(Allow, Approved)
		r.wantErr(r.Consume(id), nil)
		r.crash()
		r.ask(curl(retry)).blocks()
		r.wantErr(r.Consume(id), ErrUsed)
	})
}

func TestClaimTimeSurvives(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl()).leaves()
		id := r.one()
		r.answer(id, true)
		time.Sleep(200 * time.Second)
		r.crash()
		time.Sleep(100 * time.Second)
		r.ask(curl()).blocks()
		r.wantErr(r.Consume(id), ErrExpired)
		r.crash()
		r.wantErr(r.Consume(id), ErrExpired)
	})
}

// A denial holds for its process over a restart, and for no other.
func TestDenialSurvives(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl())
		r.ask(curl(retry))
		r.answer(r.one(), false)
		r.crash()
		r.ask(curl()).gives(Deny, Denied)
		r.ask(curl(retry)).gives(Deny, Denied)
		r.ask(curl(retry, retry)).blocks()
	})
}

// What a policy without approver finds stored is denied.
func TestReopenWithoutApprover(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl())
		r.o.Approver = false
		r.crash()
		r.none()
		r.ask(curl()).gives(Deny, NoApprover)
		r.o.Approver = true
		r.crash()
		r.none()
		r.ask(curl()).blocks()
	})
}

// A wall clock that was set back between two daemons lengthens nothing.
func TestClockSetBack(t *testing.T) {
	bubble(t, func(r *rig) {
		start := time.Now()
		shift := time.Duration(0)
		r.Close()
		r.o.Now = func() time.Time { return time.Now().Add(shift) }
		r.crash()
		r.ask(curl())
		pending := r.one()
		r.ask(curl(func(r *Request) { r.Container.ID = "c2" })).leaves()
		approved := r.Pending()[1].ID
		r.answer(approved, true)
		shift = -time.Hour
		r.crash()
		if now := r.o.Now(); !now.Before(start) {
			t.Fatal("the clock was not set back")
		}
		r.none()
		_, err := r.Answer(pending, Reply{Allow: true, By: "alice"})
		r.wantErr(err, ErrExpired)
		r.wantErr(r.Consume(approved), ErrExpired)
	})
}

// In one boot, deadlines hold on its clock, however the wall clock is set between two daemons; in another boot they cannot.
func TestClockSetInOneBoot(t *testing.T) {
	for _, shift := range []time.Duration{-time.Hour, 48 * time.Hour} {
		bubble(t, func(r *rig) {
			began, moved, id := time.Now(), time.Duration(0), "one"
			r.Close()
			r.o.Now = func() time.Time { return time.Now().Add(moved) }
			r.o.Boot = func() (string, time.Duration) { return id, time.Since(began) }
			r.crash()
			r.ask(curl())
			pending := r.one()
			r.ask(curl(func(r *Request) { r.Container.ID = "c2" })).leaves()
			approved := r.Pending()[1].ID
			r.answer(approved, true)
			moved = shift
			r.crash()
			if got := r.one(); got != pending {
				t.Errorf("after %v: question %s waits, want %s", shift, got, pending)
			}
			time.Sleep(299 * time.Second)
			r.crash()
			if got := r.one(); got != pending {
				t.Errorf("after %v: question %s waits, want %s", shift, got, pending)
			}
			if err := r.Consume(approved); err != nil {
				t.Errorf("after %v: %v", shift, err)
			}
			time.Sleep(time.Second)
			r.none()
			r.ask(curl())
			id = "two"
			moved = -2 * time.Hour
			r.crash()
			r.none()
		})
	}
}

// Bytes that JSON replaces do not make two commands one, before or after reopening.
func TestInvalidUTF8Survives(t *testing.T) {
	arg := func(s string) func(*Request) { return func(r *Request) { r.Process.Argv[1] = s } }
	bubble(t, func(r *rig) {
		r.ask(curl(arg("a\xff"))).leaves()
		id := r.one()
		r.crash()
		r.answer(id, true)
		r.ask(curl(arg("a\xfe"), retry)).blocks()
		r.ask(curl(arg("a�"), retry)).blocks()
		if v := r.ask(curl(arg("a\xff"), retry)).gives(Allow, Approved); v.Question != id {
			t.Errorf("verdict: %+v", v)
		}
	})
}

// The answer is on disk before anybody hears it.
func TestAnswerIsStoredFirst(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.log.setFail(func(e event.Event) error {
			if e.Kind == event.Verdict { // written before it is stored
				if got := r.record(id); got.State != StatePending {
					t.Errorf("when written: %+v", got)
				}
			}
			return nil
		})
		r.answer(id, true)
		c.gives(Allow, Approved)
		if got := r.record(id); got.State != StateApproved || got.ClaimedBy.PID != 100 || got.ClaimedBy.Start != 5000 {
			t.Errorf("stored: %+v", got)
		}
	})
}

// Ended questions are known for a day, those that a person answered for 30 days.
func TestPrune(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl()).leaves()
		expired := r.one()
		time.Sleep(300 * time.Second)
		c := r.ask(curl())
		id := r.one()
		r.answer(id, false)
		c.gives(Deny, Denied)
		again := func(id string, want error) {
			t.Helper()
			_, err := r.Answer(id, Reply{Allow: true, By: "bob"})
			r.wantErr(err, want)
		}
		time.Sleep(23 * time.Hour)
		r.crash()
		again(id, ErrAnswered)
		again(expired, ErrExpired)
		time.Sleep(time.Hour)
		r.crash()
		again(id, ErrAnswered)
		again(expired, ErrUnknown)
		time.Sleep(29 * 24 * time.Hour)
		r.crash()
		again(id, ErrUnknown)
		if n := r.stored(); n != 0 {
			t.Errorf("%d records are left", n)
		}
	})
}

// stored counts the records.
func (r *rig) stored() (n int) {
	r.o.DB.View(func(tx *bbolt.Tx) error {
		n = tx.Bucket([]byte(bucket)).Stats().KeyN
		return nil
	})
	return n
}

// A container that asks without end neither fills the disk nor pushes out what
// people answered (G17).
func TestPruneFloodG17(t *testing.T) {
	const maxEnded, pruneAtLeast = 1024, 64
	bubble(t, func(r *rig) {
		req := curl()
		r.ask(req).leaves()
		kept := r.one()
		r.answer(kept, false)
		for range maxEnded + 3*pruneAtLeast {
			time.Sleep(301 * time.Second)
			retry(&req)
			r.ask(req).leaves()
		}
		if n := r.stored(); n > 400 { // a day has room for 287 of them
			t.Errorf("%d records are left", n)
		}
		if _, err := r.Question(kept); err != nil {
			t.Error(err)
		}
		time.Sleep(301 * time.Second)
		r.Configure(nil, true, time.Second, 0)
		for range maxEnded + 3*pruneAtLeast {
			time.Sleep(2 * time.Second)
			retry(&req)
			r.ask(req).leaves()
		}
		if n := r.stored(); n > maxEnded+2*pruneAtLeast || n < maxEnded {
			t.Errorf("%d records are left", n)
		}
		if _, err := r.Question(kept); err != nil {
			t.Error(err)
		}
	})
}

// A record that cannot be read is dropped, which denies, and does not stop the daemon.
func TestBadRecordIsDropped(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl())
		id := r.one()
		r.Close()
		err := r.o.DB.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucket))
			good := slices.Clone(b.Get([]byte(id)))
			for key, value := range map[string]string{
				"broken": "{",
				"empty":  "{}",
				"noask":  `{"id":"noask","state":"approved","claim_until":"2100-01-01T00:00:00Z"}`,
				"moved":  string(good),
			} {
				if err := b.Put([]byte(key), []byte(value)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.crash()
		if got := r.one(); got != id {
			t.Errorf("pending: %s; want %s", got, id)
		}
		for _, key := range []string{"broken", "empty", "noask", "moved"} {
			_, err := r.Answer(key, Reply{Allow: true, By: "alice"})
			r.wantErr(err, ErrUnknown)
		}
		synctest.Wait()
	})
}

// A rewritten state leads to no approval that nobody gave.
func TestUnknownStateIsOver(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl()).leaves()
		id := r.one()
		before := r.raw(id)
		after := bytes.Replace(before, []byte(`"pending"`), []byte(`"APPROVED"`), 1)
		if bytes.Equal(before, after) {
			t.Fatalf("stored: %s", before)
		}
		r.put(id, after)
		r.crash()
		r.none()
		r.ask(curl()).blocks()
		r.wantErr(r.Consume(id), ErrUnknown)
	})
}
