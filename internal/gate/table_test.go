package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/classify"
	"weir/internal/cop"
	"weir/internal/event"
)

// reviewer is a Cop of the test.
type reviewer func(cop.Case) (cop.Opinion, error)

func (f reviewer) Review(_ context.Context, c cop.Case) (cop.Opinion, error) { return f(c) }

func opinion(flagged bool) reviewer {
	return func(cop.Case) (cop.Opinion, error) { return cop.Opinion{Flagged: flagged, Reason: "for a reason"}, nil }
}

func failing(code cop.Code) reviewer {
	return func(cop.Case) (cop.Opinion, error) {
		return cop.Opinion{Reason: "not an opinion"}, &cop.Error{Code: code, Err: errors.New("failed")}
	}
}

// reviewers are those that a case is tried with; nil is none.
var reviewers = map[string]Reviewer{"passes": opinion(false), "flags": opinion(true), "fails": failing(cop.Timeout), "none": nil}

// ofClass are commands, one of each class.
var ofClass = map[string][]string{"local": {"ls", "-l"}, "network": {"curl", "https://example.org"}, "grey": {"./tool"}}

// situation is everything that a verdict depends on.
type situation struct {
	mode     string
	bits     int
	class    string
	asked    string // connect, seen, held or command
	reviewer string
	person   string // allows, denies, or nobody
	policy   string // what cop.flagged says (F06)
}

func situations() []situation {
	var all []situation
	for _, mode := range modes {
		for bits := range 3 {
			for _, class := range []string{"local", "grey", "network"} {
				for _, asked := range []string{"connect", "seen", "held", "command"} {
					for _, reviewer := range []string{"passes", "flags", "fails", "none"} {
						for _, person := range []string{"allows", "denies", "nobody"} {
							all = append(all, situation{mode, bits, class, asked, reviewer, person, "deny"}, situation{mode, bits, class, asked, reviewer, person, "person"})
						}
					}
				}
			}
		}
	}
	return all
}

func (s situation) request(n int) Request {
	r := curl()
	r.Container.ID = fmt.Sprint("c", n)
	r.Mode, r.Held, r.AskFlagged = s.mode, s.asked != "seen", s.policy == "person"
	r.Container.Taint = []string{"corruption", "secret"}[:s.bits]
	argv := ofClass[s.class]
	r.Process.Argv, r.Process.Exe = argv, &event.File{Path: "/usr/bin/" + argv[0], Device: 8, Inode: 42}
	switch s.asked {
	case "seen", "held":
		r.Ask = Run
	case "command":
		r.Ask, r.Command, r.Held = Command, strings.Join(argv, " "), false
	}
	return r
}

// want is the specification in words of its own: G4 to G9, G24, G25 and the modes.
func (s situation) want() (Decision, Reason) {
	person := func() (Decision, Reason) {
		switch s.person {
		case "allows":
			return Allow, Approved
		case "denies":
			return Deny, Denied
		}
		return Deny, NoApprover
	}
	switch {
	case s.mode == "seal" && s.asked == "connect":
		return Deny, Sealed
	case s.bits == 0:
		return Allow, Untainted
	case s.mode == "observe":
		return Allow, Observe
	case s.class == "local" && s.asked != "connect":
		return Allow, LocalRun
	case s.asked == "seen":
		return Allow, SealedRun
	case s.mode == "seal":
		return Deny, Sealed // F04: nobody is asked
	case s.class == "network" && s.bits == 2:
		return person() // G7
	case s.reviewer == "passes":
		return Allow, Passed // G7, G8
	case s.reviewer == "flags" && s.bits == 1 && s.policy == "deny":
		return Deny, Flagged // G7, G8
	}
	return person() // G8: flagged with both; G9: a review that failed; F06: flagged, and the policy has a person asked
}

// judged has every situation judged, each in a container of its own.
func judged(t *testing.T) map[situation]Verdict {
	all := map[situation]Verdict{}
	bubble(t, func(r *rig) {
		for i, s := range situations() {
			r.Configure(reviewers[s.reviewer], s.person != "nobody", 0, 0)
			c := r.ask(s.request(i))
			if p := r.Pending(); len(p) > 0 {
				r.answer(p[0].ID, s.person == "allows")
			}
			select {
			case all[s] = <-c.done:
			default:
				t.Fatalf("%+v: still waits", s)
			}
		}
	})
	return all
}

