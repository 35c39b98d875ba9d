package daemon

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/dns"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/taint"
)

// A grant by an approval that goes on, and what can be claimed of it later, are over when the approval is.
func TestStandingTerms(t *testing.T) {
	root := &event.Member{PID: 90, Start: 1}
	for name, c := range map[string]struct {
		open          gate.Opening
		root          *event.Member
		held          bool
		opens, claims time.Duration
	}{
		"who waits":                     {gate.Opening{For: time.Minute, Left: time.Hour}, nil, true, time.Minute, 0},
		"who does not wait":             {gate.Opening{For: time.Minute, Left: time.Hour}, nil, false, time.Minute, time.Minute},
		"who does not wait, at its end": {gate.Opening{For: 40 * time.Second, Left: 40 * time.Second}, nil, false, 20 * time.Second, 20 * time.Second},
		"without a time":                {gate.Opening{For: time.Minute}, nil, false, time.Minute, time.Minute},
		"below a process":               {gate.Opening{For: time.Hour, Left: time.Hour}, root, false, time.Hour, 0},
	} {
		v := gate.Verdict{Open: &c.open, Root: c.root}
		got := standingTerms(termsOf(policy.Default(), v, c.held), v)
		if got.For != c.opens || got.ClaimFor != c.claims {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// F07: an approval is for the taint that the kernel had when it was given, also where the daemon hears of that later, and ends with the next bit; and
// with its container, though another is made under its name at once.
func TestStandingEnds(t *testing.T) {
	for name, end := range map[string]func(*compared, *box){
		"taint": func(c *compared, b *box) { c.set(taint.Change{Container: b.id, Bits: taint.Corruption}, false) },
		"container": func(c *compared, b *box) {
			c.remake(b)
			c.tend()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCompared(t, 1, map[string]int{})
				defer c.close()
				b, ctx := c.boxes[0], t.Context()
				c.kernel.Taint(b.cgroup, taint.Secret)
				go c.gate.Decide(ctx, gate.Request{
					Container: c.processes.Container(b.cgroup, taint.Secret), Process: b.processes[0].event, Destination: event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"},
					GrantSeconds: 60, GrantBytes: 1000,
				})
				synctest.Wait()
				q := c.gate.Pending()[0]
				r := gate.Reply{Allow: true, By: "alice", For: gate.ForSession, Who: gate.WhoContainer}
				shown, err := q.StandingBy(r)
				c.must(err)
				r.Adds = shown.Adds
				_, err = c.Answer(ctx, q.ID, r)
				c.must(err)
				c.set(taint.Change{Container: b.id, Bits: taint.Secret, InKernel: true}, false)
				c.tend()
				if len(c.gate.Standing()) != 1 {
					t.Error("it ended with taint that it was given for")
				}
				if end(c, b); len(c.gate.Standing()) != 0 {
					t.Errorf("%+v", c.gate.Standing())
				}
			})
		})
	}
}

// What another verdict has opened since is not given back to an approval.
func TestDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompared(t, 1, map[string]int{})
		defer c.close()
		d, g := c.daemon, netegress.Grant{ID: 7}
		granted := func(v gate.Verdict) {
			terms, err := d.terms(netegress.Ask{Held: true}, gate.Request{}, v)
			c.must(err)
			terms.Granted(g) // by the grant itself, which cannot end meanwhile
		}
		granted(gate.Verdict{Reason: gate.Standing, Question: "abc234", Open: &gate.Opening{From: "abc234", Bytes: 10}})
		if got := d.drawn[7]; got != (drawn{"abc234", 10}) {
			t.Errorf("%+v", got)
		}
		granted(gate.Verdict{Reason: gate.Passed})
		if len(d.drawn) != 0 {
			t.Errorf("%+v", d.drawn)
		}
	})
}

// B159: a grant whose bytes are set anew gives back what it had left of those that it drew before, and no more than it drew.
func TestB159DrawnAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompared(t, 1, map[string]int{})
		defer c.close()
		b := c.boxes[0]
		c.kernel.Taint(b.cgroup, taint.Secret)
		ask := gate.Request{
			Container: c.processes.Container(b.cgroup, taint.Secret), Process: b.processes[0].event, Destination: event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"},
			GrantSeconds: 60, GrantBytes: 1000,
		}
		first := make(chan gate.Verdict, 1)
		go func() { first <- c.gate.Decide(t.Context(), ask) }()
		synctest.Wait()
		r := gate.Reply{Allow: true, By: "alice", For: gate.ForSession, Who: gate.WhoContainer}
		shown, err := c.gate.Pending()[0].StandingBy(r)
		c.must(err)
		r.Adds = shown.Adds
		_, err = c.Answer(t.Context(), c.gate.Pending()[0].ID, r)
		c.must(err)
		left := func(want int64) {
			t.Helper()
			synctest.Wait()
			if got := c.gate.Standing()[0].Left; got != want {
				t.Errorf("%d bytes are left, want %d", got, want)
			}
		}
		c.draws(netegress.Grant{ID: 7}, <-first)
		left(3000)
		c.draws(netegress.Grant{ID: 7, Before: 700}, c.gate.Decide(t.Context(), ask))
		left(2700)
		c.draws(netegress.Grant{ID: 7, Before: 5000}, gate.Verdict{Reason: gate.Approved})
		left(3700)
	})
}

// An open address that stands for a name which nobody knows any more may be that of a revoked approval.
func TestLeads(t *testing.T) {
	d := &daemon{dns: &dns.Redirect{}}
	for name, c := range map[string]struct {
		open string
		to   event.Destination
		want bool
	}{
		"the address":        {"192.0.2.1", event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"}, true},
		"another":            {"192.0.2.2", event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"}, false},
		"a forgotten name":   {"198.18.0.1", event.Destination{Name: "pypi.org", Address: "198.18.0.9", Port: 443, Protocol: "tcp"}, true},
		"one, another port":  {"198.18.0.1", event.Destination{Name: "pypi.org", Address: "198.18.0.9", Port: 80, Protocol: "tcp"}, false},
		"no name's address":  {"192.0.2.1", event.Destination{Name: "pypi.org", Address: "198.18.0.9", Port: 443, Protocol: "tcp"}, false},
		"for an address now": {"198.18.0.1", event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"}, false},
	} {
		open := netegress.Destination{Addr: netip.MustParseAddr(c.open), Port: 443, Proto: unix.IPPROTO_TCP}
		if got := d.leads(7, open, c.to); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
