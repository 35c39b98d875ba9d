package gate

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"weir/internal/event"
)

// G9: a verdict that nobody filled in denies.
func TestZeroVerdictDeniesG9(t *testing.T) {
	var v Verdict
	if v.Decision != Deny || v.Event().Decision != "deny" {
		t.Fatalf("Verdict{} is %v", v.Decision)
	}
	if Connect != 0 {
		t.Fatal("the zero Ask is not the hardest one")
	}
}

// G4, G9, G24, G25: what is decided without a person.
func TestDecideAtOnce(t *testing.T) {
	clean := func(r *Request) { r.Container.Taint = nil }
	run := func(r *Request) { r.Ask, r.Held = Run, false }
	quic := func(r *Request) { r.Destination.Protocol = "udp" }
	tests := []struct {
		name       string
		noApprover bool
		request    Request
		decision   Decision
		reason     Reason
		events     []string
	}{
		{"G4 untainted connect", false, curl(clean), Allow, Untainted, nil},
		{"G4 untainted run", false, curl(clean, run), Allow, Untainted, nil},
		{"G4 untainted without approver", true, curl(clean), Allow, Untainted, nil},
		{"G4 untainted and unknown mode", false, curl(clean, mode("?")), Allow, Untainted, nil},
		{"G25 tainted run", false, curl(run), Allow, SealedRun, nil},
		{"G25 tainted run without approver", true, curl(run), Allow, SealedRun, nil},
		{"G24 tainted run in seal mode sends nothing", false, curl(run, mode(modeSeal)), Allow, SealedRun, nil},
		{"run in observe mode", false, curl(run, mode(modeObserve)), Allow, Observe, nil},
		{"no approver", true, curl(), Deny, NoApprover, []string{"connect deny no_approver"}},
		{"an unknown taint bit is taint", true, curl(run, func(r *Request) { r.Container.Taint = []string{"later"} }), Allow, SealedRun, nil},
		{"QUIC", false, curl(quic), Deny, QUIC, []string{"connect deny quic"}},
		{"QUIC by number", false, curl(func(r *Request) { r.Destination.Protocol = "17" }), Deny, QUIC, []string{"connect deny quic"}},
		{"QUIC in capitals", false, curl(func(r *Request) { r.Destination.Protocol = "UDP" }), Deny, QUIC, []string{"connect deny quic"}},
		{"seal", false, curl(mode(modeSeal)), Deny, Sealed, []string{"connect deny sealed"}},
		{"seal without taint", false, curl(clean, mode(modeSeal)), Deny, Sealed, []string{"connect deny sealed"}},
		{"observe", false, curl(mode(modeObserve)), Allow, Observe, []string{"connect allow observe"}},
		{"observe QUIC", false, curl(quic, mode(modeObserve)), Allow, Observe, []string{"connect allow observe"}},
		{"observe without approver", true, curl(mode(modeObserve)), Allow, Observe, []string{"connect allow observe"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.Configure(nil, !tt.noApprover, 0, 0)
				r.ask(tt.request).gives(tt.decision, tt.reason)
				r.wantEvents(tt.events...)
				r.wantCount(tt.reason, 1)
				r.none()
			})
		})
	}
}

// G9: a request that does not say who wants what is a denial with its own reason.
func TestDecideMalformedG9(t *testing.T) {
	tests := []struct {
		name string
		f    func(*Request)
	}{
		{"no container", func(r *Request) { r.Container.ID = "" }},
		{"no container and no taint", func(r *Request) { r.Container = event.Container{} }},
		{"everything empty", func(r *Request) { *r = Request{} }},
		{"unknown mode", mode("Observe")},
		{"unknown ask", func(r *Request) { r.Ask = 7 }},
		{"no pid", func(r *Request) { r.Process.PID = 0 }},
		{"no start time", func(r *Request) { r.Process.Start = 0 }},
		{"no destination", func(r *Request) { r.Destination = event.Destination{} }},
		{"no address", func(r *Request) { r.Destination.Address = "" }},
		{"a name for an address", func(r *Request) { r.Destination.Address = "example.org" }},
		{"no protocol", func(r *Request) { r.Destination.Protocol = "" }},
		{"tcp without port", func(r *Request) { r.Destination.Port = 0 }},
		{"Unix socket without path", func(r *Request) { r.Destination = event.Destination{Protocol: "unix"} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.ask(curl(tt.f)).gives(Deny, Malformed)
				r.wantEvents("connect deny malformed")
				r.wantCount(Malformed, 1)
				r.none()
			})
		})
	}
}

// Observe writes what enforce would have done.
func TestObserveTells(t *testing.T) {
	tests := []struct {
		name string
		r    Request
		want string
	}{
		{"question", curl(mode(modeObserve)), "unless the reviewer or a person had"},
		{"QUIC", curl(mode(modeObserve), func(r *Request) { r.Destination.Protocol = "udp" }), "denied (quic)"},
		{"malformed", curl(mode(modeObserve), func(r *Request) { r.Process.PID = 0 }), "denied (malformed)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				v := r.ask(tt.r).gives(Allow, Observe)
				if !strings.Contains(v.Text, tt.want) || r.log.events[0].Verdict.Text != v.Text {
					t.Errorf("text is %q, logged %q; want %q in both", v.Text, r.log.events[0].Verdict.Text, tt.want)
				}
			})
		})
	}
}