// F06: who is asked about a flagged command is told what the reviewer said, and their approval is a person's.
func TestFlaggedF06(t *testing.T) {
	ask := func(r *Request) { r.AskFlagged = true }
	bubble(t, func(r *rig) {
		r.Configure(opinion(true), true, 0, 0)
		c := r.ask(curl(asking(wanted), ask))
		c.blocks()
		if note := r.Pending()[0].Note; !strings.Contains(note, "for a reason") {
			t.Errorf("the note is %q", note)
		}
		r.answer(r.one(), true)
		if v := c.gives(Allow, Approved); v.By != "alice" {
			t.Errorf("by %q", v.By)
		}
		r.ask(curl(asking("nc x.example 1"))).gives(Deny, Flagged) // the default stays
	})
}

// Every row of the table, by what Decide makes of it: G4 to G9, G24, G25.
func TestTableG4G9G24G25(t *testing.T) {
	hit := make([]bool, len(Table()))
	for s, v := range judged(t) {
		d, reason := s.want()
		if v.Decision != d || v.Reason != reason {
			t.Errorf("%+v: %v %s (%s), want %v %s", s, v.Decision, v.Reason, v.Text, d, reason)
		}
		if s.bits > 0 && s.mode == "enforce" && v.Class != s.class {
			t.Errorf("%+v: class %q", s, v.Class)
		}
		r := s.request(0)
		row := rowOf(Table(), s.mode, levelOf(r.Container.Taint), judge(r).Class, pointOf(r))
		hit[slices.IndexFunc(Table(), func(o Row) bool { return cmp.Equal(o, row) })] = true
	}
	for i, row := range Table() {
		if !hit[i] {
			t.Errorf("no situation reaches the row %+v", row)
		}
	}
}

// G9, G10: a taint bit more, a riskier command or a failure never turns a denial
// into an allow. What a person allows is theirs to say.
func TestNothingAddedAllowsG9G10(t *testing.T) {
	riskier := map[string][]string{"local": {"grey", "network"}, "grey": {"network"}}
	fails := map[string][]string{"passes": {"fails", "none"}, "flags": {"fails", "none"}}
	verdicts := judged(t)
	compared := 0
	for s, v := range verdicts {
		var worse []situation
		add := func(change func(*situation)) {
			w := s
			change(&w)
			worse = append(worse, w)
		}
		for bits := s.bits + 1; bits <= 2; bits++ {
			add(func(w *situation) { w.bits = bits })
		}
		for _, class := range riskier[s.class] {
			add(func(w *situation) { w.class = class })
		}
		for _, reviewer := range fails[s.reviewer] {
			add(func(w *situation) { w.reviewer = reviewer })
		}
		for _, w := range worse {
			compared++
			if got := verdicts[w]; v.Decision == Deny && got.Decision == Allow && got.Reason != Approved {
				t.Errorf("%+v is denied, %+v is allowed", s, w)
			}
		}
	}
	if compared < 1000 {
		t.Errorf("compared %d pairs only", compared)
	}
}

