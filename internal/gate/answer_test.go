package gate

import (
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// Who cannot use an approval is told why: another had it, its time is over, the gate ends, or the disk fails.
func TestUnusedSaysWhy(t *testing.T) {
	bubble(t, func(r *rig) {
		approved := func(change ...func(*Request)) string {
			c := r.ask(curl(change...))
			id := r.one()
			r.answer(id, true)
			c.gives(Allow, Approved)
			return id
		}
		check := func(id string, want Reason) {
			t.Helper()
			err := r.Consume(id)
			if v := Unused(err); err == nil || v.Decision != Deny || v.Reason != want || v.Text == "" {
				t.Errorf("%v: %+v, want %s", err, v, want)
			}
		}
		used := approved()
		r.wantErr(r.Consume(used), nil)
		check(used, UsedOnce)
		late := approved(retry)
		time.Sleep(301 * time.Second)
		check(late, Unclaimed)
		unstored := approved(retry, retry)
		r.wantErr(r.o.DB.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(bucket)) }), nil)
		check(unstored, StoreFailed)
		r.Close()
		check(unstored, Cancelled)
	})
}

// G15: the asker waits until somebody answers; the verdict is written first.
func TestApproveAndDenyG15(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		time.Sleep(299 * time.Second)
		c.blocks()
		r.answer(r.one(), true)
		v := c.gives(Allow, Approved)
		if err := r.Consume(v.Question); err != nil {
			t.Fatal(err)
		}
		c = r.ask(curl(retry))
		c.blocks()
		r.answer(r.one(), false)
		v = c.gives(Deny, Denied)
		if v.By != "alice" || v.Text != "alice denied: because" {
			t.Errorf("verdict: %+v", v)
		}
		r.wantErr(r.Consume(v.Question), ErrNotGiven)
		r.wantEvents("hold", "verdict allow approved", "hold", "verdict deny denied")
		r.wantCount(Approved, 1)
		r.wantCount(Denied, 1)
	})
}

// G15: nobody answers for 300 s: denied, and told without another call.
func TestTimeoutG15(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		time.Sleep(300 * time.Second)
		v := c.gives(Deny, Timeout)
		if v.Question != id || !strings.Contains(v.Text, "5m0s") {
			t.Errorf("verdict: %+v", v)
		}
		r.wantEvents("hold", "verdict deny timeout")
		r.none()
		_, err := r.Answer(id, Reply{Allow: true, By: "alice"})
		r.wantErr(err, ErrExpired)
		r.wantErr(r.Consume(id), ErrNotGiven)
		// It can be asked again, as another question.
		r.ask(curl()).blocks()
		if r.one() == id {
			t.Error("the id was used again")
		}
	})
}

func TestAnswerErrors(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		_, err := r.Answer("nosuch", Reply{Allow: true, By: "alice"})
		r.wantErr(err, ErrUnknown)
		if !strings.Contains(err.Error(), `"nosuch"`) {
			t.Errorf("error does not name the id: %v", err)
		}
		if _, err = r.Answer(id, Reply{Allow: true, By: ""}); err == nil {
			t.Error("an answer by nobody was taken")
		}
		c.blocks()
		q, err := r.Answer(id, Reply{Allow: true, By: "alice"})
		if err != nil || q.State != StateApproved || q.By != "alice" {
			t.Fatalf("Answer: %+v, %v", q, err)
		}
		for _, allow := range []bool{true, false} {
			q, err = r.Answer(id, Reply{Allow: allow, By: "bob"})
			r.wantErr(err, ErrAnswered)
			if !strings.Contains(err.Error(), "approved by alice") || q.By != "alice" {
				t.Errorf("second answer: %+v, %v", q, err)
			}
		}
		c.gives(Allow, Approved)
		r.wantErr(r.Consume("nosuch"), ErrUnknown)
		if err := r.Consume(id); err != nil {
			t.Fatal(err)
		}
		_, err = r.Answer(id, Reply{Allow: true, By: "bob"})
		r.wantErr(err, ErrAnswered)
	})
}

// G16: an approval is used once.
func TestUsedOnceG16(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.wantErr(r.Consume(id), ErrNotGiven)
		r.answer(id, true)
		c.gives(Allow, Approved)
		if err := r.Consume(id); err != nil {
			t.Fatal(err)
		}
		r.wantErr(r.Consume(id), ErrUsed)
		r.wantErr(r.Release(id), ErrUsed)
		again := r.ask(curl())
		again.blocks() // the same process, the same destination: a new question
		if r.one() == id {
			t.Error("a used question is pending again")
		}
	})
}

