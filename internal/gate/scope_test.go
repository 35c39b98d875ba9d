package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

// inScript puts a request below a script that make started.
func inScript(r *Request) {
	r.Above = []event.Member{
		{PID: 90, Start: 4000, Comm: "bash", Exe: "/usr/bin/bash", Argv: []string{"bash", "fetch.sh"}},
		{PID: 80, Start: 3000, Comm: "make", Argv: []string{"make", "deps"}},
	}
	r.GrantSeconds = 60
}

func scoped(scope int) Reply {
	return Reply{Allow: true, By: "alice", Why: "because", Scope: scope}
}

// last is the newest event.
func (r *rig) last() event.Event {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.log.events[len(r.log.events)-1]
}

// F02: the question lists who can be let out, with their whole command lines, the asker first.
func TestF02Chain(t *testing.T) {
	bubble(t, func(r *rig) {
		req := curl(inScript)
		r.ask(req).blocks()
		req.Above[0].Argv[1] = "other.sh" // the caller's to change
		want := []event.Member{
			{PID: 100, Start: 5000, Comm: "curl", Exe: "/usr/bin/curl", Argv: []string{"curl", "https://example.org"}},
			{PID: 90, Start: 4000, Comm: "bash", Exe: "/usr/bin/bash", Argv: []string{"bash", "fetch.sh"}},
			{PID: 80, Start: 3000, Comm: "make", Argv: []string{"make", "deps"}},
		}
		q := r.Pending()[0]
		if d := cmp.Diff(want, q.Chain); d != "" || q.GrantSeconds != 60 {
			t.Errorf("%d s, chain (-want +got):\n%s", q.GrantSeconds, d)
		}
		r.crash()
		if d := cmp.Diff(want, r.Pending()[0].Chain); d != "" {
			t.Errorf("after a restart (-want +got):\n%s", d)
		}
	})
}

// F02: long arguments of parents are cut together, and that is said; those of the asker take no room from them.
func TestF02ChainIsBounded(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl(inScript, func(r *Request) {
			r.Process.Argv[1] = strings.Repeat("x", 30<<10)
			r.Above[0].Argv = []string{"bash", "-c", strings.Repeat("x", 33<<10)}
		})).blocks()
		chain := r.Pending()[0].Chain
		if len(chain) != 3 || chain[0].Truncated || len(chain[0].Argv) != 2 {
			t.Errorf("asker: %d arguments", len(chain[0].Argv))
		}
		if m := chain[1]; !m.Truncated || !cmp.Equal(m.Argv, []string{"bash", "-c"}) {
			t.Errorf("%d arguments, truncated %v", len(m.Argv), m.Truncated)
		}
		if m := chain[2]; !m.Truncated || len(m.Argv) != 0 {
			t.Errorf("what comes after has room again: %+v", m)
		}
	})
}

// F01: an approval lets out who asked, and nobody above it, unless a person says so.
func TestF01ScopeOneIsTheDefault(t *testing.T) {
	for _, scope := range []int{0, 1} {
		bubble(t, func(r *rig) {
			c := r.ask(curl(inScript))
			q, err := r.Answer(r.one(), scoped(scope))
			r.wantErr(err, nil)
			if q.Scope != 1 || q.Root() != nil {
				t.Errorf("scope %d, %+v", q.Scope, q.Root())
			}
			if v := c.gives(Allow, Approved); v.Scope != 1 || v.Root != nil || v.Text != "alice approved: because" {
				t.Errorf("%+v", v)
			}
			if e := r.last().Verdict; e.Scope != 1 || e.Process != nil {
				t.Errorf("event: %+v", e)
			}
		})
	}
}

// F01: a wider scope names the process that was chosen: in the verdict, the event and the store. It answers that question once (G16).
func TestF01WiderScopeG16(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl(inScript))
		q, err := r.Answer(r.one(), scoped(2))
		r.wantErr(err, nil)
		bash := &event.Member{PID: 90, Start: 4000, Comm: "bash", Exe: "/usr/bin/bash", Argv: []string{"bash", "fetch.sh"}}
		v := c.gives(Allow, Approved)
		for what, got := range map[string]*event.Member{"answer": q.Root(), "verdict": v.Root, "event": r.last().Verdict.Process} {
			if d := cmp.Diff(bash, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", what, d)
			}
		}
		if v.Scope != 2 || r.last().Verdict.Scope != 2 || v.Text != "alice approved with scope 2: because" {
			t.Errorf("%+v", v)
		}
		r.wantErr(r.Consume(v.Question), nil)
		r.crash()
		stored, err := r.Question(v.Question)
		if err != nil || stored.Scope != 2 || !cmp.Equal(bash, stored.Root()) {
			t.Errorf("%+v, %v", stored, err)
		}
		r.ask(curl(inScript)).blocks()        // the same process
		r.ask(curl(inScript, retry)).blocks() // the same command below the same shell
	})
}

