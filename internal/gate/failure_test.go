package gate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/event"
)

// breakStore makes every write fail while reading goes on.
func (r *rig) breakStore() {
	r.t.Helper()
	r.wantErr(r.o.DB.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(bucket)) }), nil)
}

// G9: a store that fails when the question is asked denies.
func TestStoreFailsWhenAskedG9(t *testing.T) {
	for name, fail := range map[string]func(*rig){
		"closed":    func(r *rig) { r.o.DB.Close() },
		"no bucket": (*rig).breakStore,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				fail(r)
				r.ask(curl()).gives(Deny, StoreFailed)
				r.wantCount(StoreFailed, 1)
				r.wantEvents("connect deny store_failed")
				r.none()
			})
		})
	}
}

// G9: an approval that cannot be stored is a denial, and the operator is told.
func TestStoreFailsWhenAnsweredG9(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.breakStore()
		q, err := r.Answer(id, Reply{Allow: true, By: "alice"})
		if err == nil || !strings.Contains(err.Error(), "denied") || q.State != StateDenied {
			t.Errorf("Answer: %+v, %v", q, err)
		}
		c.gives(Deny, StoreFailed)
		r.wantEvents("hold", "verdict allow approved", "verdict deny store_failed")
		r.none()
	})
}

// G15: it has ended for who reads it, too, though it is stored as it was.
func TestEndThatIsNotStoredG15(t *testing.T) {
	for name, end := range map[string]func(*rig, string){
		"approved": func(r *rig, id string) { _, _ = r.Answer(id, Reply{Allow: true, By: "alice"}) },
		"late":     func(*rig, string) { time.Sleep(301 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.ask(curl())
				id := r.one()
				before := r.raw(id)
				r.breakStore()
				end(r, id)
				r.put(id, before)
				q, err := r.Question(id)
				if err != nil || q.State != StateDenied || q.Outcome != StoreFailed {
					t.Errorf("state %q, outcome %q, %v", q.State, q.Outcome, err)
				}
			})
		})
	}
}

// A denial needs no store.
func TestStoreFailsWhenDenied(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.breakStore()
		if _, err := r.Answer(id, Reply{Allow: false, By: "alice"}); err == nil {
			t.Error("the operator is not told that the denial is not stored")
		}
		c.gives(Deny, Denied)
	})
}

// G9: neither a claim nor a use counts that cannot be stored.
func TestStoreFailsWhenClaimedG9(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl()).leaves()
		id := r.one()
		r.answer(id, true)
		stored := r.raw(id)
		r.breakStore()
		r.ask(curl()).gives(Deny, StoreFailed)
		if err := r.Consume(id); err == nil {
			t.Error("Used gave an approval that it could not store")
		}
		if err := r.Release(id); err == nil {
			t.Error("Release was not stored")
		}
		r.put(id, stored)
		r.ask(curl()).gives(Allow, Approved)
		r.wantErr(r.Consume(id), nil)
	})
}

// A deadline passes and is told though it cannot be stored.
func TestStoreFailsAtDeadline(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		r.breakStore()
		time.Sleep(300 * time.Second)
		c.gives(Deny, Timeout)
		r.none()
	})
}

// G9: what cannot be written is denied, each place where something is written.
func TestLogFailsG9(t *testing.T) {
	tests := []struct {
		name string
		r    Request
	}{
		{"question", curl()},
		{"QUIC", curl(func(r *Request) { r.Destination.Protocol = "udp" })},
		{"malformed", curl(func(r *Request) { r.Process.PID = 0 })},
		{"seal", curl(mode(modeSeal))},
		{"observe", curl(mode(modeObserve))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.log.setFail(full)
				v := r.ask(tt.r).gives(Deny, LogFailed)
				if !strings.Contains(v.Text, errFull.Error()) {
					t.Errorf("text does not say why: %q", v.Text)
				}
				r.wantCount(LogFailed, 1)
				r.none()
				r.crash()
				r.none() // nothing was left in the store
			})
		})
	}
}

