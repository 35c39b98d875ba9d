package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/cop"
	"weir/internal/event"
)

// known puts a request where an approval says what it opens.
func known(r *Request) {
	inScript(r)
	r.GrantBytes = 64 << 20
}

// lasts approves the only question for longer, as a person who was shown what that adds.
func (r *rig) lasts(change ...func(*Reply)) StandingApproval {
	r.t.Helper()
	reply := Reply{Allow: true, By: "alice", For: "30m", Who: WhoProgram, Shown: "all of it"}
	for _, f := range change {
		f(&reply)
	}
	q := r.Pending()[0]
	given, err := q.StandingBy(reply)
	r.wantErr(err, nil)
	reply.Adds = given.Adds
	_, err = r.Answer(q.ID, reply)
	r.wantErr(err, nil)
	synctest.Wait()
	return given
}

func who(who string) func(*Reply)   { return func(r *Reply) { r.Who = who } }
func lasting(s string) func(*Reply) { return func(r *Reply) { r.For = s } }

// What an approval adds is told exactly.
func TestStandingAdds(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl(known)).blocks()
		q := r.Pending()[0]
		for _, c := range []struct {
			reply Reply
			want  string
		}{
			{
				Reply{Allow: true, For: "30m"},
				"curl https://example.org (pid 100) and everything it starts -> 203.0.113.9:443/tcp, for 30m, 64 MiB in all; new taint ends it",
			},
			{
				Reply{Allow: true, For: "90s", Scope: 2, Bytes: 1000},
				"bash fetch.sh (pid 90) and everything it starts -> 203.0.113.9:443/tcp, for 90s, 1000 bytes in all; new taint ends it",
			},
			{
				Reply{Allow: true, For: "1h0m0s", Who: WhoProgram},
				"every process of agent that runs /usr/bin/curl (device 8, inode 42) as uid 1000, with any arguments, and what it starts -> 203.0.113.9:443/tcp, for 1h, 256 MiB in all, at most 64 MiB and 60 s at a time; new taint ends it",
			},
			{
				Reply{Allow: true, For: "session", Who: WhoContainer, Keeps: true},
				"every process of agent -> 203.0.113.9:443/tcp, until the container ends, 256 MiB in all, at most 64 MiB and 60 s at a time; new taint does not end it",
			},
		} {
			s, err := q.StandingBy(c.reply)
			if err != nil || s.Adds != c.want {
				t.Errorf("%+v: %v\n got %s\nwant %s", c.reply, err, s.Adds, c.want)
			}
		}
		for name, reply := range map[string]Reply{
			"a denial": {For: "30m"}, "too long": {Allow: true, For: "25h"}, "no time": {Allow: true, For: "soon"}, "less than none": {Allow: true, For: "-1m"},
			"nobody": {Allow: true, For: "30m", Who: "host"}, "no such scope": {Allow: true, For: "30m", Scope: 4},
			"a scope of a program": {Allow: true, For: "30m", Who: WhoProgram, Scope: 2}, "bytes": {Allow: true, For: "30m", Bytes: -1},
		} {
			reply.By = "alice"
			if _, err := r.Answer(q.ID, reply); !errors.Is(err, ErrStanding) || strings.Contains(err.Error(), "--") { // a page has no flags
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, change := range map[string]func(*event.Process){
			"in memory": func(p *event.Process) { p.Exe.Memfd = true }, "deleted": func(p *event.Process) { p.Exe.Deleted = true },
			"no file": func(p *event.Process) { p.Exe = nil }, "an environment that was not read": func(p *event.Process) { p.EnvCut = true },
			"an environment by its own account": func(p *event.Process) { p.Truncated, p.Claimed = true, true },
		} {
			odd, exe := q, *q.Process.Exe
			odd.Process.Exe = &exe
			change(&odd.Process)
			if s, err := odd.StandingBy(Reply{Allow: true, For: "30m", Who: WhoProgram}); !errors.Is(err, ErrStanding) || strings.Contains(err.Error(), "--") {
				t.Errorf("for a program with %s: %+v, %v", name, s, err)
			}
		}
		if _, err := r.Answer(q.ID, Reply{Allow: true, By: "alice", For: "30m", Adds: "less"}); !errors.Is(err, ErrStanding) {
			t.Error("given, though something else was shown:", err)
		}
		if len(r.Standing()) != 0 || len(r.Pending()) != 1 {
			t.Error("a refused answer did something")
		}
	})
}

