package fleet

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/policy"
)

// FuzzOpen: of what comes over the link nothing counts that its key has not signed; and of what that signed, only what is for this node, for now, and for
// what the person may.
func FuzzOpen(f *testing.F) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	f.Add(`{"node":"n1","signed":"2026-11-26T12:00:00Z","expires":"2026-11-26T12:05:00Z","question":"abc234","answer":"approve"}`, "x", "y")
	f.Add(`{"node":"weir/*","signed":"2026-11-26T12:00:00Z","expires":"2026-12-26T12:00:00Z","mode":"seal"}`, "", "")
	f.Add(`{"node":"n1","node":"n2","signed":"2026-11-26T12:00:00Z","expires":"2026-11-26T12:05:00Z","mode":"observe"}`, "", "")
	f.Add(`{"node":"weir/*","signed":"2026-11-26T12:00:00Z","expires":"2026-11-27T12:00:00Z","policy":"mode: observe"}`, "", "")
	f.Add(`{"Node":"n1"} {}`, "?", "AAAA")
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	p := policy.Fleet{Prefix: "weir", Operators: []policy.Operator{{Name: "alice", Key: public(key), Roles: []string{policy.RoleAnswer, policy.RoleSeal}}}}
	f.Fuzz(func(t *testing.T, text, signature, other string) {
		if s, err := Open(control.Signed{Key: public(key), Statement: text, Signature: signature}, p, "n1", now); err == nil {
			t.Fatalf("not signed: %+v", s)
		}
		signed := control.Signed{Key: public(key), Statement: text, Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(purpose+text)))}
		if changed := (control.Signed{Key: signed.Key, Statement: other, Signature: signed.Signature}); other != text {
			if s, err := Open(changed, p, "n1", now); err == nil {
				t.Fatalf("signed was %q: %+v", text, s)
			}
		}
		s, err := Open(signed, p, "n1", now)
		if err != nil {
			return
		}
		most := MostAnswer
		if s.Mode != "" {
			most = MostSeal
		}
		switch {
		case s.By != "alice" || s.Policy != "" || (s.Mode == "") == (s.Question == "") || s.Mode != "" && s.Mode != string(policy.Seal) || s.Mode == "" && s.Answer != Approve && s.Answer != Deny,
			s.Node != "n1" && (s.Mode == "" || s.Node != "weir/*"), !s.Expires.After(now), s.Signed.After(now.Add(Skew)), s.Expires.Sub(s.Signed) > most, len(s.Why) > maxWhy:
			t.Fatalf("%+v counts", s)
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		signed.Statement, signed.Signature = string(again), base64.StdEncoding.EncodeToString(ed25519.Sign(key, append([]byte(purpose), again...)))
		if len(again) > maxStatement {
			return
		}
		if same, err := Open(signed, p, "n1", now); err != nil || !same.Signed.Equal(s.Signed) || !same.Expires.Equal(s.Expires) || same.Question != s.Question || same.Shown != s.Shown || same.Scope != s.Scope {
			t.Fatalf("written anew it is %+v, %v; was %+v", same, err, s)
		}
	})
}