func TestLogFailsWhenJoined(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.ask(curl())
		r.log.setFail(full)
		r.ask(curl(retry)).gives(Deny, LogFailed)
		first.blocks()
		if q := r.Pending()[0]; q.Askers != 1 {
			t.Errorf("askers: %d", q.Askers)
		}
	})
}

// G9: an approval that cannot be written is a denial for good, and does not bar
// the process from asking again.
func TestLogFailsWhenApprovedG9(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.log.setFail(full)
		q, err := r.Answer(id, Reply{Allow: true, By: "alice"})
		r.wantErr(err, errFull)
		if q.State != StateDenied {
			t.Errorf("state is %s", q.State)
		}
		c.gives(Deny, LogFailed)
		r.log.setFail(nil)
		r.crash()
		r.wantErr(r.Consume(id), ErrNotGiven)
		_, err = r.Answer(id, Reply{Allow: true, By: "alice"})
		r.wantErr(err, ErrAnswered)
		if !strings.Contains(err.Error(), "log_failed") {
			t.Errorf("error: %v", err)
		}
		r.ask(curl()).blocks()
	})
}

func TestLogFailsWhenClaimed(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl()).leaves()
		r.answer(r.one(), true)
		r.log.setFail(full)
		r.ask(curl()).gives(Deny, LogFailed)
		r.log.setFail(nil)
		r.ask(curl(retry)).gives(Allow, Approved)
	})
}

func TestLogFailsAtDeadline(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		r.log.setFail(full)
		time.Sleep(300 * time.Second)
		c.gives(Deny, LogFailed)
		r.none()
	})
}

// When both fail, it is still a denial.
func TestLogAndStoreFail(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		fail := errors.New("gone")
		r.log.setFail(func(event.Event) error { return fail })
		r.breakStore()
		_, err := r.Answer(id, Reply{Allow: true, By: "alice"})
		r.wantErr(err, fail)
		if !strings.Contains(err.Error(), "bucket questions is missing") {
			t.Errorf("the store's error is not told: %v", err)
		}
		c.gives(Deny, LogFailed)
		r.ask(curl()).gives(Deny, LogFailed)
	})
}

// G9: a full queue denies, and takes questions again when there is room.
func TestQueueFullG9(t *testing.T) {
	pid := func(n int) func(*Request) {
		return func(r *Request) {
			r.Process.PID, r.Destination.Port, r.Container.ID = n, uint16(n), fmt.Sprint("c", n)
		}
	}
	bubble(t, func(r *rig) {
		r.Close()
		r.o.MaxPending = 2
		r.crash()
		first := r.ask(curl(pid(1)))
		r.ask(curl(pid(2))).blocks()
		r.ask(curl(pid(3))).gives(Deny, QueueFull)
		r.ask(curl(pid(2))).blocks() // joining is no new question
		r.wantCount(QueueFull, 1)
		r.answer(r.Pending()[0].ID, true)
		first.gives(Allow, Approved)
		r.ask(curl(pid(3))).blocks()
		r.ask(curl(pid(4))).gives(Deny, QueueFull)
	})
}

// G9: as many processes as one likes ask the same; the gate holds a few of them.
func TestTooManyAskersG9(t *testing.T) {
	bubble(t, func(r *rig) {
		const maxAskers = 64
		req := curl()
		first := r.ask(req)
		for range maxAskers - 1 {
			retry(&req)
			r.ask(req).blocks()
		}
		retry(&req)
		r.ask(req).gives(Deny, QueueFull)
		r.ask(curl()).gives(Deny, QueueFull)
		if q := r.Pending()[0]; q.Askers != maxAskers {
			t.Errorf("askers: %d", q.Askers)
		}
		r.answer(r.one(), true)
		first.gives(Allow, Approved)
	})
}