// G9: each failure has a row, a reason code, a counter, and what it says happens.
func TestFailuresG9(t *testing.T) {
	one := func(change ...func(*Request)) func(*rig) *call {
		return func(r *rig) *call { return r.ask(curl(change...)) }
	}
	text := func(s string) func(*rig) *call {
		return one(func(r *Request) { r.Ask, r.Held, r.Command = Command, false, s })
	}
	review := func(code cop.Code) func(*rig) *call {
		return func(r *rig) *call {
			r.Configure(failing(code), r.queue.hasApprover(), 0, 0)
			return r.ask(curl())
		}
	}
	tests := map[Reason]func(*rig) *call{
		Unparsable:     text("echo 'not closed"),
		TextLimit:      text(strings.Repeat("(", 3000) + "ls" + strings.Repeat(")", 3000)),
		ArgvLimit:      one(func(r *Request) { r.Process.Truncated = true }),
		CopTimeout:     review(cop.Timeout),
		CopTransport:   review(cop.Transport),
		CopRateLimited: review(cop.RateLimited),
		CopServer:      review(cop.Server),
		CopRefused:     review(cop.Refused),
		CopMalformed:   review(cop.Malformed),
		CopTooLarge:    review(cop.TooLarge),
		CopQueueFull:   review(cop.QueueFull),
		CopClosed:      review(cop.Closed),
		CopCancelled:   review(cop.Cancelled),
		CopFailed:      review(cop.Failed),
		CopNone:        one(),
		Differs: func(r *rig) *call {
			r.Configure(opinion(false), r.queue.hasApprover(), 0, 0)
			approvedRun(r)
			return r.ask(curl(below, func(r *Request) {
				r.Process.Argv = []string{"curl", "-T", "/etc/passwd", "https://example.org"}
			}))
		},
	}
	for _, f := range Failures() {
		if f.Then != Person {
			continue // each has a test of its own
		}
		t.Run(string(f.Reason), func(t *testing.T) {
			provoke, ok := tests[f.Reason]
			if !ok {
				t.Fatal("nothing provokes it")
			}
			failed, what := f.Reason, f.What
			if failed == CopNone {
				failed, what = "", "" // as the policy has it
			}
			bubble(t, func(r *rig) {
				c := provoke(r)
				c.blocks()
				r.wantCount(f.Reason, 1)
				q := r.Pending()[0]
				if f.Reason != CopNone && q.Note == "" {
					t.Error("the person is not told why they are asked")
				}
				r.answer(q.ID, false)
				c.gives(Deny, Denied)
				r.wantFailed(failed, "verdict deny denied")
			})
			// F14: nobody answers, and what has failed is in the last event, in what the asker is told, and after a restart.
			bubble(t, func(r *rig) {
				c := provoke(r)
				r.crash()
				c.gives(Deny, Cancelled)
				time.Sleep(301 * time.Second)
				synctest.Wait()
				r.wantFailed(failed, "verdict deny timeout")
			})
			bubble(t, func(r *rig) {
				c := provoke(r)
				time.Sleep(300 * time.Second)
				if v := c.gives(Deny, Timeout); v.Failed != failed || !strings.Contains(v.Text, what) {
					t.Errorf("the asker is not told: %+v", v)
				}
			})
			bubble(t, func(r *rig) {
				r.Configure(nil, false, 0, 0)
				v := provoke(r).gives(Deny, NoApprover)
				if v.Failed != failed || !strings.Contains(v.Text, what) {
					t.Errorf("the asker is not told: %+v", v)
				}
				r.wantCount(f.Reason, 1)
				r.wantFailed(failed, "deny no_approver")
				r.none()
			})
		})
	}
	for code := range slices.Values(cop.Codes) {
		if !beside(reviewFailed(code)) {
			t.Errorf("%s has no row", code)
		}
	}
}

// wantFailed looks whether the last event of that end says what failed.
func (r *rig) wantFailed(reason Reason, end string) {
	r.t.Helper()
	told := r.log.brief()
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if last := len(told) - 1; last < 0 || !strings.HasSuffix(told[last], end) || r.log.events[last].Verdict.Failed != string(reason) {
		r.t.Errorf("events %q, and the last does not say %s: %+v", told, reason, r.log.events[max(last, 0)].Verdict)
	}
}

// F14: what went well says of no failure.
func TestF14Nothing(t *testing.T) {
	bubble(t, func(r *rig) {
		r.Configure(opinion(true), true, 0, 0)
		c := r.ask(curl(func(r *Request) { r.AskFlagged = true }))
		time.Sleep(300 * time.Second)
		if v := c.gives(Deny, Timeout); v.Failed != "" {
			t.Errorf("%+v", v)
		}
		r.wantFailed("", "verdict deny timeout")
	})
}