// Who waited and has gone is not approved for longer, as nobody else is who does not wait: nobody would be let out by it.
func TestStandingForWhoIsGone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ask(curl(known)).leaves()
		listed := r.Pending()[0]
		asked, err := r.Question(listed.ID)
		if err != nil || !listed.Gone || !asked.Gone {
			t.Errorf("%+v, %+v, %v", listed, asked, err)
		}
		for scope, want := range []error{ErrStanding, ErrStanding, nil} {
			reply := Reply{Allow: true, By: "alice", For: "30m", Scope: scope}
			there := listed
			there.Gone = false
			given, err := there.StandingBy(reply)
			r.wantErr(err, nil)
			_, err = listed.StandingBy(reply)
			r.wantErr(err, want)
			reply.Adds = given.Adds // of who did not know
			told, err := r.Answer(listed.ID, reply)
			r.wantErr(err, want)
			if !told.Gone {
				t.Errorf("%+v", told)
			}
		}
	})
}

// An approval that goes on lets out what it says, and asks a person about all else.
func TestStandingCoversWhatItSays(t *testing.T) {
	other := func(r *Request) {
		retry(r)
		r.Process.Argv = []string{"curl", "-d", "@/etc/passwd", "https://example.org"}
	}
	wget := func(r *Request) { retry(r); r.Process.Exe.Inode = 43 }
	orphan := func(r *Request) { retry(r); r.Above = nil }
	for _, c := range []struct {
		name   string
		who    string
		scope  int
		ask    func(*Request)
		covers bool
	}{
		{"the program again", WhoProgram, 0, retry, true},
		{"with other arguments", WhoProgram, 0, other, true},
		{"another program", WhoProgram, 0, wget, false},
		{"the program at another path", WhoProgram, 0, func(r *Request) { retry(r); r.Process.Exe.Path = "/tmp/curl" }, false},
		{"the program without a name", WhoProgram, 0, func(r *Request) { retry(r); r.Process.Exe.Deleted = true }, false},
		{"no program", WhoProgram, 0, func(r *Request) { retry(r); r.Process.Exe = nil }, false},
		{"the program by its own account", WhoProgram, 0, func(r *Request) { retry(r); r.Process.Truncated, r.Process.Claimed = true, true }, false},
		{"the program as root", WhoProgram, 0, func(r *Request) { retry(r); r.Process.UID = 0 }, false},
		{"the program with a library", WhoProgram, 0, func(r *Request) { retry(r); r.Process.Env = []string{"LD_PRELOAD"} }, false},
		{"another port", WhoProgram, 0, func(r *Request) { retry(r); r.Destination.Port = 80 }, false},
		{"another address", WhoContainer, 0, func(r *Request) { retry(r); r.Destination.Address = "203.0.113.10" }, false},
		{"another protocol", WhoContainer, 0, func(r *Request) { retry(r); r.Destination.Protocol, r.Destination.Port = "udp", 443+1 }, false},
		{"a name at the address", WhoContainer, 0, func(r *Request) { retry(r); r.Destination.Name = "other.example" }, false},
		{"another program of the container", WhoContainer, 0, wget, true},
		{"another container", WhoContainer, 0, func(r *Request) { retry(r); r.Container.ID = "c2" }, false},
		{"the same name in another cgroup", WhoContainer, 0, func(r *Request) { retry(r); r.Container.CgroupID = 9 }, false},
		{"more taint", WhoContainer, 0, func(r *Request) { retry(r); r.Container.Taint = []string{"corruption", "secret"} }, false},
		{"below the script", WhoProcess, 2, wget, true},
		{"not below the script", WhoProcess, 2, orphan, false},
		{"below another with its pid", WhoProcess, 2, func(r *Request) { retry(r); r.Above[0].Start++ }, false},
		{"the script became another", WhoProcess, 2, func(r *Request) { retry(r); r.Above[0].Argv = []string{"bash", "-c", "evil"} }, false},
		{"the process again", WhoProcess, 0, func(*Request) {}, true},
		{"the same command in another process", WhoProcess, 0, retry, false},
		{"the process, which does not wait", WhoProcess, 0, unheld, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				first := r.ask(curl(known))
				s := r.lasts(who(c.who), func(p *Reply) { p.Scope = c.scope })
				v := first.gives(Allow, Standing)
				if v.Question != s.ID || v.By != "alice" || v.Open == nil || v.Open.Bytes != 64<<20 || (v.Root != nil) != (c.scope == 2) {
					t.Errorf("%+v", v)
				}
				r.Return(s.ID, v.Open.Bytes)
				again := r.ask(curl(known, c.ask))
				if c.covers {
					again.gives(Allow, Standing)
				} else {
					again.blocks()
				}
			})
		})
	}
}

