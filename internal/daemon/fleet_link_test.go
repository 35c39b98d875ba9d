package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/sirupsen/logrus"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/fleet/link"
	"weir/internal/gate"
	"weir/internal/notify"
	"weir/internal/policy"
	"weir/internal/taint"
)

// hub is a server of NATS on loopback. Tests end it and start it again on its port.
type hub struct {
	t testing.TB
	o *server.Options
	s *server.Server
}

func newHub(t testing.TB, o *server.Options) *hub {
	t.Helper()
	o.Host, o.Port, o.JetStream, o.NoSigs, o.NoLog = "127.0.0.1", -1, true, true, true
	h := &hub{t: t, o: o}
	h.start(t.TempDir())
	t.Cleanup(func() { h.end() })
	return h
}

// start starts it with what is in a directory.
func (h *hub) start(dir string) {
	h.t.Helper()
	h.o.StoreDir = dir
	s, err := server.NewServer(h.o.Clone())
	if err != nil {
		h.t.Fatal(err)
	}
	go s.Start()
	if !s.ReadyForConnections(time.Minute) {
		h.t.Fatal("the server does not start")
	}
	h.s, h.o.Port = s, s.Addr().(*net.TCPAddr).Port
}

func (h *hub) end() {
	h.s.Shutdown()
	h.s.WaitForShutdown()
}

func (h *hub) policy() policy.Fleet {
	p := policy.Default().Fleet
	p.Servers = []string{fmt.Sprintf("nats://127.0.0.1:%d", h.o.Port)}
	return p
}

// people is a connection of somebody who is on no node.
func (h *hub) people() *link.Servers {
	h.t.Helper()
	s, err := link.Connect(h.policy(), "people", false, func(string) {})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(s.Close)
	return s
}

func (h *hub) init() {
	h.t.Helper()
	s := h.people()
	defer s.Close()
	if err := s.Init(h.t.Context(), link.Limits{Age: time.Hour, Bytes: 1 << 28, Replicas: 1}); err != nil {
		h.t.Fatal(err)
	}
}

// raw is a connection with all rights, as whoever has the servers has one.
func (h *hub) raw() *nats.Conn {
	h.t.Helper()
	nc, err := nats.Connect(h.policy().Servers[0])
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(nc.Close)
	return nc
}

// linked is a node with its link.
type linked struct {
	*asker
	h     *hub
	name  string
	state string
	run   string
	creds string
	said  chan string
	stop  func()
	wrote int

	holds sync.Mutex
	held  []control.Container
}

// Containers has no kernel to ask.
func (n *linked) Containers(context.Context) ([]control.Container, error) {
	n.holds.Lock()
	defer n.holds.Unlock()
	return slices.Clone(n.held), nil
}

// taints says what a container of the node is tainted with from now on, as the log tells.
func (n *linked) taints(identity string, bits ...string) {
	n.t.Helper()
	n.holds.Lock()
	n.held = []control.Container{{ID: "c1", Identity: identity, Taint: bits}}
	n.holds.Unlock()
	if err := n.log.Write(event.Event{Kind: event.Taint, Container: &event.Container{ID: "c1"}, Change: &event.TaintChange{Set: bits, Source: "operator"}}); err != nil {
		n.t.Error(err)
	}
}

func newLinked(t testing.TB, h *hub, name string) *linked {
	t.Helper()
	n := &linked{asker: newNode(t, name), h: h, name: name, state: t.TempDir(), run: t.TempDir(), said: make(chan string, 1000)}
	s, err := control.Listen(n.run)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, n, nil) }()
	t.Cleanup(func() { n.unlink(); cancel(); <-done })
	return n
}

// link starts the node's link.
func (n *linked) link() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := n.h.policy()
	p.CredsFile = n.creds
	say := func(text string) {
		select {
		case n.said <- text:
		default:
		}
	}
	s, err := link.Connect(p, n.name, true, say)
	if err != nil {
		n.t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		done <- s.Run(ctx, link.Node{Name: n.name, Sensor: control.NewClient(n.run), State: n.state, Say: say})
	}()
	n.stop = func() {
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("the link of %s: %v", n.name, err)
		}
		s.Close()
	}
}

func (n *linked) unlink() {
	if n.stop != nil {
		n.stop()
		n.stop = nil
	}
}

// writes logs events, which are counted.
func (n *linked) writes(count int) {
	for range count {
		n.wrote++
		n.log.WriteAsync(event.Event{Kind: event.Error, Message: fmt.Sprintf("%s %d %s", n.name, n.wrote, strings.Repeat("x", 200))}) // a disk may be slow
	}
	n.log.Flush()
}

// says waits until the link says something.
func (n *linked) says(text string) {
	n.t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case said := <-n.said:
			if strings.Contains(said, text) {
				return
			}
		case <-late:
			n.t.Fatalf("the link of %s does not say %q", n.name, text)
		}
	}
}

var errEnough = errors.New("enough")

