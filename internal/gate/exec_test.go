package gate

import (
	"testing"

	"weir/internal/event"
)

// Two who wait before they begin, with the same command: an approval counts once, and who has it not is asked about again. It is stopped
// in the kernel and cannot ask by itself: no answer was given to it, so it is not killed.
func TestExecIsAskedAgain(t *testing.T) {
	run := func(q *Request) {
		q.Ask, q.Destination, q.Container.Taint = Run, event.Destination{}, []string{"corruption", "secret"}
	}
	bubble(t, func(r *rig) {
		first, second := r.ask(curl(run)), r.ask(curl(run, retry))
		r.answer(r.one(), true)
		v := first.gives(Allow, Approved)
		second.blocks()
		r.wantErr(r.Consume(v.Question), nil)
		if q := r.Pending()[0]; q.ID == v.Question || q.Process.PID != 101 || !q.Held {
			t.Errorf("%+v", q)
		}
		r.answer(r.one(), true)
		second.gives(Allow, Approved)
		r.wantEvents("hold", "hold", "verdict allow approved", "hold", "verdict allow approved")
	})
	bubble(t, func(r *rig) { // under the taint that was not cleared meanwhile
		first, second := r.ask(curl(run)), r.ask(curl(run, retry))
		id := r.one()
		r.wantErr(r.Cleared([]string{"secret"}, func(event.Container) bool { return true }), nil)
		r.answer(id, true)
		first.gives(Allow, Approved)
		second.blocks()
		if q := r.Pending()[0]; len(q.Container.Taint) != 1 || q.Container.Taint[0] != "corruption" {
			t.Errorf("%v", q.Container.Taint)
		}
	})
	bubble(t, func(r *rig) { // who goes away then leaves its question
		first, second := r.ask(curl(run)), r.ask(curl(run, retry))
		r.answer(r.one(), true)
		first.gives(Allow, Approved)
		second.leaves()
		r.one()
	})
}