// With a name, the address that stands for it does not matter, and the name does.
func TestStandingNames(t *testing.T) {
	named := func(name, address string) func(*Request) {
		return func(r *Request) { r.Destination.Name, r.Destination.Address = name, address }
	}
	bubble(t, func(r *rig) {
		first := r.ask(curl(known, named("pypi.org", "198.18.0.1")))
		r.lasts()
		first.gives(Allow, Standing)
		r.ask(curl(known, retry, named("pypi.org", "198.18.0.7"))).gives(Allow, Standing)
		r.ask(curl(known, retry, named("evil.example", "198.18.0.1"))).blocks()
		r.ask(curl(known, retry, named("", "198.18.0.1"))).blocks()
	})
}

// Its bytes are counted in all: what grants hold is taken, and what they did not use comes back.
func TestStandingBytes(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.ask(curl(known))
		s := r.lasts(who(WhoContainer), func(p *Reply) { p.Bytes = 100 << 20 })
		first.gives(Allow, Standing)
		if v := r.ask(curl(known, retry)).gives(Allow, Standing); v.Open.Bytes != 36<<20 {
			t.Error("the second has", v.Open.Bytes)
		}
		third := r.ask(curl(known, retry, retry))
		third.blocks() // nothing is left
		third.leaves()
		r.Return(s.ID, 10)
		if got := r.Standing()[0]; got.Left != 10 || got.Uses != 2 {
			t.Errorf("%+v", got)
		}
		r.crash() // what it has left survives
		if v := r.ask(curl(known, retry, retry, retry)).gives(Allow, Standing); v.Open.Bytes != 10 {
			t.Error("after a restart:", v.Open.Bytes)
		}
		r.Return(s.ID, 1<<40)
		if got := r.Standing()[0].Left; got != 100<<20 {
			t.Error("more came back than it was for:", got)
		}
	})
}