// has wants all that the node wrote in the stream, in order and once.
func (n *linked) has() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	next := 1
	err := n.h.people().Events(ctx, n.name, true, func(node string, line []byte) error {
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil || node != n.name {
			return fmt.Errorf("of %s: %s: %w", node, line, err)
		}
		if e.Kind != event.Error {
			return nil
		}
		if want := fmt.Sprintf("%s %d ", n.name, next); !strings.HasPrefix(e.Message, want) {
			return fmt.Errorf("%.30s, want %s", e.Message, want)
		}
		if next++; next > n.wrote {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		n.t.Errorf("%s: after %d of %d events: %v", n.name, next-1, n.wrote, err)
	}
}

// TestLinkEvents: whatever happens to the server and to links, the events of each node are complete in the end, in order, and each is read once.
func TestLinkEvents(t *testing.T) {
	h := newHub(t, &server.Options{})
	dir := h.o.StoreDir
	var nodes []*linked
	for _, name := range []string{"n1", "n2.example.org", "n3"} {
		nodes = append(nodes, newLinked(t, h, name))
	}
	each := func(do func(n *linked)) {
		var all sync.WaitGroup
		for _, n := range nodes {
			all.Go(func() { do(n) })
		}
		all.Wait()
	}
	each(func(n *linked) { n.writes(300); n.link(); n.says("no stream weir_events") })
	h.init()
	each(func(n *linked) { n.writes(300); n.says("events: they go on"); n.has() })

	// A cut, meanwhile the log is rotated, and one link ends.
	h.end()
	each(func(n *linked) { n.writes(6000) })
	nodes[0].unlink()
	nodes[0].writes(100)
	h.start(dir)
	each(func(n *linked) { n.writes(100) })
	nodes[0].link()
	each(func(n *linked) { n.has() })
	if files, err := filepath.Glob(filepath.Dir(nodes[0].policies.Base().Events.File) + "/*"); err != nil || len(files) < 2 {
		t.Errorf("the log was not rotated: %q, %v", files, err)
	}

	// A server that comes back empty gets all that the logs have, also where the link begins anew then.
	h.end()
	nodes[1].unlink()
	each(func(n *linked) { n.writes(10) })
	h.start(t.TempDir())
	h.init()
	nodes[1].link()
	each(func(n *linked) { n.has() })

	// A server that was restored from a backup gets what it lacks.
	h.end()
	h.start(dir)
	each(func(n *linked) { n.writes(10); n.has() })

	// A link that has forgotten where it was, and one whose node was restored, go on where the stream ends.
	each(func(n *linked) { n.unlink() })
	if err := os.Remove(filepath.Join(nodes[0].state, "place.json")); err != nil {
		t.Fatal(err)
	}
	before, err := messages(h)
	if err != nil {
		t.Fatal(err)
	}
	each(func(n *linked) { n.link(); n.writes(1); n.has() })
	if after, err := messages(h); err != nil || after > before+6 {
		t.Errorf("%d messages, then %d, %v: events were sent again", before, after, err)
	}
}

func messages(h *hub) (uint64, error) {
	js, err := jetstream.New(h.raw())
	if err != nil {
		return 0, err
	}
	stream, err := js.Stream(h.t.Context(), "weir_events")
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.Msgs, nil
}

// TestLinkGap: what rotation removed before it could be sent is told.
func TestLinkGap(t *testing.T) {
	h := newHub(t, &server.Options{})
	h.init()
	n := newLinked(t, h, "n1")
	n.link()
	n.writes(10)
	n.has()
	n.unlink()
	n.writes(8000)
	files, err := filepath.Glob(filepath.Dir(n.policies.Base().Events.File) + "/events-*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	n.link()
	last, lost, first := 0, 0, 0
	err = h.people().Events(t.Context(), "n1", true, func(_ string, line []byte) error {
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Kind == event.Lost {
			if lost++; e.Loss.Stage != "fleet" || e.Loss.What != "log" || last != 10 {
				t.Errorf("%+v after %d", e.Loss, last)
			}
			return nil
		}
		before := last
		if _, err := fmt.Sscanf(e.Message, "n1 %d", &last); err != nil {
			return err
		}
		if last != before+1 {
			if first != 0 {
				t.Errorf("%d after %d", last, before)
			}
			first = last
		}
		if last == n.wrote {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) || lost != 1 || first < 1000 {
		t.Errorf("%v; %d losses, then from %d on", err, lost, first)
	}
}

// TestLinkDuplicates: what comes twice, or late over an old connection, is refused by the server or dropped by who reads.
func TestLinkDuplicates(t *testing.T) {
	h := newHub(t, &server.Options{})
	h.init()
	n := newLinked(t, h, "n1")
	n.link()
	n.writes(50)
	n.has()
	js, err := jetstream.New(h.raw())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "weir_events")
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	again := &nats.Msg{Subject: first.Subject, Data: first.Data, Header: nats.Header{}}
	for _, name := range []string{"Weir-From", "Weir-To", "Nats-Expected-Last-Subject-Sequence"} {
		again.Header.Set(name, first.Header.Get(name))
	}
	if _, err := js.PublishMsg(t.Context(), again); err == nil || !strings.Contains(err.Error(), "wrong last sequence") {
		t.Errorf("a message that comes late: %v", err)
	}
	again.Header.Del("Nats-Expected-Last-Subject-Sequence") // whoever has the servers can have it taken
	if _, err := js.PublishMsg(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	n.writes(50)
	n.has()
}

// question waits until people see a question of a node.
func (n *linked) question(id string, want string) notify.Message {
	n.t.Helper()
	people := n.h.people()
	defer people.Close()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		list, err := people.Questions(n.t.Context())
		if err != nil {
			n.t.Fatal(err)
		}
		for _, m := range list {
			if m.Host == n.name && m.Question.ID == id && m.Type == want {
				return m
			}
		}
	}
	n.t.Fatalf("nobody sees %s of the question %s", want, id)
	return notify.Message{}
}

// approvalOf approves what people see of a question.
func approvalOf(m notify.Message) fleet.Statement {
	now := time.Now()
	return fleet.Statement{Node: m.Host, Signed: now, Expires: now.Add(time.Minute), Question: m.Question.ID, Answer: fleet.Approve, Shown: gate.Digest(m.Shown.Text)}
}

// TestLinkQuestion: people elsewhere see a question and answer it, also after a cut in its middle; who has the servers and their accounts answers nothing.
func TestLinkQuestion(t *testing.T) {
	h := newHub(t, &server.Options{})
	dir := h.o.StoreDir
	h.init()
	n := newLinked(t, h, "n1")
	n.link()
	n.says("connected")
	q, verdict := n.ask("curl", "-H", "Authorization: Bearer s3cr3tvalue", "https://example.org/")
	m := n.question(q.ID, "question.asked")
	if data, err := json.Marshal(m); err != nil || strings.Contains(string(data), "s3cr3t") {
		t.Errorf("a secret has left: %s, %v", data, err)
	}
	people := h.people()

	// Whoever has the servers signs with keys of their own, changes what others signed, and says what they like.
	good, err := fleet.Sign(n.alice, approvalOf(m))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if _, err := fleet.NewKey(file); err != nil {
		t.Fatal(err)
	}
	stranger, err := fleet.ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	own, err := fleet.Sign(stranger, approvalOf(m))
	if err != nil {
		t.Fatal(err)
	}
	posing := own
	posing.Key = good.Key
	seal := approvalOf(m)
	seal.Question, seal.Answer, seal.Shown, seal.Mode = "", "", "", "observe"
	weaken, err := fleet.Sign(stranger, seal)
	if err != nil {
		t.Fatal(err)
	}
	wider := good
	wider.Statement = strings.Replace(wider.Statement, `"question"`, `"scope":2,"question"`, 1)
	for _, bad := range []control.Signed{own, posing, weaken, wider, {Key: good.Key, Statement: "{}", Signature: "AA=="}, {}} {
		if text, err := people.Send(t.Context(), "n1", bad); err == nil {
			t.Errorf("%+v: %s", bad, text)
		}
	}
	for _, data := range []string{"", "approve", `{"key":1}`, strings.Repeat("x", 1<<19)} {
		reply, err := h.raw().Request("weir.answers.n1", []byte(data), time.Minute)
		if err != nil || !strings.Contains(string(reply.Data), `"error"`) {
			t.Errorf("%.20s: %v", data, err)
		}
	}
	if now, err := n.gate.Question(q.ID); err != nil || now.State != gate.StatePending || n.policies.Mode() != policy.Enforce {
		t.Fatalf("%s, mode %s, %v", now.State, n.policies.Mode(), err)
	}

	// A cut: nobody answers, and the sensor asks on.
	h.end()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	if text, err := people.Send(short, "n1", good); err == nil {
		t.Errorf("an answer went over a server that is away: %s", text)
	}
	cancel()
	h.start(dir)
	n.says("connected again")
	text, err := h.people().Send(t.Context(), "n1", good)
	if err != nil || !strings.Contains(text, "approved by fleet operator alice") {
		t.Fatal(text, err)
	}
	if v := <-verdict; v.Decision != gate.Allow {
		t.Errorf("%+v", v)
	}
	if end := n.question(q.ID, "question.ended"); end.Answer.By != "fleet operator alice" || end.Answer.Outcome != "approved" {
		t.Errorf("%+v", end.Answer)
	}
	// Of two answers the first one counts, and both people see that.
	no := approvalOf(m)
	no.Answer, no.Shown = fleet.Deny, ""
	second, err := fleet.Sign(n.bob, no)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.people().Send(t.Context(), "n1", second); err == nil || !strings.Contains(err.Error(), "approved by fleet operator alice") {
		t.Error(err)
	}
	if _, err := h.people().Send(t.Context(), "n9", second); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Error(err)
	}

	// A server that is killed in the middle of a question and comes back empty is told of it again, and the answer to another question counts nothing.
	q, verdict = n.ask("wget", "https://example.org/")
	n.question(q.ID, "question.asked")
	h.end()
	h.start(t.TempDir())
	h.init()
	m = n.question(q.ID, "question.asked")
	if _, err := h.people().Send(t.Context(), "n1", good); err == nil {
		t.Error("an answer to another question counts")
	}
	if good, err = fleet.Sign(n.alice, approvalOf(m)); err != nil {
		t.Fatal(err)
	}
	if text, err := h.people().Send(t.Context(), "n1", good); err != nil || !strings.Contains(text, "approved by fleet operator alice") {
		t.Fatal(text, err)
	}
	if v := <-verdict; v.Decision != gate.Allow {
		t.Errorf("%+v", v)
	}
}

// TestLinkSlow: who reads slowly gets all in order, and a link that gets more than its sensor can look at drops some of it; one answer counts, once.
func TestLinkSlow(t *testing.T) {
	h := newHub(t, &server.Options{})
	h.init()
	n := newLinked(t, h, "n1")
	n.link()
	n.writes(10)
	n.has()
	seen := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late := time.AfterFunc(time.Minute, cancel) // without another event
	err := h.people().Events(ctx, "n1", true, func(_ string, line []byte) error {
		if seen == 0 { // it stands still until far more is there than is on its way at once
			n.writes(9000)
			n.has()
		}
		late.Reset(time.Minute)
		if seen++; !strings.Contains(string(line), fmt.Sprintf(`"n1 %d `, seen)) {
			return fmt.Errorf("%.100s is the event %d", line, seen)
		}
		if seen == n.wrote {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("after %d of %d: %v", seen, n.wrote, err)
	}

	q, verdict := n.ask("curl", "https://example.org/")
	good, err := fleet.Sign(n.alice, approvalOf(n.question(q.ID, "question.asked")))
	if err != nil {
		t.Fatal(err)
	}
	forged := good
	forged.Signature = good.Signature[4:] + good.Signature[:4]
	data, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	raw, people := h.raw(), h.people()
	dropped := make(chan struct{})
	go func() {
		defer close(dropped)
		n.says("slow consumer")
	}()
	for flooding := true; flooding; {
		select {
		case <-dropped:
			flooding = false
		default:
			if err := raw.Publish("weir.answers.n1", data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for end := time.Now().Add(time.Minute); ; { // what was dropped is sent again by who waits for an answer
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = people.Send(short, "n1", good)
		cancel()
		if err == nil || strings.Contains(err.Error(), "already answered") {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if v := <-verdict; v.Decision != gate.Allow || v.By != "fleet operator alice" {
		t.Errorf("%+v", v)
	}
	if end := n.question(q.ID, "question.ended"); end.Answer.By != "fleet operator alice" {
		t.Errorf("%+v", end.Answer)
	}
}

// TestRestored: a node that was restored from a backup takes an answer again to a question that waits in it, as long as the answer counts; once, and
// nothing that was answered before the backup.
func TestRestored(t *testing.T) {
	a := newAsker(t)
	before, verdict := a.ask("curl", "https://example.org/")
	old := a.sign(a.alice, approval(before))
	if _, err := a.Signed(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	<-verdict
	if err := a.gate.Consume(before.ID); err != nil {
		t.Fatal(err)
	}
	q, _ := a.ask("wget", "https://example.org/")
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(a.db)); err != nil {
		t.Fatal(err)
	}
	first := a.sign(a.alice, approval(q))
	if _, err := a.Signed(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	db, err := OpenStore(backup)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	restored := &daemon{log: a.log, policies: a.policies, state: new(taint.State)}
	if restored.memory, err = openMemory(db); err != nil {
		t.Fatal(err)
	}
	if restored.gate, err = gate.Open(gate.Options{DB: db, Log: a.log, Logger: logger, Approver: true, Two: restored.wantsTwo}); err != nil {
		t.Fatal(err)
	}
	defer restored.gate.Close()
	late := approval(q)
	late.Signed, late.Expires = late.Signed.Add(-2*time.Minute), late.Signed.Add(-time.Minute)
	for _, bad := range []control.Signed{old, a.sign(a.alice, late)} {
		if text, err := restored.Signed(t.Context(), bad); err == nil {
			t.Error(text)
		}
	}
	if text, err := restored.Signed(t.Context(), first); err != nil || !strings.Contains(text, "approved by fleet operator alice") {
		t.Error(text, err)
	}
	if text, err := restored.Signed(t.Context(), first); err == nil {
		t.Error("an answer counts twice:", text)
	}
}

// TestLinkPolicy: a policy for all comes to who is there and to who comes back; who has the servers brings no older one, and none of their own.
func TestLinkPolicy(t *testing.T) {
	h := newHub(t, &server.Options{})
	h.init()
	n := newLinked(t, h, "n1")
	n.withPolicyFile()
	n.link()
	n.says("connected")
	people := h.people()
	text := n.policyText("approval_ttl: 31\n")
	give := func(signed control.Signed, want string) {
		t.Helper()
		heard, err := "", error(nil)
		for heard == "" && err == nil { // until the link listens
			err = people.Order(t.Context(), "n1", signed, time.Minute, func(node, text string, err error) { heard = fmt.Sprint(node, ": ", text, err) })
		}
		if err != nil || !strings.HasPrefix(heard, want) {
			t.Errorf("%q, %v, want %q", heard, err, want)
		}
	}
	now := time.Now()
	older := n.sign(n.alice, policyOrder(text, now.Add(-time.Minute)))
	newer := policyOrder(n.policyText("approval_ttl: 32\n"), now)
	give(older, "n1: the policy ")
	give(n.sign(n.alice, newer), "n1: the policy ")
	give(older, "n1: refused: the policy was set at")
	give(n.sign(n.bob, policyOrder(text, now.Add(time.Minute))), "n1: refused: bob does not have the role policy")
	if ttl := n.policies.Base().ApprovalTTL; ttl != 32 {
		t.Errorf("%d is in force", ttl)
	}
	// One of the largest that can be signed comes through the servers, the link and the control socket.
	large := n.policyText("approval_ttl: 33\n") + strings.Repeat("#\n", 80<<10)
	give(n.sign(n.alice, policyOrder(large, now.Add(time.Minute))), "n1: the policy ")
	if _, err := fleet.Sign(n.alice, policyOrder(large+large, now)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	n.unlink()
	if err := people.Order(t.Context(), people.Every(), n.sign(n.alice, policyOrder(n.policyText("approval_ttl: 34\n"), now.Add(2*time.Minute))), 0, nil); err != nil {
		t.Fatal(err)
	}
	n.link()
	for n.policies.Base().ApprovalTTL != 34 {
		n.says("order: the policy ")
	}
}

// follows has taint follow containers to the node; what nobody tells of begins with corruption.
func (n *linked) follows() {
	p := n.policies.Base()
	p.Fleet.Identity, p.Fleet.Unknown = true, []string{"corruption"}
	n.policies.SetBase(p)
}

// begins says what a container begins with, once the link has told.
func (n *linked) begins(o taint.Origin) (taint.Bits, string) {
	n.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if bits, why := n.elsewhere(o, true, true); !strings.Contains(why, "nobody tells") {
			return bits, why
		}
	}
	n.t.Fatalf("nobody tells of %+v", o)
	return 0, ""
}

// ended is a context that is over.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestLinkMoved: a container begins with what it was tainted with on other nodes, whoever writes into the bucket takes nothing away, and where it cannot
// be asked a container begins with what the policy says.
func TestLinkMoved(t *testing.T) {
	h := newHub(t, &server.Options{})
	h.init()
	a, b := newLinked(t, h, "n1"), newLinked(t, h, "n2")
	pod, web := taint.Origin{PodUID: "7c0f"}, taint.Origin{Namespace: "default", ID: "web"}
	if bits, why := b.elsewhere(pod, true, true); bits != 0 || why != "" {
		t.Errorf("it is off: %v, %s", bits, why)
	}
	b.follows()
	for name, o := range map[string]taint.Origin{"no link": pod, "no identity": {}} {
		want := taint.Corruption
		if o == (taint.Origin{}) {
			want = 0
		}
		began := time.Now()
		if bits, why := b.elsewhere(o, true, true); bits != want || time.Since(began) > wantedTime {
			t.Errorf("%s: %v, %s after %v", name, bits, why, time.Since(began))
		}
	}
	if bits, why := b.elsewhere(pod, false, true); bits != 0 {
		t.Errorf("what runs has what is known of it: %v, %s", bits, why)
	}

	b.inquiries.links++ // which is slow
	if bits, why := b.elsewhere(pod, true, false); bits != 0 {
		t.Errorf("before it has a process it has what is known of it: %v, %s", bits, why)
	}
	b.inquiries.links--

	a.link()
	b.link()
	b.says("connected")
	js, err := jetstream.New(h.raw())
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.KeyValue(t.Context(), "weir_taint")
	if err != nil {
		t.Fatal(err)
	}
	watch, err := bucket.WatchAll(t.Context(), jetstream.UpdatesOnly())
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	told := func(want string) string {
		t.Helper()
		for {
			if e := <-watch.Updates(); e != nil {
				if !strings.Contains(string(e.Value()), want) {
					t.Errorf("%s is told, want %s", e.Value(), want)
				}
				return e.Key()
			}
		}
	}
	has := func(n *linked, o taint.Origin, want taint.Bits, from string) {
		t.Helper()
		if bits, why := n.begins(o); bits != want || want != 0 && why != "had it on "+from {
			t.Errorf("%s: %v, %s", n.name, bits, why)
		}
	}
	a.taints(pod.Identity(), "secret")
	key := told(`"taint":["secret"]`)
	if !strings.HasSuffix(key, ".n1") {
		t.Error(key)
	}
	has(b, pod, taint.Secret, "n1")
	has(b, web, 0, "")
	b.taints(pod.Identity(), "secret", "corruption")
	told(`["corruption","secret"]`)
	a.follows()
	has(a, pod, taint.Secret|taint.Corruption, "n2")

	// A forged entry taints. What is no taint, of another container, or nothing at all, takes nothing away: each node tells for itself.
	for node, value := range map[string]string{
		"n3": `{"identity":"pod 7c0f"}`, "n4": `{"identity":"pod 7c0f","taint":["clean"]}`, "n5": `{"identity":"default/web","taint":["secret"]}`, "n6": "", "n7": "x",
	} {
		if _, err := bucket.Put(t.Context(), strings.TrimSuffix(key, "n1")+node, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	has(b, pod, taint.Secret, "n1")
	if _, err := bucket.Put(t.Context(), strings.TrimSuffix(key, "n1")+"n8", []byte(`{"identity":"pod 7c0f","taint":["corruption"]}`)); err != nil {
		t.Fatal(err)
	}
	has(b, pod, taint.Secret|taint.Corruption, "n1, n8")

	// Nor does who may look at the node, by what nobody asked about, or by a word before the link's.
	if _, err := b.Moved(ended(t), []control.Elsewhere{{Identity: "pod 1", Taint: []string{"secret"}}, {Identity: "pod 2"}}); err != nil {
		t.Error(err)
	}
	if _, err := b.Moved(ended(t), []control.Elsewhere{{Identity: web.Identity(), Taint: []string{"clean"}}}); err == nil {
		t.Error("a bit that is none")
	}
	has(b, pod, taint.Secret|taint.Corruption, "n1, n8")

	// Where a person untaints it, that node takes back what it told, and no other's word.
	a.taints(pod.Identity())
	for e := <-watch.Updates(); e == nil || e.Key() != key; e = <-watch.Updates() {
	}
	has(b, pod, taint.Corruption, "n8")
	// A node that sees a clean container of this name, and knows nothing of it, takes nothing back.
	a.unlink()
	a.taints(pod.Identity(), "secret")
	a.link()
	learns := func(o taint.Origin) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			if bits, _ := b.begins(o); bits&taint.Secret != 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s does not learn of %s", b.name, o.Identity())
			}
		}
	}
	learns(pod)
	a.unlink()
	a.taints(pod.Identity())
	a.link()
	a.says("connected")
	a.taints(web.Identity(), "secret")
	learns(web)
	has(b, pod, taint.Secret|taint.Corruption, "n1, n8")

	// Somebody has it forgotten everywhere: what was told before counts nowhere any more, whoever tells it again, and what is told later does.
	grant := func(n *linked) {
		p := n.policies.Base()
		p.Fleet.Operators[0].Roles = append(p.Fleet.Operators[0].Roles, policy.RoleForget)
		n.policies.SetBase(p)
	}
	people := h.people()
	order := func(n *linked, at time.Time) (heard string) {
		t.Helper()
		signed := n.sign(n.alice, fleet.Statement{Node: n.name, Signed: at, Expires: at.Add(fleet.MostForget), Forget: pod.Identity(), Why: "made anew"})
		if err := people.Order(t.Context(), n.name, signed, time.Minute, func(_, text string, err error) { heard = fmt.Sprint(text, err) }); err != nil {
			t.Fatal(err)
		}
		return heard
	}
	at := time.Now()
	if heard := order(b, at); !strings.Contains(heard, "alice does not have the role forget") {
		t.Error(heard)
	}
	has(b, pod, taint.Secret|taint.Corruption, "n1, n8")
	grant(b)
	if heard := order(b, at); !strings.Contains(heard, "pod 7c0f is forgotten") {
		t.Error(heard)
	}
	has(b, pod, 0, "")
	has(b, web, taint.Secret, "n1")
	if _, err := bucket.Put(t.Context(), strings.TrimSuffix(key, "n1")+"n8", []byte(`{"identity":"pod 7c0f","taint":["corruption"]}`)); err != nil {
		t.Fatal(err)
	}
	has(b, pod, taint.Corruption, "n8")
	for when, want := range map[time.Time]string{at: "pod 7c0f is forgotten", at.Add(-time.Minute): "refused: pod 7c0f was forgotten at"} { // neither clears anything
		if heard := order(b, when); !strings.Contains(heard, want) {
			t.Error(heard)
		}
	}
	has(b, pod, taint.Corruption, "n8")

	// The servers are away.
	h.end()
	b.says("disconnected")
	if bits, why := b.elsewhere(pod, true, true); bits != taint.Corruption || !strings.Contains(why, "nobody tells") {
		t.Errorf("%v, %s", bits, why)
	}
}

// TestForgetAhead: an order to forget that was signed ahead of the node's clock is not taken before its time, or it would reach what is set later. One
// that is only a little ahead waits.
// What a link found before an order counts no more, and is looked for again.
func TestForgetAhead(t *testing.T) {
	a := newAsker(t)
	p := a.policies.Base()
	p.Fleet.Operators[0].Roles = append(p.Fleet.Operators[0].Roles, policy.RoleForget)
	p.Fleet.Identity = true
	a.policies.SetBase(p)
	o := taint.Origin{Agent: "a1"}
	order := func(at time.Time) (string, error) {
		return a.Signed(t.Context(), a.sign(a.alice, fleet.Statement{Node: "n1", Signed: at, Expires: at.Add(fleet.MostForget), Forget: o.Identity(), Why: "made anew"}))
	}
	q, _ := a.inquiries.want(o.Identity(), true)
	wanted, err := a.Moved(t.Context(), nil)
	if err != nil || len(wanted) != 1 || !wanted[0].Forgotten.IsZero() {
		t.Fatal(wanted, err)
	}
	if text, err := order(time.Now().Add(time.Minute)); err == nil || !strings.Contains(err.Error(), "is taken when that has come here") {
		t.Error(text, err)
	}
	if all, err := a.forgotten(); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	if text, err := order(time.Now()); err != nil || text != "agent a1 is forgotten" {
		t.Fatal(text, err)
	}
	for {
		e := <-a.events
		if e.Kind == event.Error {
			t.Errorf("an order that was taken is told as an error: %s", e.Message)
		}
		if strings.Contains(e.Message, "agent a1 is forgotten, as fleet operator alice says: made anew") {
			break
		}
	}
	wanted, err = a.Moved(t.Context(), []control.Elsewhere{{Identity: o.Identity(), Taint: []string{"secret"}, Nodes: []string{"n2"}}})
	if err != nil || len(wanted) != 1 || wanted[0].Identity != o.Identity() || wanted[0].Forgotten.IsZero() {
		t.Fatal(wanted, err)
	}
	if _, err := a.Moved(ended(t), []control.Elsewhere{{Identity: o.Identity(), Taint: []string{"corruption"}}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-q.told:
		if q.bits != taint.Corruption {
			t.Errorf("what was forgotten meanwhile counts: %v", q.bits)
		}
	default:
		t.Error("what a link says of the newest question is not taken")
	}
	if text, err := order(time.Now().Add(forgetAhead / 10)); err != nil || text != "agent a1 is forgotten" {
		t.Error(text, err)
	}
}

// TestForgets: only containers of the identity lose taint, and only what was there when that was signed.
func TestForgets(t *testing.T) {
	at := time.Now()
	one := func(id, agent string, own taint.Bits, since time.Time) taint.Status {
		return taint.Status{Container: taint.Container{ID: id, Origin: taint.Origin{Agent: agent, PodUID: "1", Namespace: "default", ID: id}}, Own: own, Since: since}
	}
	older, newer := tainted([]taint.Status{
		one("c1", "a1", taint.Secret, at.Add(-time.Hour)), one("c2", "a1", taint.Secret, at.Add(time.Second)), one("c3", "a1", 0, at.Add(-time.Hour)),
		one("c4", "a2", taint.Secret, at.Add(-time.Hour)), one("c5", "", taint.Secret, at.Add(-time.Hour)), one("c6", "a1", taint.Corruption, at),
	}, "agent a1", at)
	if len(older) != 2 || older[0].ID != "c1" || older[1].ID != "c6" || len(newer) != 1 || newer[0].ID != "c2" {
		t.Errorf("%+v, %+v", older, newer)
	}
}

// TestInquiries: who asks while a link looks gets what it finds afterwards, and what was not answered is asked again.
func TestInquiries(t *testing.T) {
	var m inquiries
	first, there := m.want("pod 1", false)
	if there {
		t.Error("a link is there")
	}
	same, _ := m.want("pod 1", false)
	if got := m.wait(t.Context()); !slices.Equal(got, []string{"pod 1"}) || same != first {
		t.Errorf("%q", got)
	}
	later, there := m.want("pod 1", false)
	if later == first || !there {
		t.Errorf("an inquiry that was taken takes more; there %t", there)
	}
	if !m.tell(control.Elsewhere{Identity: "pod 1"}, 0, time.Time{}) || m.tell(control.Elsewhere{Identity: "pod 1"}, taint.Secret, time.Time{}) || m.tell(control.Elsewhere{Identity: "pod 2"}, taint.Secret, time.Time{}) {
		t.Error("what was not taken was answered")
	}
	<-first.told
	for range 2 { // the first link does not come back
		if got := m.wait(t.Context()); !slices.Equal(got, []string{"pod 1"}) {
			t.Errorf("%q", got)
		}
	}
	m.tell(control.Elsewhere{Identity: "pod 1", Nodes: []string{"n1", "n2"}}, taint.Secret, time.Time{})
	if <-later.told; later.bits != taint.Secret || later.nodes != "n1, n2" {
		t.Errorf("%+v", later)
	}
	if got := m.wait(ended(t)); len(got) != 0 {
		t.Errorf("%q", got)
	}

	// After somebody waited in vain nobody waits until something is told.
	missed, _ := m.want("pod 1", true)
	m.missed(missed)
	if _, there := m.want("pod 2", false); there {
		t.Error("the next waits, too")
	}
	m.wait(t.Context())
	m.tell(control.Elsewhere{Identity: "pod 3"}, 0, time.Time{})
	if _, there := m.want("pod 2", false); there {
		t.Error("what nobody asked about was told")
	}
	m.tell(control.Elsewhere{Identity: "pod 1"}, 0, time.Time{})
	if _, there := m.want("pod 2", false); !there {
		t.Error("nobody waits any more")
	}

	// A link is asked about few at once, and first about those for which somebody waits.
	for i := range 10 * maxAsked {
		m.want(strconv.Itoa(i), i == maxAsked)
	}
	if got := m.wait(t.Context()); len(got) != maxAsked || got[0] != strconv.Itoa(maxAsked) {
		t.Errorf("%q", got)
	}
	least := int64(math.MaxInt64)
	for range 5 { // others use memory meanwhile
		m = inquiries{}
		before := heap()
		for i := range maxWanted {
			if q, _ := m.want(fmt.Sprintf("agent %253d", i), false); q == nil {
				t.Fatalf("there is no room for %d", i)
			}
		}
		least = min(least, heap()-before)
	}
	if least > 8<<20 {
		t.Errorf("all that can be wanted takes %d bytes", least)
	}
	t.Logf("all that can be wanted takes %d KiB", least>>10)
	m.wait(t.Context())
	if q, there := m.want("one too many", false); q != nil || there {
		t.Error("there is room for ever")
	}
}

// heap is how much memory is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first leaves what is pooled
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLinkRights: with the rights that docs/fleet.md gives the account of a node, its link works, and does nothing in the name of another node.
func TestLinkRights(t *testing.T) {
	text, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, conf, _ := strings.Cut(string(text), "```nats\n")
	conf, _, found := strings.Cut(conf, "```")
	if !found {
		t.Fatal("docs/fleet.md has no configuration of a server")
	}
	seeds, publics := map[string]string{}, map[string]string{}
	conf = regexp.MustCompile(`UKEY_OF_(\w+)`).ReplaceAllStringFunc(conf, func(name string) string {
		if publics[name] != "" {
			return publics[name]
		}
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		seed, _ := pair.Seed()
		public, _ := pair.PublicKey()
		_, who, _ := strings.Cut(name, "_OF_")
		seeds[who] = filepath.Join(t.TempDir(), who)
		if err := os.WriteFile(seeds[who], seed, 0o600); err != nil {
			t.Fatal(err)
		}
		publics[name] = public
		return public
	})
	file := filepath.Join(t.TempDir(), "nats.conf")
	conf = regexp.MustCompile(`(?m)^(listen|tls|jetstream).*$`).ReplaceAllString(conf, "")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(t, o)
	as := func(who string) *link.Servers {
		p := h.policy()
		p.CredsFile = seeds[who]
		s, err := link.Connect(p, who, false, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	if err := as("ADMIN").Init(t.Context(), link.Limits{Age: time.Hour, Bytes: 1 << 20, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	n := newLinked(t, h, "build-07")
	n.creds = seeds["BUILD07"]
	n.link()
	n.says("connected")
	n.taints("pod 1", "secret")
	n.follows()
	n.begins(taint.Origin{PodUID: "2"})
	n.writes(5)
	q, verdict := n.ask("curl", "https://example.org/")
	people := as("ALICE")
	seen := 0
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = people.Events(ctx, "", true, func(node string, _ []byte) error {
		if seen++; node != "build-07" || seen < 6 {
			return nil
		}
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	var m notify.Message
	for m.Host == "" && ctx.Err() == nil {
		list, err := people.Questions(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			m = one
		}
	}
	signed, err := fleet.Sign(n.alice, approvalOf(m))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := people.Send(ctx, "build-07", signed); err != nil || !strings.Contains(text, q.ID) {
		t.Fatal(text, err)
	}
	<-verdict
	if signed, err = fleet.Sign(n.alice, fleet.Statement{Node: "elsewhere", Mode: "seal"}); err != nil {
		t.Fatal(err)
	}
	heard := ""
	err = people.Order(ctx, "build-07", signed, time.Minute, func(node, _ string, err error) { heard = fmt.Sprint(node, err) })
	if err != nil || !strings.Contains(heard, `build-07refused: it is for the node "elsewhere"`) {
		t.Error(err, heard)
	}
	n.unlink()
	for len(n.said) > 0 {
		if said := <-n.said; strings.Contains(strings.ToLower(said), "permission") {
			t.Errorf("a link with these rights says: %s", said)
		}
	}
	refused := make(chan error, 100)
	p := h.policy()
	option, err := nats.NkeyOptionFromSeed(seeds["BUILD07"])
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(p.Servers[0], option, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	violates := func(subject string) {
		t.Helper()
		select {
		case err := <-refused:
			if !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
				t.Errorf("%s: %v", subject, err)
			}
		case <-ctx.Done():
			t.Fatalf("%s: it may", subject)
		}
	}
	for _, subject := range []string{"weir.events.n2", "$KV.weir_questions.n2.abc234", "weir.answers.build-07", "$JS.API.STREAM.DELETE.weir_events", "$JS.API.STREAM.UPDATE.weir_events", "$KV.weir_orders.mode", "$KV.weir_taint.0123.n2", "$JS.API.STREAM.PURGE.KV_weir_taint"} {
		if err := nc.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		violates(subject)
	}
	for _, subject := range []string{"weir.answers.n2", "_INBOX.>", "_INBOX_" + publics["UKEY_OF_ALICE"] + ".>", "*.>", ">"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		violates(subject)
	}
}

// BenchmarkQuestion is how long a question takes to another machine's screen, and an answer from there to who waits; over a server on loopback.
func BenchmarkQuestion(b *testing.B) {
	h := newHub(b, &server.Options{})
	h.init()
	n := newLinked(b, h, "n1")
	n.link()
	n.says("connected")
	people := h.people()
	bucket, err := func() (jetstream.KeyValue, error) {
		js, err := jetstream.New(h.raw())
		if err != nil {
			return nil, err
		}
		return js.KeyValue(b.Context(), "weir_questions")
	}()
	if err != nil {
		b.Fatal(err)
	}
	screen, err := bucket.WatchAll(b.Context(), jetstream.UpdatesOnly())
	if err != nil {
		b.Fatal(err)
	}
	defer screen.Stop()
	var shown, answered, worst time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		q, verdict := n.ask("curl", fmt.Sprintf("https://example.org/%d", i))
		var m notify.Message
		for m.Question.ID != q.ID || m.Answer != nil {
			m = notify.Message{}
			if err := json.Unmarshal((<-screen.Updates()).Value(), &m); err != nil {
				b.Fatal(err)
			}
		}
		seen := time.Now()
		signed, err := fleet.Sign(n.alice, approvalOf(m))
		if err != nil {
			b.Fatal(err)
		}
		if text, err := people.Send(b.Context(), "n1", signed); err != nil {
			b.Fatal(text, err)
		}
		<-verdict
		shown, answered, worst = shown+seen.Sub(began), answered+time.Since(seen), max(worst, seen.Sub(began), time.Since(seen))
		time.Sleep(2 * time.Second) // a container may not ask faster
	}
	b.ReportMetric(shown.Seconds()*1e3/float64(b.N), "shown-ms")
	b.ReportMetric(answered.Seconds()*1e3/float64(b.N), "answered-ms")
	b.ReportMetric(worst.Seconds()*1e3, "worst-ms")
}
