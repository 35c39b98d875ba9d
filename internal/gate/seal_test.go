package gate

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/cop"
)

// F04: seal asks neither the reviewer nor a person, whatever comes in and however it fails; and a dry run says so.
func TestSealAsksNobodyF04(t *testing.T) {
	bubble(t, func(r *rig) {
		nobody := reviewer(func(c cop.Case) (cop.Opinion, error) {
			t.Errorf("the reviewer is asked about %q %q", c.Command, c.Argv)
			return cop.Opinion{}, nil
		})
		r.Configure(nobody, true, 0, 0)
		for name, req := range map[string]Request{
			"a command":                       curl(both, asking(wanted)),
			"with one bit":                    curl(asking(wanted)),
			"a grey one":                      curl(both, asking("./tool")),
			"no shell text":                   curl(both, asking("echo 'not closed")),
			"held before it began":            curl(both, frozen),
			"held, its arguments are missing": curl(both, frozen, func(r *Request) { r.Process.Truncated = true }),
			"a connect":                       curl(both),
		} {
			req.Mode = modeSeal
			if v := r.Decide(context.Background(), req); v.Decision != Deny || v.Reason != Sealed {
				t.Errorf("%s: %+v", name, v)
			}
			if f := DryRun(context.Background(), req, nobody, true); f.Step != Refuse || f.Reason != Sealed {
				t.Errorf("%s: dry run %+v", name, f)
			}
		}
		r.ask(curl(both, asking("ls -l"), mode(modeSeal))).gives(Allow, LocalRun)
		r.ask(curl(both, frozen, unheld, mode(modeSeal))).gives(Allow, SealedRun)
		r.none()
	})
}

// F04: what was let run before the mode became seal is not used up in it, and counts afterwards.
func TestSealKeepsApprovalF04(t *testing.T) {
	held := func(r *Request) { r.Held = true }
	bubble(t, func(r *rig) {
		c := r.ask(curl(both, asking(wanted)))
		r.answer(r.one(), true)
		c.gives(Allow, Approved)
		r.ask(curl(both, asking(wanted), mode(modeSeal))).gives(Deny, Sealed)
		r.ask(curl(both, agentShell(wanted), held, mode(modeSeal))).gives(Deny, Sealed)
		r.ask(curl(both, agentShell(wanted), mode(modeSeal))).gives(Allow, SealedRun)
		r.ask(curl(both, agentShell(wanted))).gives(Allow, Recognised)
	})
}

// switchable lets a test change the mode that is in force for a container.
func (r *rig) switchable() map[string]string {
	now := map[string]string{}
	r.o.Mode = func(container string) string { return now[container] }
	r.crash()
	return now
}

// F04: when the mode becomes seal, who waits for a person is told no at once, and no answer opens that any more.
func TestSealEndsQuestionsF04(t *testing.T) {
	elsewhere := func(r *Request) { r.Container.ID = "c2" }
	bubble(t, func(r *rig) {
		now := r.switchable()
		other := r.ask(curl(both, asking(wanted), elsewhere))
		left := r.one()
		waiting := []*call{r.ask(curl(both)), r.ask(curl(both, asking(wanted))), r.confirm(toolCall("x"))}
		asked := r.Pending()
		now["c1"] = modeSeal
		r.ModeChanged()
		for _, c := range waiting {
			c.gives(Deny, Sealed)
		}
		for _, q := range asked {
			if q.ID == left {
				continue
			}
			_, err := r.Answer(q.ID, Reply{Allow: true, By: "alice"})
			r.wantErr(err, ErrAnswered)
			r.wantErr(r.Consume(q.ID), ErrNotGiven)
		}
		r.answer(r.one(), true)
		other.gives(Allow, Approved)

		now["c1"] = modeEnforce
		r.ModeChanged()
		r.ask(curl(both, asking(wanted))).blocks() // nobody said no to it
	})
	bubble(t, func(r *rig) { // by a reload
		now := r.switchable()
		c := r.ask(curl(both, asking(wanted)))
		now["c1"] = modeSeal
		r.Configure(nil, true, 0, 0)
		c.gives(Deny, Sealed)
	})
}

// A command that is let go on needs no answer: its question ends, also when nobody waits for it. That of a hook, which waits itself, stays.
func TestNeedlessEnds(t *testing.T) {
	bubble(t, func(r *rig) {
		now := r.switchable()
		r.ask(curl(both, func(q *Request) { q.Container.ID = "c2" })).blocks()
		r.ask(curl(both, asking(wanted))).blocks()
		for _, free := range []func(){
			func() { r.EndNeedless(func(id string) bool { return id == "c1" }) },
			func() { now["c1"] = modeObserve; r.ModeChanged(); now["c1"] = modeEnforce },
		} {
			before := r.Pending()
			r.ask(curl(both)).leaves()
			all := r.Pending()
			free()
			if d := cmp.Diff(before, r.Pending()); len(all) != len(before)+1 || d != "" {
				t.Fatalf("%+v were pending; others stay (-want +got):\n%s", all, d)
			}
			_, err := r.Answer(all[len(all)-1].ID, Reply{Allow: true, By: "alice"})
			r.wantErr(err, ErrAnswered)
		}
	})
}

// F04: a verdict that was on its way when the mode became seal lets nothing out. A person's approval stays for later.
func TestSealMeanwhileF04(t *testing.T) {
	bubble(t, func(r *rig) {
		now := r.switchable()
		for _, ask := range []func() *call{
			func() *call { return r.ask(curl(both)) },
			func() *call { return r.ask(curl(both, asking(wanted))) },
			func() *call { return r.confirm(toolCall("x")) },
		} {
			c := ask()
			now["c1"] = modeSeal
			r.answer(r.one(), true)
			c.gives(Deny, Sealed)
			now["c1"] = modeEnforce
			again := ask().gives(Allow, Approved)
			r.wantErr(r.Consume(again.Question), nil)
		}
		r.Configure(reviewer(func(cop.Case) (cop.Opinion, error) {
			time.Sleep(time.Second)
			return cop.Opinion{Reason: "fine"}, nil
		}), true, 0, 0)
		c := r.ask(curl(asking(wanted)))
		now["c1"] = modeSeal
		time.Sleep(2 * time.Second)
		c.gives(Deny, Sealed)
	})
}