// It ends by itself, by a person and by taint, and each end is told; nothing is let out by it then.
func TestStandingEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*rig, StandingApproval)
		want event.ApprovalEnd
	}{
		{"time", func(r *rig, _ StandingApproval) { time.Sleep(30 * time.Minute); synctest.Wait() }, event.Expired},
		{"person", func(r *rig, s StandingApproval) {
			_, err := r.Revoke(s.ID, "bob", "enough")
			r.wantErr(err, nil)
			_, err = r.Revoke(s.ID, "bob", "enough")
			r.wantErr(err, ErrNoneSuch)
		}, event.Revoked},
		{"taint", func(r *rig, s StandingApproval) {
			ended, err := r.EndStanding(func(StandingApproval) event.ApprovalEnd { return event.NewTaint })
			r.wantErr(err, nil)
			if len(ended) != 1 || ended[0].ID != s.ID {
				r.t.Errorf("%+v", ended)
			}
		}, event.NewTaint},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				first := r.ask(curl(known))
				s := r.lasts()
				first.gives(Allow, Standing)
				c.end(r, s)
				if e := r.last(); e.Kind != event.Approval || e.Approval.End != c.want || e.Approval.ID != s.ID {
					t.Errorf("told: %+v", e)
				}
				r.ask(curl(known, retry)).blocks()
				r.crash()
				if list := r.Standing(); len(list) != 0 {
					t.Errorf("after a restart: %+v", list)
				}
			})
		})
	}
}

// While the host sleeps the time of all goes on that has one: of questions, of approvals that were not used, of commands that were let run, and of
// what goes on, which nobody has to ask about to see it end.
func TestSleepIsTime(t *testing.T) {
	asleep := func(t *testing.T, f func(r *rig, sleep func(time.Duration))) {
		bubble(t, func(r *rig) {
			slept, began := time.Duration(0), time.Now()
			r.o.Boot = func() (string, time.Duration) { return "first", time.Since(began) + slept }
			r.crash()
			f(r, func(d time.Duration) { slept += d })
		})
	}
	t.Run("question", func(t *testing.T) {
		asleep(t, func(r *rig, sleep func(time.Duration)) {
			c := r.ask(curl(known))
			id := r.one()
			sleep(8 * time.Hour)
			time.Sleep(napAtMost)
			c.gives(Deny, Timeout)
			_, err := r.Answer(id, Reply{Allow: true, By: "alice"})
			r.wantErr(err, ErrExpired)
		})
	})
	t.Run("once", func(t *testing.T) {
		asleep(t, func(r *rig, sleep func(time.Duration)) {
			r.ask(curl(known)).leaves()
			id := r.one()
			r.answer(id, true)
			sleep(8 * time.Hour)
			r.wantErr(r.Consume(id), ErrExpired)
			r.ask(curl(known, retry)).blocks()
		})
	})
	t.Run("command", func(t *testing.T) {
		asleep(t, func(r *rig, sleep func(time.Duration)) {
			run := func(q *Request) { q.Ask, q.Destination = Run, event.Destination{} }
			r.Gate.begin(curl(run), "alice", "")
			if _, ok := r.Gate.runs(curl()); !ok {
				t.Error("not known")
			}
			sleep(8 * time.Hour)
			if _, ok := r.Gate.runs(curl()); ok {
				t.Error("known after a long sleep")
			}
		})
	})
	t.Run("goes on", func(t *testing.T) {
		asleep(t, func(r *rig, sleep func(time.Duration)) {
			r.ask(curl(known))
			s := r.lasts()
			if !r.InForce(s.ID) {
				t.Error("not in force")
			}
			sleep(30 * time.Minute)
			time.Sleep(napAtMost)
			synctest.Wait()
			if e := r.last(); e.Kind != event.Approval || e.Approval.End != event.Expired {
				t.Errorf("%+v", e)
			}
			if r.InForce(s.ID) {
				t.Error("in force")
			}
		})
	})
	t.Run("asks again", func(t *testing.T) {
		asleep(t, func(r *rig, sleep func(time.Duration)) {
			for i := range burst {
				r.ask(curl(func(q *Request) { q.Process.PID += i; q.Process.Argv = []string{"curl", string(rune('a' + i))} })).leaves()
				r.answer(r.one(), false)
			}
			another := curl(func(q *Request) { q.Process.PID, q.Process.Argv = 999, []string{"curl", "z"} })
			r.ask(another).gives(Deny, Flood)
			sleep(refill)
			r.ask(another).blocks()
		})
	})
}

