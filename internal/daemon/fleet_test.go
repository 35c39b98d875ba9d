package daemon

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/gate"
	"weir/internal/notify"
	"weir/internal/policy"
	"weir/internal/taint"
)

// asker is a daemon without a kernel, whose gate people answer from elsewhere.
type asker struct {
	*daemon
	t      testing.TB
	db     string
	events <-chan event.Event
	alice  ed25519.PrivateKey
	bob    ed25519.PrivateKey
}

func newAsker(t *testing.T) *asker { return newNode(t, "n1") }

func newNode(t testing.TB, name string) *asker {
	t.Helper()
	a := &asker{t: t, db: t.TempDir()}
	p := policy.Default()
	p.Fleet.Node = name
	p.Events.File = filepath.Join(t.TempDir(), "events.jsonl")
	sink, err := event.NewFileSink(p.Events.File, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	for i, key := range []*ed25519.PrivateKey{&a.alice, &a.bob} {
		name := []string{"alice", "bob"}[i]
		file := filepath.Join(t.TempDir(), name)
		public, err := fleet.NewKey(file)
		if err == nil {
			*key, err = fleet.ReadKey(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Fleet.Operators = append(p.Fleet.Operators, policy.Operator{Name: name, Key: public, Roles: []string{policy.RoleAnswer, policy.RoleMode}})
	}
	db, err := OpenStore(a.db)
	if err != nil {
		t.Fatal(err)
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	a.daemon = &daemon{log: newEventLog(sink), policies: newActivePolicy(p), state: new(taint.State)}
	if a.daemon.memory, err = openMemory(db); err != nil {
		t.Fatal(err)
	}
	if a.gate, err = gate.Open(gate.Options{DB: db, Log: a.log, Logger: logger, Approver: true, Two: a.wantsTwo}); err != nil {
		t.Fatal(err)
	}
	events, done := a.log.Subscribe(100)
	a.events = events
	t.Cleanup(func() { done(); a.gate.Close(); db.Close(); a.log.Flush() })
	return a
}

// ask asks whether a program may connect, and returns the question and where the verdict comes.
func (a *asker) ask(argv ...string) (gate.Question, <-chan gate.Verdict) {
	a.t.Helper()
	verdict := make(chan gate.Verdict, 1)
	process := event.Process{PID: 100, Start: 1, UID: 1000, Comm: argv[0], Exe: &event.File{Path: "/usr/bin/" + argv[0], Device: 8, Inode: 42}, Argv: argv, ArgvHash: 7}
	r := gate.Request{
		Container: event.Container{ID: "c1", Name: "web", Taint: []string{"corruption", "secret"}}, Process: process, Held: true,
		Destination: event.Destination{Address: "203.0.113.9", Port: 443, Protocol: "tcp"},
		Above:       []event.Member{{PID: 90, Start: 1, Comm: "bash", Exe: "/usr/bin/bash", Argv: []string{"bash", "fetch.sh"}}},
	}
	go func() { verdict <- a.gate.Decide(context.Background(), r) }()
	for e := range a.events {
		if e.Kind == event.Hold {
			q, err := a.gate.Question(e.Question)
			if err != nil {
				a.t.Fatal(err)
			}
			return q, verdict
		}
	}
	a.t.Fatal("nothing was asked")
	return gate.Question{}, nil
}

// approval approves a question as it was shown.
func approval(q gate.Question) fleet.Statement {
	text, _ := notify.Shown(q)
	now := time.Now()
	return fleet.Statement{Node: "n1", Signed: now, Expires: now.Add(time.Minute), Question: q.ID, Answer: fleet.Approve, Shown: gate.Digest(text), Why: "known"}
}

func (a *asker) sign(key ed25519.PrivateKey, s fleet.Statement) control.Signed {
	a.t.Helper()
	signed, err := fleet.Sign(key, s)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed
}

// refuses wants a statement refused, with no effect on a question.
func (a *asker) refuses(q gate.Question, signed control.Signed, why string) {
	a.t.Helper()
	if text, err := a.Signed(a.t.Context(), signed); err == nil || !strings.Contains(err.Error(), why) || control.Code(err) != control.Denied {
		a.t.Errorf("%q, %v, want %q", text, err, why)
	}
	if now, err := a.gate.Question(q.ID); err != nil || now.State != gate.StatePending {
		a.t.Errorf("the question is %s, %v", now.State, err)
	}
}

// TestSigned: of all that can be brought, only an operator's own word on this question and this text ends it, once.
func TestSigned(t *testing.T) {
	a := newAsker(t)
	q, verdict := a.ask("curl", "https://example.org/")
	good := approval(q)
	for name, c := range map[string]struct {
		change func(*fleet.Statement)
		why    string
	}{
		"another node":     {func(s *fleet.Statement) { s.Node = "n2" }, `for the node "n2"`},
		"another question": {func(s *fleet.Statement) { s.Question = "zzzzzz" }, "no such question"},
		"another scope":    {func(s *fleet.Statement) { s.Scope = 3 }, "no scope 3"},
		"another text":     {func(s *fleet.Statement) { s.Shown = gate.Digest("curl https://example.com/") }, "the text that was shown"},
		"no text":          {func(s *fleet.Statement) { s.Shown = "" }, "the text that was shown"},
		"expired":          {func(s *fleet.Statement) { s.Signed, s.Expires = s.Signed.Add(-time.Hour), s.Signed.Add(-time.Minute) }, "counted until"},
		"a day ahead": {func(s *fleet.Statement) {
			s.Signed, s.Expires = s.Signed.Add(24*time.Hour), s.Expires.Add(24*time.Hour)
		}, "compare the clocks"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			c.change(&s)
			a.refuses(q, a.sign(a.alice, s), c.why)
		})
	}
	stranger := a.sign(ed25519.NewKeyFromSeed(make([]byte, 32)), good)
	a.refuses(q, stranger, "no operator's")

	p := a.policies.Base()
	revoked := p
	revoked.Fleet.Revoked = []string{a.sign(a.alice, good).Key}
	a.policies.SetBase(revoked)
	a.refuses(q, a.sign(a.alice, good), "revoked")
	a.policies.SetBase(p)

	wider := good
	wider.Scope = 2
	first := a.sign(a.alice, wider)
	text, err := a.Signed(t.Context(), first)
	if err != nil || !strings.HasPrefix(text, "question "+q.ID+": approved with scope 2 by fleet operator alice") {
		t.Fatal(text, err)
	}
	if v := <-verdict; v.Decision != gate.Allow || v.By != "fleet operator alice" || v.Scope != 2 {
		t.Errorf("%+v", v)
	}
	ended, err := a.gate.Question(q.ID)
	if err != nil || ended.From == nil || *ended.From != (event.Origin{Via: "fleet", User: "alice"}) || ended.Shown == nil || ended.Shown.SHA256 != good.Shown || ended.Why != "known" {
		t.Errorf("%+v, %v", ended, err)
	}
	// The first answer counts, and who gives the second one is told of it; so is who brings the first again.
	no := good
	no.Answer, no.Shown = fleet.Deny, ""
	for _, again := range []control.Signed{a.sign(a.bob, no), first} {
		if _, err := a.Signed(t.Context(), again); err == nil || !strings.Contains(err.Error(), "already answered: approved by fleet operator alice") {
			t.Error(err)
		}
	}
	// It answers no other question, also not the next of the same command.
	if err := a.gate.Consume(q.ID); err != nil {
		t.Fatal(err)
	}
	next, verdict := a.ask("curl", "https://example.org/")
	if next.ID == q.ID {
		t.Fatal("the question is the same")
	}
	if _, err := a.Signed(t.Context(), first); err == nil {
		t.Error("an answer counts twice")
	}
	no.Question = next.ID
	if text, err := a.Signed(t.Context(), a.sign(a.bob, no)); err != nil || !strings.Contains(text, "denied by fleet operator bob") {
		t.Error(text, err)
	}
	if v := <-verdict; v.Decision != gate.Deny || v.Reason != gate.Denied {
		t.Errorf("%+v", v)
	}
}

// TestSignedHidden: a secret is taken out of what is shown elsewhere, and where the destination is shown an approval counts. Without one, see notify.
func TestSignedHidden(t *testing.T) {
	a := newAsker(t)
	q, verdict := a.ask("curl", "-H", "Authorization: Bearer s3cr3tvalue", "https://example.org/")
	text, whole := notify.Shown(q)
	if !whole || strings.Contains(text, "s3cr3t") {
		t.Errorf("whole %t: %s", whole, text)
	}
	if _, err := a.Signed(t.Context(), a.sign(a.alice, approval(q))); err != nil { // its destination is shown
		t.Error(err)
	}
	<-verdict
}

// TestNewestOrder: an order counts once, and none that is older than what is in force.
func TestNewestOrder(t *testing.T) {
	a := newAsker(t)
	at := time.Now().Add(-24 * time.Hour)
	set := func(m policy.Mode, when time.Time) {
		t.Helper()
		a.policies.Say(m)
		if err := a.noteMode(m, "root", "x", when); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := a.newest(policy.Seal, at); done || err != nil {
		t.Errorf("the first: %v, %v", done, err)
	}
	set(policy.Seal, at)
	if done, err := a.newest(policy.Seal, at); !done || err != nil {
		t.Errorf("the same again: %v, %v", done, err)
	}
	for name, c := range map[string]struct {
		m  policy.Mode
		at time.Time
	}{"an older one": {policy.Observe, at.Add(-time.Minute)}, "another of the same time": {policy.Observe, at}, "an older one of the same mode": {policy.Seal, at.Add(-1)}} {
		if _, err := a.newest(c.m, c.at); control.Code(err) != control.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if done, err := a.newest(policy.Enforce, at.Add(1)); done || err != nil {
		t.Errorf("a newer one: %v, %v", done, err)
	}
	// Nor does one count that was signed before root set the mode on the host, also if who signed has a clock that is ahead.
	set(policy.Seal, at.Add(time.Hour))
	if _, err := a.newest(policy.Observe, at.Add(time.Minute)); err == nil {
		t.Error("an order from before root's counts")
	}
	set(policy.Enforce, at.Add(30*time.Minute))
	if _, err := a.newest(policy.Observe, at.Add(time.Hour)); err == nil {
		t.Error("root's word made an older order newer")
	}
	// A change that fails is as if it had never been.
	back, err := a.keepMode()
	if err != nil {
		t.Fatal(err)
	}
	set(policy.Observe, at.Add(2*time.Hour))
	a.policies.Say(policy.Enforce)
	if err := back(); err != nil {
		t.Fatal(err)
	}
	var stored policy.Mode
	if err := a.memory.Get(keyMode, &stored); err != nil || stored != policy.Enforce {
		t.Errorf("the mode %q is stored, %v", stored, err)
	}
	if done, err := a.newest(policy.Observe, at.Add(2*time.Hour)); done || err != nil {
		t.Errorf("an order whose change failed, again: %v, %v", done, err)
	}
	for e := range a.events {
		if e.Message == "mode set back: the change failed" {
			break
		}
	}
	// A mode that was set while the clock was years ahead keeps orders out until it is set again.
	set(policy.Enforce, time.Now().Add(2*365*24*time.Hour))
	if _, err := a.newest(policy.Seal, time.Now()); err == nil || !strings.Contains(err.Error(), "the clock of this node was ahead") {
		t.Error(err)
	}
	set(policy.Enforce, at.Add(3*time.Hour))
	if done, err := a.newest(policy.Seal, at.Add(4*time.Hour)); done || err != nil {
		t.Errorf("after the clock was set: %v, %v", done, err)
	}
	if _, err := a.ordered(fleet.Statement{Mode: "open"}, "x"); err == nil || errors.Is(err, context.Canceled) {
		t.Error("a mode that is none")
	}
}

// withPolicyFile gives a daemon the policy file that is in force, in which alice may replace it and bob may not.
func (a *asker) withPolicyFile() {
	a.t.Helper()
	p := a.policies.Base()
	p.Fleet.Operators[0].Roles = []string{policy.RolePolicy}
	a.policies.SetBase(p)
	a.opts.PolicyPath = filepath.Join(a.t.TempDir(), "policy.yaml")
	a.replace = func(p policy.Policy) error {
		if err := needsStart(a.policies.Base(), p); err != nil {
			return err
		}
		a.policies.SetBase(p)
		return nil
	}
	if err := os.WriteFile(a.opts.PolicyPath, []byte(a.policyText("")), 0o600); err != nil {
		a.t.Fatal(err)
	}
	a.agents, a.loaded = withRules(a.t, new(told)), newestVersion(a.opts.PolicyPath)
	if err := a.stampPolicy(gate.Digest(a.policyText(""))); err != nil {
		a.t.Fatal(err)
	}
}

// policyText is the policy of the node with something more.
func (a *asker) policyText(more string) string {
	p := a.policies.Base()
	text := fmt.Sprintf("events: {file: %s}\nfleet:\n  node: %s\n  operators:\n", p.Events.File, p.Fleet.Node)
	for _, o := range p.Fleet.Operators {
		text += fmt.Sprintf("    - {name: %s, key: %s, roles: [%s]}\n", o.Name, o.Key, strings.Join(o.Roles, ", "))
	}
	return text + more
}

func policyOrder(text string, at time.Time) fleet.Statement {
	return fleet.Statement{Node: "weir/*", Signed: at, Expires: at.Add(fleet.MostPolicy), Policy: text, Why: "more"}
}

// TestSignedPolicy: a policy counts of who may, if it is newer than the one in force, and all else leaves that as it is.
func TestSignedPolicy(t *testing.T) {
	a := newAsker(t)
	a.withPolicyFile()
	inForce := func(want int, text string) {
		t.Helper()
		got, err := os.ReadFile(a.opts.PolicyPath)
		if err != nil || string(got) != text || a.policies.Base().ApprovalTTL != want || a.changed() {
			t.Errorf("%d is in force, want %d; %s, %v", a.policies.Base().ApprovalTTL, want, got, err)
		}
	}
	begin := time.Now().Add(-time.Hour)
	first, second := a.policyText("approval_ttl: 31\n"), a.policyText("approval_ttl: 32\n")
	was, ttl := a.policyText(""), a.policies.Base().ApprovalTTL
	if text, err := a.Signed(t.Context(), a.sign(a.alice, policyOrder(first, begin))); err != nil || !strings.HasPrefix(text, "the policy ") {
		t.Fatal(text, err)
	}
	inForce(31, first)
	newest := a.sign(a.alice, policyOrder(second, begin.Add(time.Minute)))
	for range 2 { // it counts once
		if _, err := a.Signed(t.Context(), newest); err != nil {
			t.Fatal(err)
		}
	}
	inForce(32, second)
	for range 2 {
		if e := <-a.events; !strings.Contains(e.Message, "policy.yaml, set by fleet operator alice: more") {
			t.Errorf("%+v", e)
		}
	}

	// An attacker who has the servers keeps an older one, and brings it: also after a restart, and to a node whose file was put back.
	refused := func(why string, signed control.Signed) {
		t.Helper()
		before, err := os.ReadFile(a.opts.PolicyPath)
		if err != nil {
			t.Fatal(err)
		}
		ttl := a.policies.Base().ApprovalTTL
		text, err := a.Signed(t.Context(), signed)
		if err == nil || !strings.Contains(err.Error(), why) || control.Code(err) != control.Denied || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q, %v, want %q", text, err, why)
		}
		inForce(ttl, string(before))
	}
	older := a.sign(a.alice, policyOrder(first, begin))
	refused("after this was signed", older)
	for range 2 {
		if err := os.WriteFile(a.opts.PolicyPath, []byte(was), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := a.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		inForce(ttl, was)
		refused("after this was signed", older)
		refused("after this was signed", newest) // who has the node has put another in force since
	}
	p, digest, err := loadPolicy(a.opts.PolicyPath)
	if err != nil {
		t.Fatal(err)
	}
	a.policies.SetBase(p)
	if err := a.stampPolicy(digest); err != nil { // a restart
		t.Fatal(err)
	}
	refused("after this was signed", newest)

	// Whose word it is, and what it says.
	at := func(text string) fleet.Statement { return policyOrder(text, time.Now()) }
	refused("bob does not have the role policy", a.sign(a.bob, at(first)))
	refused("no operator's", a.sign(ed25519.NewKeyFromSeed(make([]byte, 32)), at(first)))
	changed := a.sign(a.alice, at(first))
	changed.Statement = strings.Replace(changed.Statement, "31", "99", 1)
	refused("its signature", changed)
	refused("policy:", a.sign(a.alice, at(first+"allow: x\napprove: y\n")))
	refused("events: changed: restart", a.sign(a.alice, at(strings.Replace(first, "events.jsonl", "other.jsonl", 1))))
	refused("it calls the node n2", a.sign(a.alice, at(strings.Replace(first, "node: n1", "node: n2", 1))))
	refused("could not take it back", a.sign(a.alice, at(strings.Replace(first, "roles: [policy]", "roles: [answer]", 1))))
	refused("could not take it back", a.sign(a.alice, at(strings.Replace(first, "fleet:\n", "fleet:\n  revoked: ["+a.policies.Base().Fleet.Operators[0].Key+"]\n", 1))))
	late := at(first)
	late.Signed, late.Expires = late.Signed.Add(-25*time.Hour), late.Expires.Add(-25*time.Hour)
	refused("counted until", a.sign(a.alice, late))

	// A file that the node's own people are about to change stays theirs; and what cannot be written is not in force.
	if err := os.WriteFile(a.opts.PolicyPath, []byte("allow: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // not loaded yet, and refused
		if _, err := a.Signed(t.Context(), a.sign(a.alice, at(first))); err == nil || !strings.Contains(err.Error(), "mend it there") || a.policies.Base().ApprovalTTL != ttl {
			t.Error(err)
		}
		if err := a.Reload(t.Context()); err == nil {
			t.Error("a policy that is none was loaded")
		}
	}
	if err := os.WriteFile(a.opts.PolicyPath, []byte(was), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	real := a.opts.PolicyPath
	a.opts.PolicyPath = filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, a.opts.PolicyPath); err != nil {
		t.Fatal(err)
	}
	refused("no plain file", a.sign(a.alice, at(first)))

	// What cannot be written is refused, and not in force for a moment.
	loaded, replace := a.loaded, a.replace
	a.opts.PolicyPath = "/proc/version" // nobody can write beside it
	a.loaded, a.replace = newestVersion(a.opts.PolicyPath), func(policy.Policy) error { t.Error("it was in force"); return nil }
	refused("the sensor cannot write /proc/version", a.sign(a.alice, at(first)))
	a.loaded, a.replace = loaded, replace
	a.opts.PolicyPath = ""
	if _, err := a.Signed(t.Context(), a.sign(a.alice, at(first))); err == nil || !strings.Contains(err.Error(), "no policy file") {
		t.Error(err)
	}
	a.opts.PolicyPath = real
	if _, err := a.Signed(t.Context(), a.sign(a.alice, at(first))); err != nil {
		t.Error(err)
	}
	inForce(31, first)
}

// TestTwoPeople: with two_people a question of a container with both bits is approved by two people who say the same, and by nobody alone.
func TestTwoPeople(t *testing.T) {
	a := newAsker(t)
	p := a.policies.Base()
	p.Fleet.TwoPeople = true
	rename := func(from, to string) policy.Policy {
		changed := p
		changed.Fleet.Operators = slices.Clone(p.Fleet.Operators)
		for i := range changed.Fleet.Operators {
			if changed.Fleet.Operators[i].Name == from {
				changed.Fleet.Operators[i].Name = to
			}
		}
		return changed
	}
	a.policies.SetBase(p)
	q, verdict := a.ask("curl", "https://example.org/")
	waits := func(key ed25519.PrivateKey, s fleet.Statement, half ...string) {
		t.Helper()
		text, err := a.Signed(t.Context(), a.sign(key, s))
		list, err2 := a.Pending(t.Context())
		if err != nil || err2 != nil || !strings.Contains(text, "waits for another operator") || len(list) != 1 || !slices.Equal(list[0].Half, half) {
			t.Errorf("%q, %v; %+v, %v", text, err, list, err2)
		}
	}
	again := func() fleet.Statement { return approval(q) }
	waits(a.alice, again(), "alice")
	waits(a.alice, again(), "alice") // she alone stays one
	wider := again()
	wider.Scope = 2
	waits(a.bob, wider, "alice", "bob") // of another scope
	a.refuses(q, a.sign(a.bob, func() fleet.Statement { s := again(); s.Shown = "x"; return s }()), "the text that was shown")
	a.refuses(q, a.sign(a.bob, func() fleet.Statement { s := again(); s.Scope = 3; return s }()), "no scope 3")

	// One person who gets another name, or another key, stays one; and who was revoked is none.
	a.policies.SetBase(rename("alice", "alice2"))
	waits(a.alice, again(), "bob", "alice2")
	file := filepath.Join(t.TempDir(), "key")
	public, err := fleet.NewKey(file)
	if err != nil {
		t.Fatal(err)
	}
	other, err := fleet.ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	second := rename("", "")
	for i, o := range second.Fleet.Operators {
		if o.Name == "alice" {
			second.Fleet.Operators[i].Key = public
		}
	}
	a.policies.SetBase(second)
	waits(other, again(), "bob", "alice")
	revoked := second
	revoked.Fleet.Revoked = []string{public}
	a.policies.SetBase(revoked)
	waits(a.bob, wider, "bob")

	// On the node a member of a group is one person, and so is the callback. Root may.
	uid := uint32(1000)
	for _, from := range []*event.Origin{nil, {Via: "control", UID: &uid}, {Via: "callback", User: "root"}} {
		for _, lasts := range []string{"", "10m"} {
			if _, err := a.gate.Answer(q.ID, gate.Reply{Allow: true, By: "x", From: from, For: lasts, Who: gate.WhoProgram}); !errors.Is(err, gate.ErrTwo) {
				t.Error(err)
			}
		}
	}

	// A word that has ended is none.
	a.policies.SetBase(p)
	short := again()
	short.Signed, short.Expires = short.Signed.Add(-time.Hour), short.Signed.Add(-time.Minute)
	a.halves.all = append(a.halves.all, half{a.sign(a.alice, short), "n1"})
	waits(a.bob, again(), "bob")
	text, err := a.Signed(t.Context(), a.sign(a.alice, again()))
	if err != nil || !strings.Contains(text, "approved by fleet operators bob and alice") {
		t.Errorf("%q, %v", text, err)
	}
	if v := <-verdict; v.Decision != gate.Allow || v.By != "fleet operators bob and alice" {
		t.Errorf("%+v", v)
	}
	if err := a.gate.Consume(q.ID); err != nil {
		t.Fatal(err)
	}
	// It counts for no other question; one may deny; and root on the node answers alone.
	q, verdict = a.ask("curl", "https://example.org/")
	waits(a.alice, again(), "alice")
	no := again()
	no.Answer, no.Shown = fleet.Deny, ""
	if text, err := a.Signed(t.Context(), a.sign(a.bob, no)); err != nil || !strings.Contains(text, "denied by fleet operator bob") {
		t.Error(text, err)
	}
	<-verdict
	q, verdict = a.ask("wget", "https://example.org/")
	root := uint32(0)
	if _, err := a.gate.Answer(q.ID, gate.Reply{Allow: true, By: "root", From: &event.Origin{Via: "control", UID: &root}}); err != nil {
		t.Error(err)
	}
	<-verdict
	if a.wantsTwo(event.Container{Taint: []string{"secret"}}) || a.wantsTwo(event.Container{Taint: []string{"corruption"}}) {
		t.Error("two people are wanted for one bit")
	}
}