// G4: without taint neither the store nor the log is touched.
func TestUntaintedTouchesNothingG4(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.setFail(full)
		r.o.DB.Close()
		r.Gate.mu.Lock() // not even the lock
		defer r.Gate.mu.Unlock()
		r.ask(curl(func(r *Request) { r.Container.Taint = nil })).gives(Allow, Untainted)
	})
}

// G9: each reason has its counter from the start.
func TestEveryReasonHasARowG9(t *testing.T) {
	bubble(t, func(r *rig) {
		for _, reason := range []Reason{
			Untainted, Observe, SealedRun, Approved, Denied, Timeout, Sealed, QUIC, NoApprover, QueueFull,
			StoreFailed, LogFailed, Malformed, Cancelled, UsedOnce, ArgvLimit, Unclaimed,
		} {
			n, ok := r.Counters()[reason]
			if !ok || n != 0 {
				t.Errorf("counter %s: %d, %v; want 0, true", reason, n, ok)
			}
			if strings.ToLower(string(reason)) != string(reason) || strings.ContainsAny(string(reason), " -") {
				t.Errorf("reason %q is no code", reason)
			}
		}
	})
}

func TestOpenRefusesBadOptions(t *testing.T) {
	bubble(t, func(r *rig) {
		for name, change := range map[string]func(*Options){
			"no database":          func(o *Options) { o.DB = nil },
			"no event log":         func(o *Options) { o.Log = nil },
			"negative limit":       func(o *Options) { o.AskFor = -1 },
			"pending -1":           func(o *Options) { o.MaxPending = -1 },
			"store of questions: ": func(o *Options) { o.DB = closedDB(t) },
		} {
			o := r.o
			change(&o)
			_, err := Open(o)
			if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(name, ": ")) {
				t.Errorf("%s: error is %v", name, err)
			}
		}
	})
}

func closedDB(t *testing.T) *bbolt.DB {
	db, err := bbolt.Open(t.TempDir()+"/closed.db", 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	return db
}

// The clock is the caller's: a deadline passes when it says so.
func TestInjectedClock(t *testing.T) {
	bubble(t, func(r *rig) {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		r.Close()
		r.o.Now = func() time.Time { return now }
		r.o.AskFor = 10 * time.Second
		g, err := Open(r.o)
		if err != nil {
			t.Fatal(err)
		}
		r.Gate = g
		c := r.ask(curl())
		p := r.Pending()
		if len(p) != 1 || !p[0].Asked.Equal(now) || !p[0].Deadline.Equal(now.Add(10*time.Second)) {
			t.Fatalf("pending: %+v", p)
		}
		now = now.Add(10*time.Second - 1)
		r.one()
		c.blocks()
		now = now.Add(1)
		r.none()
		c.gives(Deny, Timeout)
	})
}

// A question is complete, and survives JSON.
func TestQuestionShape(t *testing.T) {
	bubble(t, func(r *rig) {
		c := r.ask(curl(unheld))
		q := r.Pending()[0]
		if len(q.ID) != 6 || strings.Trim(q.ID, "abcdefghjkmnpqrstuvwxyz23456789") != "" {
			t.Errorf("id is %q", q.ID)
		}
		data, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"state":"pending"`, `"askers":1`, `"held":false`, `"argv":["curl","https://example.org"]`, `"address":"203.0.113.9"`} {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s is not in %s", want, data)
			}
		}
		h := r.log.events[0]
		if h.Kind != event.Hold || h.Question != q.ID || h.Process.PID != 100 || h.Destination.Port != 443 || h.Container.ID != "c1" || h.Verdict != nil || h.Message == "" {
			t.Errorf("hold event: %+v", h)
		}
		r.answer(q.ID, true)
		v := c.gives(Allow, Approved)
		if v.Question != q.ID || v.By != "alice" || v.Text != "alice approved: because" {
			t.Errorf("verdict: %+v", v)
		}
	})
}

// A request that the caller changes afterwards changes no question.
func TestQuestionIsACopy(t *testing.T) {
	bubble(t, func(r *rig) {
		req := curl()
		c := r.ask(req)
		req.Process.Argv[0], req.Process.Exe.Inode, req.Container.Taint[0] = "wget", 1, "none"
		q := r.Pending()[0]
		if q.Process.Argv[0] != "curl" || q.Process.Exe.Inode != 42 || q.Container.Taint[0] != "corruption" {
			t.Errorf("question changed: %+v", q)
		}
		c.leaves()
	})
}

// An asker that is gone before it asked leaves no question.
func TestDecideWithEndedContext(t *testing.T) {
	bubble(t, func(r *rig) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if v := r.Decide(ctx, curl()); v.Decision != Deny || v.Reason != Cancelled {
			t.Errorf("verdict: %+v", v)
		}
		r.none()
	})
}