// It survives a restart, with the time that it has left, however the wall clock is set.
func TestStandingIsDurable(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.ask(curl(known))
		r.lasts(lasting("10m"))
		first.gives(Allow, Standing)
		time.Sleep(4 * time.Minute)
		r.crash()
		if v := r.ask(curl(known, retry)).gives(Allow, Standing); v.Open.For != time.Minute {
			t.Error("a grant lasts", v.Open.For)
		}
		time.Sleep(5*time.Minute + 30*time.Second)
		if v := r.ask(curl(known, retry, retry)).gives(Allow, Standing); v.Open.For != 30*time.Second {
			t.Error("near its end a grant lasts", v.Open.For)
		}
		time.Sleep(time.Minute)
		r.crash()
		r.ask(curl(known, retry, retry, retry)).blocks()
	})
}

// Its time goes on while the host sleeps, and no approval outlives the host's boot.
func TestStandingOverSleepAndBoot(t *testing.T) {
	for _, c := range []struct {
		name, lasts string
		after       func(*rig, *string, *time.Duration)
		covers      bool
	}{
		{"a short sleep", "30m", func(_ *rig, _ *string, slept *time.Duration) { *slept = 10 * time.Minute }, true},
		{"a long sleep", "30m", func(_ *rig, _ *string, slept *time.Duration) { *slept = 30 * time.Minute }, false},
		{"a restart of the sensor", ForSession, func(r *rig, _ *string, _ *time.Duration) { r.crash() }, true},
		{"a restart of the host", ForSession, func(r *rig, boot *string, _ *time.Duration) { *boot = "second"; r.crash() }, false},
		{"the same, with time left", "30m", func(r *rig, boot *string, _ *time.Duration) { *boot = "second"; r.crash() }, false},
		{"a boot that is not known", "30m", func(r *rig, boot *string, _ *time.Duration) { *boot = ""; r.crash() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				boot, slept, began := "first", time.Duration(0), time.Now()
				r.o.Boot = func() (string, time.Duration) { return boot, time.Since(began) + slept }
				r.crash()
				first := r.ask(curl(known))
				r.lasts(lasting(c.lasts))
				first.gives(Allow, Standing)
				c.after(r, &boot, &slept)
				again := r.ask(curl(known, retry))
				if c.covers {
					again.gives(Allow, Standing)
					return
				}
				again.blocks()
				if list := r.Standing(); len(list) != 0 {
					t.Errorf("still listed: %+v", list)
				}
			})
		})
	}
}

// Taint that was cleared is new when it comes again, before anybody has ended the approval for it.
func TestStandingAfterTaintWasCleared(t *testing.T) {
	both := func(r *Request) { r.Container.Taint = []string{"corruption", "secret"} }
	bubble(t, func(r *rig) {
		first := r.ask(curl(known, both))
		s := r.lasts(who(WhoContainer))
		first.gives(Allow, Standing)
		r.wantErr(r.Cleared([]string{"secret"}, func(event.Container) bool { return false }), nil)
		r.ask(curl(known, both, retry)).gives(Allow, Standing)
		r.wantErr(r.Cleared([]string{"secret"}, func(c event.Container) bool { return c.ID == s.Container.ID }), nil)
		r.ask(curl(known, retry, retry)).gives(Allow, Standing)
		r.ask(curl(known, both, retry, retry, retry)).blocks()
		r.crash()
		r.ask(curl(known, both, retry, retry, retry)).blocks()
	})
}