// F01: what the question does not list cannot be chosen: then nothing is answered.
func TestF01ScopeThatIsRefused(t *testing.T) {
	bubble(t, func(r *rig) {
		refused := func(reply Reply, want string) {
			t.Helper()
			q := r.Pending()[len(r.Pending())-1]
			reply.By = "alice"
			_, err := r.Answer(q.ID, reply)
			r.wantErr(err, ErrScope)
			if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was answered") {
				t.Errorf("%v", err)
			}
			if again, err := r.Question(q.ID); err != nil || again.State != StatePending {
				t.Errorf("%+v, %v", again, err)
			}
		}
		r.ask(curl(inScript)).blocks()
		refused(Reply{Allow: true, Scope: 4}, "the question lists 1 to 3")
		refused(Reply{Allow: true, Scope: -1}, "the question lists 1 to 3")
		refused(Reply{Scope: 1}, "a denial has no scope")
		r.answer(r.one(), false)

		r.ask(curl(retry)).blocks()
		refused(Reply{Allow: true, Scope: 2}, ": this question has no wider scope: nothing was answered")
		r.answer(r.one(), false)

		command := curl(inScript)
		command.Command, command.Ask = "curl https://example.org", Command
		r.ask(command).blocks()
		refused(Reply{Allow: true, Scope: 1}, "this question has no scopes")
		r.answer(r.one(), false)

		r.confirm(toolCall("x")).blocks()
		refused(Reply{Allow: true, Scope: 2}, "this question has no scopes")
		r.answer(r.one(), false)

		begins := curl(inScript, retry)
		begins.Ask, begins.Container.Taint = Run, []string{"corruption", "secret"}
		r.ask(begins).blocks()
		refused(Reply{Allow: true, Scope: 2}, "this question has no scopes")
	})
}

// F01, G16: another process that claims a wide approval is let out with the chosen one where it descends from it, else alone.
func TestF01ClaimIsNotWidenedG16(t *testing.T) {
	elsewhere := func(r *Request) { r.Above[0].PID, r.Above[1].PID = 91, 81 }
	reused := func(r *Request) { r.Above[0].Start += 1e9 }
	for name, tt := range map[string]struct {
		change func(*Request)
		scope  int
	}{
		"below it":                      {func(*Request) {}, 2},
		"below another":                 {elsewhere, 1},
		"below one with the same id":    {reused, 1},
		"below nobody":                  {func(r *Request) { r.Above = nil }, 1},
		"below what the chosen started": {func(r *Request) { r.Above = append([]event.Member{{PID: 95, Start: 4500}}, r.Above...) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				c := r.ask(curl(inScript, unheld))
				id := r.one()
				c.leaves()
				_, err := r.Answer(id, scoped(2))
				r.wantErr(err, nil)
				claim := r.ask(curl(inScript, retry, tt.change))
				v := claim.gives(Allow, Approved)
				if v.Question != id || v.Scope != tt.scope || (v.Root != nil) != (tt.scope == 2) {
					t.Errorf("%+v", v)
				}
				if e := r.last(); e.Verdict.Scope != tt.scope || (e.Verdict.Process != nil) != (tt.scope == 2) || strings.Contains(e.Message, "alone") != (tt.scope == 1) {
					t.Errorf("%q, %+v", e.Message, e.Verdict)
				}
			})
		})
		t.Run(name+", who joined", func(t *testing.T) {
			bubble(t, func(r *rig) {
				first, joined := r.ask(curl(inScript, unheld)), r.ask(curl(inScript, retry, tt.change))
				_, err := r.Answer(r.one(), scoped(2))
				r.wantErr(err, nil)
				first.gives(Deny, UsedOnce)
				if v := joined.gives(Allow, Approved); v.Scope != tt.scope || (v.Root != nil) != (tt.scope == 2) {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}

// F01: what a reviewer passes, and what was let run before (G26), lets nobody out but who asks.
func TestF01ReviewedAndRecognisedG26(t *testing.T) {
	bubble(t, func(r *rig) {
		r.Configure(opinion(false), true, 0, 0)
		if v := r.ask(curl(inScript)).gives(Allow, Passed); v.Root != nil || v.Scope > 1 {
			t.Errorf("%+v", v)
		}
		approvedRun(r)
		if v := r.ask(curl(inScript, below, retry)).gives(Allow, Recognised); v.Root != nil || v.Scope > 1 {
			t.Errorf("%+v", v)
		}
	})
}
