package gate

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/event"
)

// G15: a pending question survives the daemon, with its id and its deadline, and
// its process is attached to it again.
func TestPendingSurvives(t *testing.T) {
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
		r.wantErr(r.Used(before.ID), nil)
		r.crash()
		r.wantErr(r.Used(before.ID), ErrUsed)
		r.ask(curl()).blocks()
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
		_, err := r.Answer(id, true, "alice", "")
		r.wantErr(err, ErrExpired)
		r.wantEvents("hold", "connect deny cancelled", "verdict deny timeout")
		r.ask(curl()).blocks()
	})
}

// G15, G16: approved after reopening with nobody there: claimed once, also over
// another restart.
func TestApprovalAfterReopening(t *testing.T) {
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
		r.wantErr(r.Used(id), nil)
		r.crash()
		r.ask(curl(retry)).blocks()
		r.wantErr(r.Used(id), ErrUsed)
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
		r.wantErr(r.Used(id), ErrExpired)
		r.crash()
		r.wantErr(r.Used(id), ErrExpired)
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
		_, err := r.Answer(pending, true, "alice", "")
		r.wantErr(err, ErrExpired)
		r.wantErr(r.Used(approved), ErrExpired)
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
			if err := r.Used(approved); err != nil {
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
		var state string
		var taker process
		r.log.setFail(func(e event.Event) error {
			if e.Kind == event.Verdict { // written before it is stored
				rec, _, err := r.store.get(id)
				if err != nil || rec.State != StatePending {
					t.Errorf("when written: %+v, %v", rec, err)
				}
			}
			return nil
		})
		r.answer(id, true)
		c.gives(Allow, Approved)
		rec, _, err := r.store.get(id)
		state, taker = rec.State, rec.Taker
		if err != nil || state != StateApproved || taker != (process{100, 5000}) {
			t.Errorf("stored: %s, %+v, %v", state, taker, err)
		}
	})
}

// Ended questions are known for a day, and then pruned; a container that asks
// without end does not fill the disk.
func TestPrune(t *testing.T) {
	count := func(r *rig) (n int) {
		r.o.DB.View(func(tx *bbolt.Tx) error {
			n = tx.Bucket([]byte(bucketName)).Stats().KeyN
			return nil
		})
		return n
	}
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.answer(id, false)
		c.gives(Deny, Denied)
		time.Sleep(23 * time.Hour)
		r.crash()
		_, err := r.Answer(id, true, "bob", "")
		r.wantErr(err, ErrAnswered)
		time.Sleep(time.Hour)
		r.crash()
		_, err = r.Answer(id, true, "bob", "")
		r.wantErr(err, ErrUnknown)
		if n := count(r); n != 0 {
			t.Errorf("%d records are left", n)
		}
		req := curl()
		for range maxEnded + 3*pruneAtLeast {
			retry(&req)
			c := r.ask(req)
			id := r.one()
			r.answer(id, true)
			c.gives(Allow, Approved)
			r.wantErr(r.Used(id), nil)
		}
		if n := count(r); n > maxEnded+2*pruneAtLeast || n < maxEnded {
			t.Errorf("%d records are left", n)
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
			b := tx.Bucket([]byte(bucketName))
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
			_, err := r.Answer(key, true, "alice", "")
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
		rec, _, err := r.store.get(id)
		if err != nil {
			t.Fatal(err)
		}
		rec.State = strings.ToUpper(StateApproved)
		if err := r.store.put(rec); err != nil {
			t.Fatal(err)
		}
		r.crash()
		r.none()
		r.ask(curl()).blocks()
		r.wantErr(r.Used(id), ErrUnknown)
	})
}