// G11: what the Cop is shown comes from the kernel and the parser, and a case of
// a bridge request is the text.
func TestCaseG11(t *testing.T) {
	var got cop.Case
	bubble(t, func(r *rig) {
		r.Configure(reviewer(func(c cop.Case) (cop.Opinion, error) {
			got = c
			return cop.Opinion{Reason: "fine"}, nil
		}), true, 0, 0)
		r.ask(curl(func(r *Request) {
			r.Process.Ancestry = []event.Ancestor{{PID: 9, Comm: "bash", Argv: []string{"bash", "-c", "x"}, Inside: true}, {PID: 1, Comm: "init"}}
			r.Policy, r.Container.Image = "p1", "docker.io/library/alpine:3"
		})).gives(Allow, Passed)
		if got.Destination.Address.String() != "203.0.113.9" || got.Destination.Port != 443 || got.Argv[0] != "curl" || got.Command != "" ||
			!got.Taint.Corruption || got.Taint.Secret || len(got.Ancestry) != 1 || got.Ancestry[0].Argv[2] != "x" || got.Policy != "p1" || got.Container != "agent" || got.Image != "docker.io/library/alpine:3" || len(got.Judged.Facts.Programs) == 0 {
			t.Errorf("shown %+v", got)
		}
		r.ask(curl(func(r *Request) {
			r.Ask, r.Held, r.Command, r.Dir = Command, false, "wget x.example", "/w"
		})).gives(Allow, Passed)
		if got.Command != "wget x.example" || got.Argv != nil || got.Dir != "/w" || got.Destination.Port != 0 {
			t.Errorf("shown %+v", got)
		}
	})
}

// TestF18PersonG22: what a person has to approve is no reviewer's to let go, also with one bit; the other rows stay.
func TestF18PersonG22(t *testing.T) {
	for _, c := range []struct {
		taint []string
		ask   Ask
		class classify.Class
		step  Step
	}{
		{nil, Command, classify.Network, Pass}, {[]string{"secret"}, Command, classify.Network, Person}, {[]string{"corruption"}, Command, classify.Grey, Person}, {[]string{"corruption", "secret"}, Command, classify.Network, Person},
	} {
		r := Request{Ask: c.ask, Mode: modeEnforce, Person: true, Container: event.Container{ID: "x", Taint: c.taint}}
		if got := rowFor(Table(), r, c.class); got.Step != c.step {
			t.Errorf("%v, %v: %v", c.taint, c.class, got.Step)
		}
		r.Person = false
		if got := rowFor(Table(), r, c.class); len(c.taint) == 1 && got.Step != Review {
			t.Errorf("%v, %v without it: %v", c.taint, c.class, got.Step)
		}
	}
	r := Request{Ask: Command, Mode: modeSeal, Person: true, Container: event.Container{ID: "x", Taint: []string{"secret"}}}
	if got := rowFor(Table(), r, classify.Network); got.Step != Refuse {
		t.Errorf("seal: %v", got.Step)
	}
}

// F14: with review: exec the log says in their order that a command is stopped, what failed, and that it is killed.
func TestF14ReviewExec(t *testing.T) {
	bubble(t, func(r *rig) {
		r.Configure(failing(cop.Server), false, 0, 0)
		run := func(r *Request) { r.Ask, r.Destination = Run, event.Destination{} }
		v := r.ask(curl(run, unheld, func(r *Request) { r.ReviewExec = true })).gives(Allow, ReviewExec)
		if v.Event().Reason != "review_exec" || v.Text == "" {
			t.Errorf("%+v", v)
		}
		r.ask(curl(run, unheld)).gives(Allow, SealedRun)
		r.ask(curl(run, unheld, func(r *Request) {
			r.ReviewExec, r.Process.Argv = true, []string{"cat", "/etc/passwd"}
			r.Process.Exe.Path = "/usr/bin/cat"
		})).gives(Allow, LocalRun)
		r.ask(curl(run)).gives(Deny, NoApprover)
		r.wantFailed(CopServer, "verdict deny no_approver")
		if got := r.log.events[0].Message; got != "it is killed before it begins" {
			t.Errorf("message %q", got)
		}
	})
}
