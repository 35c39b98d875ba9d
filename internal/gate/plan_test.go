package gate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"weir/internal/cop"
	"weir/internal/event"
)

// anything makes a request out of all that the plan looks at, also what is malformed. Each has a container of its own: nothing was let run before.
func anything(rnd *rand.Rand, n int) Request {
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	half := func() bool { return rnd.IntN(2) == 0 }
	rarely := func() bool { return rnd.IntN(12) == 0 }
	commands := [][]string{{"curl", "https://example.org"}, {"cat", "/etc/passwd"}, {"make", "all"}, {"sh", "-c", "ls | wc"}, {"git", "push"}, {"python3", "x.py"}, nil}
	argv := commands[rnd.IntN(len(commands))]
	r := curl(func(r *Request) {
		r.Container.ID, r.Container.Taint = fmt.Sprint("c", n), [][]string{nil, {"secret"}, {"corruption"}, {"corruption", "secret"}}[rnd.IntN(4)]
		r.Mode = one(modeEnforce, modeEnforce, modeEnforce, modeSeal, modeObserve, "", "off")
		r.Ask, r.Held = Ask(rnd.IntN(4)), half()
		r.Process.Argv = argv
		if len(argv) > 0 {
			r.Process.Exe.Path = "/usr/bin/" + argv[0]
		}
		r.Destination = event.Destination{Address: one("203.0.113.9", "203.0.113.9", "2001:db8::1", "nowhere"), Port: 443, Protocol: one("tcp", "tcp", "udp", "")}
		r.AskFlagged, r.Person, r.ReviewExec = half(), rarely(), half()
		r.Process.Truncated, r.Process.EnvCut = rarely(), rarely()
		r.Process.Exe.Memfd = rarely()
	})
	if r.Ask == Command || r.Ask == Tool {
		r.Command = one("curl https://example.org", "ls -l", "make", "echo 'not closed", " ", "git push origin main", "sh -c \"$X\"")
	}
	if rarely() {
		r.Process.PID = 0
	}
	if rarely() {
		r.Container.ID = ""
	}
	return r
}

// A dry run says of any request what Decide does with it, and asks of whom Decide asks: both walk one plan.
func TestDryRunIsWhatHappens(t *testing.T) {
	const each = 1200
	seen := map[string]int{}
	for name, reviewer := range map[string]Reviewer{
		"none": nil, "passes": opinion(false), "flags": opinion(true), "fails": failing(cop.Server), "is too slow": failing(cop.Timeout),
	} {
		for _, approver := range []bool{true, false} {
			bubble(t, func(r *rig) {
				r.Configure(reviewer, approver, 0, 0)
				rnd := rand.New(rand.NewPCG(uint64(len(name)), 19))
				for n := range each {
					req := anything(rnd, n)
					want := DryRun(t.Context(), req, reviewer, approver)
					c := r.ask(req)
					got := DryRunResult{Step: Person}
					if p := r.Pending(); len(p) > 0 {
						if p[0].Note != "" && p[0].Note != want.Text {
							t.Errorf("the person is told %q, the dry run %q", p[0].Note, want.Text)
						}
						allow := rnd.IntN(2) == 0
						r.answer(p[0].ID, allow)
						if v := <-c.done; (v.Decision == Allow) != allow {
							t.Errorf("answered %t, and got %+v", allow, v)
						}
					} else {
						v := <-c.done
						got = DryRunResult{Step: v.step(), Reason: v.Reason, Text: v.Text}
						if v.Reason == Observe {
							got.Text = want.Text // Decide adds what enforce would have done
						}
						if v.Class != want.Class {
							t.Errorf("class %q, the dry run %q", v.Class, want.Class)
						}
					}
					if got.Step != want.Step || got.Reason != want.Reason || got.Step != Person && got.Text != want.Text {
						t.Errorf("reviewer %s, approver %t:\n%+v\nDecide: %+v\ndry run: %+v", name, approver, req, got, want)
					}
					seen[string(got.Step)+" "+string(got.Reason)]++
					r.none()
				}
			})
		}
	}
	for _, outcome := range []string{
		"person ", "allow untainted", "allow observe", "allow local", "allow sealed_run", "allow review_exec", "allow not_flagged", "deny sealed", "deny flagged", "deny no_approver", "deny malformed", "deny quic",
	} {
		if seen[outcome] < 10 {
			t.Errorf("%q came out %d times only: %v", outcome, seen[outcome], seen)
		}
	}
}