// G16: who asks the same shares the question, but one process has the approval.
func TestJoinedAskersG16(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.ask(curl())
		thread := r.ask(curl())
		other := r.ask(curl(retry))
		id := r.one()
		if q := r.Pending()[0]; q.Askers != 2 {
			t.Errorf("askers: %d; want 2", q.Askers)
		}
		r.answer(id, true)
		for _, c := range []*call{first, thread} {
			if v := c.gives(Allow, Approved); v.Question != id {
				t.Errorf("verdict: %+v", v)
			}
		}
		if v := other.gives(Deny, UsedOnce); v.Question != id {
			t.Errorf("verdict: %+v", v)
		}
		r.wantEvents("hold", "hold", "verdict allow approved", "connect deny used_once")
		// The kernel restarts the first one's call before the grant is open: the same
		// approval. Another process meanwhile has to ask.
		if v := r.ask(curl()).gives(Allow, Approved); v.Question != id {
			t.Errorf("verdict: %+v", v)
		}
		r.ask(curl(retry)).blocks()
	})
}

// Joined askers are all denied, and a denied process does not ask again soon.
func TestJoinedAskersDenied(t *testing.T) {
	bubble(t, func(r *rig) {
		first, other := r.ask(curl()), r.ask(curl(retry))
		r.answer(r.one(), false)
		first.gives(Deny, Denied)
		other.gives(Deny, Denied)
		time.Sleep(299 * time.Second)
		r.ask(curl()).gives(Deny, Denied)
		r.ask(curl(retry)).gives(Deny, Denied)
		r.none()
		r.ask(curl(retry, retry)).blocks() // a new process asks anew
		time.Sleep(time.Second)
		r.ask(curl()).blocks()
	})
}

// An approval goes to who waits in the kernel: a refused one may be gone.
func TestHeldAskerComesFirst(t *testing.T) {
	bubble(t, func(r *rig) {
		refused, held := r.ask(curl(unheld)), r.ask(curl(retry))
		r.answer(r.one(), true)
		refused.gives(Deny, UsedOnce)
		held.gives(Allow, Approved)
	})
}

// G15: the client gave up; an approval that comes later is claimed once by the
// same command and destination, within its time.
func TestLateApprovalG15(t *testing.T) {
	tests := []struct {
		name  string
		after time.Duration
		ok    bool
	}{
		{"at once", 0, true},
		{"just in time", 300*time.Second - 1, true},
		{"too late", 300 * time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				c := r.ask(curl(unheld))
				id := r.one()
				c.leaves()
				time.Sleep(200 * time.Second)
				r.answer(id, true)
				r.none()
				time.Sleep(tt.after)
				claim := r.ask(curl(retry))
				if !tt.ok {
					claim.blocks()
					r.wantErr(r.Consume(id), ErrExpired)
					r.wantCount(Unclaimed, 1)
					_, err := r.Answer(id, Reply{Allow: true, By: "bob"})
					r.wantErr(err, ErrAnswered)
					return
				}
				if v := claim.gives(Allow, Approved); v.Question != id {
					t.Errorf("verdict: %+v", v)
				}
				r.ask(curl(retry, retry)).blocks() // claimed once
				if err := r.Consume(id); err != nil {
					t.Fatal(err)
				}
				r.ask(curl(retry)).blocks()
			})
		})
	}
}

// G16: an approval that was handed out ends with its time as well.
func TestApprovalExpiresUnusedG16(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.answer(id, true)
		c.gives(Allow, Approved)
		time.Sleep(300 * time.Second)
		r.wantErr(r.Consume(id), ErrExpired)
		r.wantCount(Unclaimed, 0)
	})
}

// An approval whose asker had died can be claimed by the same command.
func TestRelease(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.wantErr(r.Release(id), ErrNotGiven)
		r.answer(id, true)
		c.gives(Allow, Approved)
		if err := r.Release(id); err != nil {
			t.Fatal(err)
		}
		if v := r.ask(curl(retry)).gives(Allow, Approved); v.Question != id {
			t.Errorf("verdict: %+v", v)
		}
		r.wantErr(r.Release("nosuch"), ErrUnknown)
	})
}

// A policy without an approver denies who waits; a new one takes its own times.
func TestConfigure(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.Configure(nil, false, 0, 0)
		c.gives(Deny, NoApprover)
		_, err := r.Answer(id, Reply{Allow: true, By: "alice"})
		r.wantErr(err, ErrAnswered)
		if !strings.Contains(err.Error(), "no_approver") {
			t.Errorf("error: %v", err)
		}
		r.Configure(nil, true, 10*time.Second, 20*time.Second)
		c = r.ask(curl())
		time.Sleep(10 * time.Second)
		c.gives(Deny, Timeout)
		c = r.ask(curl())
		r.Configure(nil, true, time.Hour, 20*time.Second)
		id = r.one()
		time.Sleep(9 * time.Second)
		r.answer(id, true)
		c.gives(Allow, Approved)
		time.Sleep(20 * time.Second)
		r.wantErr(r.Consume(id), ErrExpired)
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		r.Close()
		r.Close()
		c.gives(Deny, Cancelled)
		r.ask(curl(retry)).gives(Deny, Cancelled)
		if _, err := r.Answer(id, Reply{Allow: true, By: "alice"}); err == nil {
			t.Error("a closed gate took an answer")
		}
		if r.Consume(id) == nil || r.Release(id) == nil {
			t.Error("a closed gate gave an approval")
		}
	})
}
