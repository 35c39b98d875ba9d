package gate

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
)

// confirm is one Confirm under way.
func (r *rig) confirm(req Request) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{t: r.t, cancel: cancel, done: make(chan Verdict, 1)}
	g := r.Gate
	go func() { c.done <- g.Confirm(ctx, req) }()
	synctest.Wait()
	return c
}

// toolCall is a call by a container without any taint.
func toolCall(text string) Request {
	r := curl()
	r.Container.Taint = nil
	r.Command = text
	r.Covers = []Cover{{For: ForSession, Rule: "T(a)"}, {For: ForSession, Narrow: true, Rule: "T(a b)"}, {For: ForKey, Rule: "T(a)"}}
	return r
}

// P5, V2: a call of a tool is asked about in every mode but seal, and also where nothing is tainted.
func TestConfirmP5V2(t *testing.T) {
	bubble(t, func(r *rig) {
		for _, mode := range []string{"", modeObserve, modeEnforce} {
			req := toolCall("VaultHttpFetch: GET https://example.com/ in mode " + mode)
			req.Mode = mode
			c := r.confirm(req)
			c.blocks()
			q := r.Pending()[0]
			if !q.Tool || q.Text != req.Command {
				t.Errorf("%+v", q)
			}
			if _, err := r.Answer(q.ID, Reply{Allow: true, By: "alice", For: ForSession}); err != nil {
				t.Fatal(err)
			}
			v := c.gives(Allow, Approved)
			if v.For != ForSession {
				t.Errorf("%+v", v)
			}
			if err := r.Consume(v.Question); err != nil {
				t.Error(err)
			}
			// Once means once: the next is asked again.
			next := r.confirm(req)
			next.blocks()
			r.answer(r.one(), false)
			next.gives(Deny, Denied)
		}
		req := toolCall("x")
		req.Mode = modeSeal
		r.confirm(req).gives(Deny, Sealed)
		r.confirm(toolCall(" ")).gives(Deny, Malformed)
		r.Configure(nil, false, 0, 0)
		r.confirm(toolCall("x")).gives(Deny, NoApprover)
	})
}

// An approved call of a tool lets no command of the same words run, and the other way round.
func TestConfirmIsNoCommand(t *testing.T) {
	bubble(t, func(r *rig) {
		const text = "curl https://example.com/"
		tainted := curl()
		tainted.Command, tainted.Ask = text, Command
		c := r.confirm(tainted)
		c.blocks()
		r.answer(r.one(), true)
		c.gives(Allow, Approved) // not used: it could be claimed
		r.ask(tainted).blocks()
		r.answer(r.one(), true)
		other := tainted
		other.Command = text + "2"
		r.ask(other).blocks()
		r.answer(r.one(), true)
		r.confirm(other).blocks()
	})
}

func TestForThatIsRefused(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl()).blocks()
		_, err := r.Answer(r.one(), Reply{Allow: true, By: "alice", For: ForKey})
		r.wantErr(err, ErrFor)
		r.answer(r.one(), false)
		c := r.confirm(toolCall("x"))
		for _, reply := range []Reply{
			{Allow: true, By: "alice", For: "forever"}, {By: "alice", For: ForKey}, {Allow: true, By: "alice", For: ForKey, Narrow: true}, {Allow: true, By: "alice", Narrow: true},
		} {
			_, err := r.Answer(r.one(), reply)
			r.wantErr(err, ErrFor)
		}
		c.blocks()
		if _, err := r.Answer(r.one(), Reply{Allow: true, By: "alice", For: ForKey}); err != nil {
			t.Fatal(err)
		}
		if v := c.gives(Allow, Approved); v.For != ForKey || !strings.Contains(v.Text, "alice") {
			t.Errorf("%+v", v)
		}
		// F34: what its question does not list, as of a tool that is not the sensor's own, is no silent yes for this once.
		other := toolCall("Write")
		other.Covers = nil
		r.confirm(other).blocks()
		_, err = r.Answer(r.one(), Reply{Allow: true, By: "alice", For: ForSession})
		r.wantErr(err, ErrFor)
	})
}
