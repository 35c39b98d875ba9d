package fleet

import (
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/policy"
)

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if _, err := NewKey(file); err != nil {
		t.Fatal(err)
	}
	key, err := ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestOpen: a statement counts for whom its key is, where and while it says, and for what that person may.
func TestOpen(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	key, other := newKey(t), newKey(t)
	answer := Statement{Node: "n1", Signed: now, Expires: now.Add(5 * time.Minute), Question: "abc234", Answer: Approve, Shown: "hash", Scope: 2}
	seal := Statement{Node: "weir/*", Signed: now, Expires: now.Add(MostSeal), Mode: "seal"}
	policyOrder := Statement{Node: "weir/*", Signed: now, Expires: now.Add(MostPolicy), Policy: "version: 1\n"}
	forget := Statement{Node: "weir/*", Signed: now, Expires: now.Add(MostForget), Forget: "agent a1"}
	for name, c := range map[string]struct {
		of     Statement
		change func(*Statement, *policy.Fleet)
		wrong  string // empty: it counts
	}{
		"as it is": {of: answer},
		"a seal":   {of: seal},
		"a mode": {of: seal, change: func(s *Statement, p *policy.Fleet) {
			s.Mode, s.Expires, p.Operators[0].Roles = "observe", now.Add(time.Hour), []string{"mode"}
		}},
		"a seal by who may set any mode": {of: seal, change: func(_ *Statement, p *policy.Fleet) { p.Operators[0].Roles = []string{"mode"} }},
		"a denial":                       {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Answer, s.Scope, s.Shown = Deny, 0, "" }},

		"a policy": {of: policyOrder},

		"an order to forget": {of: forget},
		"role mode, to forget": {of: forget, change: func(_ *Statement, p *policy.Fleet) {
			p.Operators[0].Roles = []string{"answer", "seal", "mode", "policy"}
		},
			wrong: "alice does not have the role forget"},
		"forgetting for a month":      {of: forget, change: func(s *Statement, _ *policy.Fleet) { s.Expires = now.Add(MostSeal) }, wrong: "longer than 168h"},
		"forgetting and a mode":       {of: forget, change: func(s *Statement, _ *policy.Fleet) { s.Mode = "seal" }, wrong: "neither"},
		"forgetting what has no end":  {of: forget, change: func(s *Statement, _ *policy.Fleet) { s.Forget = strings.Repeat("x", maxIdentity+1) }, wrong: "identity"},
		"forgetting on another fleet": {of: forget, change: func(s *Statement, _ *policy.Fleet) { s.Node = "staging/*" }, wrong: `for the node "staging/*"`},

		"role mode, for a policy": {of: policyOrder, change: func(_ *Statement, p *policy.Fleet) { p.Operators[0].Roles = []string{"answer", "seal", "mode"} },
			wrong: "alice does not have the role policy"},
		"role policy, for a mode":  {of: policyOrder, change: func(s *Statement, _ *policy.Fleet) { s.Policy, s.Mode, s.Expires = "", "observe", now.Add(time.Hour) }, wrong: "does not have the role mode"},
		"a policy for a week":      {of: policyOrder, change: func(s *Statement, _ *policy.Fleet) { s.Expires = now.Add(7 * 24 * time.Hour) }, wrong: "longer than 24h"},
		"a policy and a mode":      {of: policyOrder, change: func(s *Statement, _ *policy.Fleet) { s.Mode = "observe" }, wrong: "neither"},
		"a policy and an answer":   {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Policy = "version: 1" }, wrong: "neither"},
		"a policy of another node": {of: policyOrder, change: func(s *Statement, _ *policy.Fleet) { s.Node = "n2" }, wrong: `for the node "n2"`},

		"another node":              {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Node = "n2" }, wrong: `for the node "n2"`},
		"an answer to all":          {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Node = "weir/*" }, wrong: `for the node "weir/*"`},
		"an order to another fleet": {of: seal, change: func(s *Statement, _ *policy.Fleet) { s.Node = "staging/*" }, wrong: `for the node "staging/*"`},
		"an order to all there are": {of: seal, change: func(s *Statement, _ *policy.Fleet) { s.Node = "*" }, wrong: `for the node "*"`},
		"expired":                   {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Expires = now }, wrong: "counted until"},
		"for too long":              {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Expires = now.Add(MostAnswer + 1) }, wrong: "longer than"},
		"a clock that is a day ahead": {of: answer, change: func(s *Statement, _ *policy.Fleet) {
			s.Signed, s.Expires = now.Add(24*time.Hour), now.Add(24*time.Hour+time.Minute)
		}, wrong: "compare the clocks"},
		"a clock that is a day behind": {of: answer, change: func(s *Statement, _ *policy.Fleet) {
			s.Signed, s.Expires = now.Add(-24*time.Hour), now.Add(-24*time.Hour+time.Minute)
		}, wrong: "compare the clocks"},
		"clocks that differ a little": {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Signed = now.Add(Skew) }},
		"a reason without end":        {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Why = strings.Repeat("x", maxWhy+1) }, wrong: "reason"},
		"without an answer":           {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Answer = "" }, wrong: "neither"},
		"a denial with a scope":       {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Answer = Deny }, wrong: "neither"},
		"both":                        {of: answer, change: func(s *Statement, _ *policy.Fleet) { s.Mode = "observe" }, wrong: "neither"},

		"revoked": {of: answer, change: func(_ *Statement, p *policy.Fleet) { p.Revoked = []string{public(key)} }, wrong: "revoked"},
		"nobody":  {of: answer, change: func(_ *Statement, p *policy.Fleet) { p.Operators = nil }, wrong: "no operator's"},
		"role answer, to seal": {of: seal, change: func(_ *Statement, p *policy.Fleet) { p.Operators[0].Roles = []string{"answer"} },
			wrong: "alice does not have the role mode"},
		"role seal, to answer": {of: answer, change: func(_ *Statement, p *policy.Fleet) { p.Operators[0].Roles = []string{"seal"} },
			wrong: "alice does not have the role answer"},
		"role seal, to open": {of: seal, change: func(s *Statement, _ *policy.Fleet) { s.Mode, s.Expires = "observe", now.Add(time.Hour) },
			wrong: "alice does not have the role mode"},
		"an opening for a month": {of: seal, change: func(s *Statement, p *policy.Fleet) {
			s.Mode, p.Operators[0].Roles = "observe", []string{"mode"}
		}, wrong: "longer than 1h"},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy.Fleet{Prefix: "weir", Operators: []policy.Operator{{Name: "alice", Key: public(key), Roles: []string{"answer", "seal"}}, {Name: "bob", Key: public(other), Roles: []string{"answer", "seal", "mode"}}}}
			if c.of.Policy != "" {
				p.Operators[0].Roles = []string{"policy"}
			}
			if c.of.Forget != "" {
				p.Operators[0].Roles = []string{"forget"}
			}
			s := c.of
			if c.change != nil {
				c.change(&s, &p)
			}
			signed, err := Sign(key, s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Open(signed, p, "n1", now)
			if c.wrong == "" && (err != nil || got.By != "alice") || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("%+v, error %v, want %q", got, err, c.wrong)
			}
		})
	}
	// Whatever is changed on the way, nothing is left.
	p := policy.Fleet{Prefix: "weir", Operators: []policy.Operator{{Name: "alice", Key: public(key), Roles: []string{"answer"}}, {Name: "bob", Key: public(other), Roles: []string{"answer"}}}}
	for name, change := range map[string]func(*control.Signed){
		"node":          func(s *control.Signed) { s.Statement = strings.Replace(s.Statement, "n1", "n2", 1) },
		"question":      func(s *control.Signed) { s.Statement = strings.Replace(s.Statement, "abc234", "abc235", 1) },
		"scope":         func(s *control.Signed) { s.Statement = strings.Replace(s.Statement, `"scope":2`, `"scope":3`, 1) },
		"text":          func(s *control.Signed) { s.Statement = strings.Replace(s.Statement, "hash", "hush", 1) },
		"expiry":        func(s *control.Signed) { s.Statement = strings.Replace(s.Statement, "12:05", "12:55", 1) },
		"answer":        func(s *control.Signed) { s.Statement = strings.Replace(s.Statement, "approve", "deny", 1) },
		"a blank more":  func(s *control.Signed) { s.Statement += " " },
		"key":           func(s *control.Signed) { s.Key = public(other) },
		"signature":     func(s *control.Signed) { s.Signature = base64.StdEncoding.EncodeToString(make([]byte, 64)) },
		"no signature":  func(s *control.Signed) { s.Signature = "" },
		"not base64":    func(s *control.Signed) { s.Signature = "?" },
		"another's own": func(s *control.Signed) { *s, _ = Sign(newKey(t), answer) },
		"bare": func(s *control.Signed) {
			s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(s.Statement)))
		},
	} {
		signed, err := Sign(key, answer)
		if err != nil {
			t.Fatal(err)
		}
		was := signed
		change(&signed)
		if signed == was {
			t.Errorf("%s: nothing was changed", name)
		}
		if got, err := Open(signed, p, "n1", now); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := Open(was, p, "n1", now); err != nil {
			t.Errorf("%s: as it was: %v", name, err)
		}
	}
}

// The policy's name counts before NODE_NAME, and that before the host's.
func TestNode(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ policy, environment, want string }{{"a", "b", "a"}, {"", "b", "b"}, {"", "", host}, {"", "no name", ""}} {
		t.Setenv("NODE_NAME", c.environment)
		if got, err := Node(policy.Fleet{Node: c.policy}); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}
