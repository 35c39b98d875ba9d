package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

// G17: who, from where, when, why and what was shown are in the log and the store,
// also after a restart.
func TestAuditG17(t *testing.T) {
	uid := uint32(1000)
	from := &event.Origin{Via: "control", UID: &uid, PID: 9, Exe: "/usr/bin/weir", Terminal: "pts/1", SSH: "192.0.2.9 5 192.0.2.1 22"}
	text := "program curl\n\x1b[2J"
	sum := sha256.Sum256([]byte(text))
	wantShown := &event.Shown{Text: text, SHA256: hex.EncodeToString(sum[:])}
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		time.Sleep(7 * time.Second)
		at := time.Now().UTC()
		if _, err := r.Answer(id, Reply{Allow: true, By: "alice", Why: "known site", From: from, Shown: text}); err != nil {
			t.Fatal(err)
		}
		c.gives(Allow, Approved)
		e := r.log.events[len(r.log.events)-1]
		want := &event.Decision{
			Decision: "allow", Reason: "approved", Text: "alice approved: known site", By: "alice", Scope: 1, Why: "known site", From: from, Shown: wantShown,
		}
		if d := cmp.Diff(want, e.Verdict); d != "" || !e.Time.Equal(at) {
			t.Errorf("event of %v (-want +got):\n%s", e.Time, d)
		}
		r.wantErr(r.Consume(id), nil)
		time.Sleep(time.Second)
		other := r.ask(curl(retry))
		r.answer(r.one(), false)
		other.gives(Deny, Denied)
		r.crash()
		list, err := r.Ended(10)
		if err != nil || len(list) != 2 {
			t.Fatalf("ended: %+v, %v", list, err)
		}
		q := list[1]
		if list[0].State != StateDenied || q.State != StateUsed || q.Outcome != Approved || q.By != "alice" || q.Why != "known site" || !q.Answered.Equal(at) {
			t.Errorf("stored: %+v", q)
		}
		if d := cmp.Diff([]any{from, wantShown}, []any{q.From, q.Shown}); d != "" {
			t.Error("stored (-want +got):\n" + d)
		}
		if list, err := r.Ended(1); err != nil || len(list) != 1 || list[0].State != StateDenied {
			t.Errorf("the newest: %+v, %v", list, err)
		}
	})
}

// A question that nobody answers tells of nobody.
func TestAuditOfExpiry(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl())
		id := r.one()
		time.Sleep(301 * time.Second)
		c.gives(Deny, Timeout)
		q, err := r.Question(id)
		if err != nil || q.Outcome != Timeout || q.State != StateExpired || q.By != "" || q.From != nil || q.Shown != nil || q.Answered.IsZero() {
			t.Errorf("%+v, %v", q, err)
		}
		_, err = r.Question("nosuch")
		r.wantErr(err, ErrUnknown)
	})
}