// The same for a question that waits, for an approval that was not used yet, and for a command that was let run.
func TestTaintWasCleared(t *testing.T) {
	both := func(r *Request) { r.Container.Taint = []string{"corruption", "secret"} }
	everywhere := func(event.Container) bool { return true }
	t.Run("asked", func(t *testing.T) {
		bubble(t, func(r *rig) {
			first := r.ask(curl(known, both))
			r.wantErr(r.Cleared([]string{"secret"}, everywhere), nil)
			s := r.lasts(who(WhoContainer))
			first.gives(Allow, Standing)
			if len(s.Container.Taint) != 1 {
				t.Errorf("given for %v", s.Container.Taint)
			}
			r.ask(curl(known, retry)).gives(Allow, Standing)
			r.ask(curl(known, both, retry, retry)).blocks()
		})
	})
	for name, of := range map[string]func(event.Container) bool{"its_own": everywhere, "another": func(c event.Container) bool { return c.ID == "other" }} {
		cleared := func(r *rig) { r.wantErr(r.Cleared([]string{"secret"}, of), nil) }
		anew := func(c *call) {
			c.t.Helper()
			if name == "another" {
				c.gives(Allow, Standing)
			} else {
				c.blocks()
			}
		}
		t.Run("reviewed/"+name, func(t *testing.T) { // the question comes after
			bubble(t, func(r *rig) {
				r.Configure(reviewer(func(cop.Case) (cop.Opinion, error) { cleared(r); return opinion(true)(cop.Case{}) }), true, 0, 0)
				flagged := func(r *Request) { r.Container.Taint, r.AskFlagged = []string{"secret"}, true }
				first := r.ask(curl(known, flagged))
				first.blocks()
				r.lasts(who(WhoContainer))
				first.gives(Allow, Standing)
				r.Configure(opinion(true), true, 0, 0)
				anew(r.ask(curl(known, retry, flagged)))
			})
		})
		t.Run("read_before/"+name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				read := func(q *Request) { q.TaintRead = r.clock().Sub(time.Unix(0, 0)) }
				old := curl(known, both, read)
				time.Sleep(time.Millisecond)
				cleared(r)
				time.Sleep(time.Millisecond)
				first := r.ask(old)
				r.lasts(who(WhoContainer))
				first.gives(Allow, Standing)
				anew(r.ask(curl(known, both, read, retry)))
			})
		})
		t.Run("passed/"+name, func(t *testing.T) { // it is let run, and its taint comes anew before it does
			bubble(t, func(r *rig) {
				r.Configure(reviewer(func(cop.Case) (cop.Opinion, error) { cleared(r); return cop.Opinion{Reason: "harmless"}, nil }), true, 0, 0)
				secret := func(r *Request) { r.Container.Taint = []string{"secret"} }
				r.ask(curl(asking(wanted), secret)).gives(Allow, Passed)
				r.Configure(opinion(true), true, 0, 0)
				if c := r.ask(curl(agentShell(wanted), secret)); name == "another" {
					c.gives(Allow, Recognised)
				} else {
					c.gives(Allow, SealedRun)
				}
			})
		})
	}
	for name, bits := range map[string][]string{"some": {"secret"}, "all": {"corruption", "secret"}} {
		t.Run("approved/"+name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.ask(curl(known, both)).leaves()
				r.answer(r.one(), true)
				r.wantErr(r.Cleared(bits, everywhere), nil)
				again := r.ask(curl(known, both, retry))
				again.blocks()
				again.cancel()
				synctest.Wait()
				r.crash()
				r.ask(curl(known, both, retry)).blocks()
			})
		})
	}
	t.Run("let_run", func(t *testing.T) {
		p := passed{container: event.Container{ID: "c", Taint: []string{"corruption", "secret"}}}
		p.cleared([]string{"secret"}, func(c event.Container) bool { return c.ID == "d" })
		if !p.serves(event.Container{ID: "c", Taint: []string{"corruption", "secret"}}) {
			t.Error("another container's taint was cleared")
		}
		p.cleared([]string{"secret"}, everywhere)
		if p.serves(event.Container{ID: "c", Taint: []string{"secret"}}) || !p.serves(event.Container{ID: "c", Taint: []string{"corruption"}}) {
			t.Error("it serves what came anew, or not what is left")
		}
	})
}

// What is drawn for an asker who has gone goes back.
func TestStandingForWhoHasGone(t *testing.T) {
	bubble(t, func(r *rig) {
		ctx, cancel := context.WithCancel(context.Background())
		first := r.ask(curl(known))
		a, err := CheckRequest(curl(known))
		r.wantErr(err, nil)
		w, _ := r.queue.enter(a)
		if w == nil {
			t.Fatal("nobody waits")
		}
		s := r.lasts(who(WhoContainer))
		first.gives(Allow, Standing)
		cancel()
		if v := r.queue.await(ctx, w); v.Decision != Deny {
			t.Errorf("%+v", v)
		}
		if got := r.Standing()[0]; got.ID != s.ID || got.Left != got.Bytes-64<<20 {
			t.Errorf("%d of %d are left", got.Left, got.Bytes)
		}
	})
}

// One answer is for everybody who waits for what it covers, and for nobody else.
func TestStandingServesThoseWhoWait(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.ask(curl(known))
		second := r.ask(curl(known, retry, func(r *Request) { r.Process.Argv, r.Process.ArgvHash = []string{"curl", "other"}, 8 }))
		third := r.ask(curl(known, retry, retry, func(r *Request) { r.Destination.Port = 80 }))
		if n := len(r.Pending()); n != 3 {
			t.Fatal(n, "questions")
		}
		s := r.lasts()
		first.gives(Allow, Standing)
		second.gives(Allow, Standing)
		third.blocks()
		if p := r.Pending(); len(p) != 1 || p[0].Destination.Port != 80 {
			t.Errorf("pending: %+v", p)
		}
		ended, err := r.Ended(10)
		r.wantErr(err, nil)
		for _, q := range ended {
			if q.Outcome != Approved || q.Standing != s.ID || q.By != "alice" || q.For != "30m" {
				t.Errorf("%+v", q)
			}
		}
		if len(ended) != 2 {
			t.Error(len(ended), "ended")
		}
	})
}

// What cannot be written or stored is not given, and the question stays.
func TestStandingNeedsLogAndDisk(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.ask(curl(known))
		q := r.Pending()[0]
		reply := Reply{Allow: true, By: "alice", For: "30m", Who: WhoProgram}
		given, err := q.StandingBy(reply)
		r.wantErr(err, nil)
		reply.Adds = given.Adds
		r.log.setFail(full)
		if _, err := r.Answer(q.ID, reply); !errors.Is(err, errFull) {
			t.Error(err)
		}
		r.log.setFail(nil)
		first.blocks()
		r.wantErr(r.o.DB.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(standingBucket)) }), nil)
		if _, err := r.Answer(q.ID, reply); !errors.Is(err, errNoBucket) {
			t.Error(err)
		}
		first.blocks()
		if len(r.Standing()) != 0 {
			t.Error("it was given")
		}
		if e := r.last(); e.Approval == nil || e.Approval.End != event.NotStored {
			t.Errorf("told: %+v", e)
		}
	})
}

// A use that cannot be written or stored lets nobody out.
func TestStandingUseNeedsLog(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.ask(curl(known))
		r.lasts()
		first.gives(Allow, Standing)
		r.log.setFail(func(e event.Event) error {
			if e.Verdict != nil && e.Verdict.Reason == string(Standing) {
				return errFull
			}
			return nil
		})
		r.ask(curl(known, retry)).blocks()
	})
}

// Neither a denied process, nor a sealed container, nor one without an approver goes out by it.
func TestStandingIsNotForTheDenied(t *testing.T) {
	bubble(t, func(r *rig) {
		denied := r.ask(curl(known))
		r.answer(r.one(), false)
		denied.gives(Deny, Denied)
		other := r.ask(curl(known, retry, retry, func(r *Request) { r.Process.Argv, r.Process.ArgvHash = []string{"curl", "x"}, 8 }))
		r.lasts()
		other.gives(Allow, Standing)
		r.ask(curl(known)).gives(Deny, Denied)
		r.ask(curl(known, retry, mode(modeSeal))).gives(Deny, Sealed)
		r.Configure(nil, false, 0, 0)
		r.ask(curl(known, retry)).gives(Deny, NoApprover)
	})
}

// A question for names, of a tool or of a command is answered once.
func TestStandingIsForConnections(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"names": func(r *Request) {
			r.Destination = event.Destination{Address: "192.0.2.53", Port: 53, Protocol: "udp", DNS: true}
		},
		"a command": func(r *Request) { r.Ask, r.Command = Command, "curl https://example.org" },
	} {
		bubble(t, func(r *rig) {
			r.ask(curl(known, change)).blocks()
			if _, err := r.Answer(r.one(), Reply{Allow: true, By: "alice", For: "30m"}); !errors.Is(err, ErrStanding) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A stored approval that cannot be read lets nobody out, and the others stay.
func TestStandingBroken(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.ask(curl(known))
		s := r.lasts()
		first.gives(Allow, Standing)
		r.wantErr(r.o.DB.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(standingBucket))
			return errors.Join(b.Put([]byte("zzz999"), []byte(`{"id":"zzz999","who":"process","for":"session"}`)), b.Put([]byte("zzz998"), []byte(`{`)))
		}), nil)
		r.crash()
		if list := r.Standing(); len(list) != 1 || list[0].ID != s.ID {
			t.Errorf("%+v", list)
		}
		if !slices.Equal([]string{"process", "program", "container"}, []string{WhoProcess, WhoProgram, WhoContainer}) {
			t.Error("the words of the schema")
		}
	})
}

// An agent's hook is not asked about a command that only goes where an approval for longer is for: the command runs sealed, and its connection
// is judged. A command that says more, or that an approval for a process is no word on, is asked about.
func TestStandingAtTheHook(t *testing.T) {
	const url = "curl -sS https://pypi.org/x"
	for _, c := range []struct {
		name, who, text string
		change          func(*Request)
		runs            bool
	}{
		{"the place", WhoProgram, url, nil, true},
		{"for everybody", WhoContainer, url, nil, true},
		{"twice", WhoContainer, url + "; curl https://pypi.org/y", nil, true},
		{"for a process", WhoProcess, url, nil, false},
		{"another port", WhoContainer, "curl http://pypi.org/x", nil, false},
		{"another place", WhoContainer, "curl https://evil.example/x", nil, false},
		{"another place, too", WhoContainer, url + "; curl https://evil.example/x", nil, false},
		{"no place", WhoContainer, "make deps", nil, false},
		{"a push", WhoContainer, url, func(r *Request) { r.Person = true }, false},
		{"more taint", WhoContainer, url, func(r *Request) { r.Container.Taint = []string{"corruption", "secret"} }, false},
		{"another container", WhoContainer, url, func(r *Request) { r.Container.ID = "c2" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				first := r.ask(curl(known, func(r *Request) { r.Destination.Name, r.Destination.Address = "pypi.org", "198.18.0.1" }))
				s := r.lasts(who(c.who))
				r.Return(s.ID, first.gives(Allow, Standing).Open.Bytes)
				ask := r.ask(curl(retry, func(r *Request) {
					r.Ask, r.Command = Command, c.text
					if c.change != nil {
						c.change(r)
					}
				}))
				if !c.runs {
					ask.blocks()
					return
				}
				if v := ask.gives(Allow, SealedRun); v.Question != s.ID || v.By != "" || v.Open != nil {
					t.Errorf("%+v", v)
				}
				if got := r.Standing()[0]; got.Uses != 1 || got.Left != got.Bytes {
					t.Errorf("it took something: %+v", got)
				}
				wget := curl(known, retry, retry, func(r *Request) { r.Process.Argv, r.Process.Exe.Inode = []string{"wget", "https://pypi.org/x"}, 43 })
				if c.who == WhoProgram { // nor is the command remembered as let out
					r.ask(wget).blocks()
				}
			})
		})
	}
}
