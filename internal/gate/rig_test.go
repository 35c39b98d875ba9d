package gate

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/bbolt"

	"weir/internal/event"
	"weir/test/eventtest"
)

// memory is a log that can be made to fail.
type memory struct {
	mu     sync.Mutex
	events []event.Event
	fail   func(event.Event) error
}

func (m *memory) Write(e event.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(e); err != nil {
			return err
		}
	}
	m.events = append(m.events, e)
	return nil
}

func (m *memory) setFail(f func(event.Event) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = f
}

// brief tells the events as "kind decision reason".
func (m *memory) brief() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, e := range m.events {
		s := string(e.Kind)
		if e.Verdict != nil {
			s += " " + e.Verdict.Decision + " " + e.Verdict.Reason
		}
		all = append(all, s)
	}
	return all
}

// check holds the events, or the first of many, against the schema.
func (m *memory) check(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events[:min(len(m.events), 30)] {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		eventtest.Check(t, line)
	}
}

var errFull = errors.New("no space left on device")

func full(event.Event) error { return errFull }

// rig is a gate on a real database, inside a bubble whose time stands still
// while anything runs.
type rig struct {
	t    *testing.T
	o    Options
	path string
	log  *memory
	*Gate
}

// bubble runs f with a gate that has an approver and 300 s limits.
func bubble(t *testing.T, f func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, path: filepath.Join(t.TempDir(), "weir.db"), log: &memory{}}
		r.o = Options{Log: r.log, Approver: true}
		r.open()
		defer func() { r.Close(); r.o.DB.Close() }()
		f(r)
		r.log.check(t)
	})
}

func (r *rig) open() {
	r.t.Helper()
	db, err := bbolt.Open(r.path, 0o600, &bbolt.Options{NoSync: true, Timeout: time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	r.o.DB = db
	if r.Gate, err = Open(r.o); err != nil {
		r.t.Fatal(err)
	}
}

// crash ends the daemon without a word to the gate, and starts another one.
func (r *rig) crash() {
	r.t.Helper()
	if err := r.o.DB.Close(); err != nil {
		r.t.Fatal(err)
	}
	old := r.Gate
	r.open()
	old.Close() // lets the goroutines of the dead daemon end
	synctest.Wait()
}

// call is one Decide under way.
type call struct {
	t      *testing.T
	cancel context.CancelFunc
	done   chan Verdict
}

func (r *rig) ask(req Request) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{t: r.t, cancel: cancel, done: make(chan Verdict, 1)}
	g := r.Gate
	go func() { c.done <- g.Decide(ctx, req) }()
	synctest.Wait()
	return c
}

func (c *call) blocks() {
	c.t.Helper()
	synctest.Wait()
	select {
	case v := <-c.done:
		c.t.Fatalf("Decide gave %+v; want it to wait", v)
	default:
	}
}

func (c *call) gives(d Decision, reason Reason) Verdict {
	c.t.Helper()
	synctest.Wait()
	select {
	case v := <-c.done:
		if v.Decision != d || v.Reason != reason {
			c.t.Fatalf("Decide gave %v %q (%s); want %v %q", v.Decision, v.Reason, v.Text, d, reason)
		}
		if v.Text == "" {
			c.t.Errorf("verdict %q has no text", v.Reason)
		}
		return v
	default:
		c.t.Fatalf("Decide waits; want %v %q", d, reason)
	}
	return Verdict{}
}

// leaves ends the asker before it was answered.
func (c *call) leaves() {
	c.t.Helper()
	c.cancel()
	c.gives(Deny, Cancelled)
}

// one gives the id of the only pending question.
func (r *rig) one() string {
	r.t.Helper()
	p := r.Pending()
	if len(p) != 1 {
		r.t.Fatalf("%d questions are pending; want 1: %+v", len(p), p)
	}
	return p[0].ID
}

func (r *rig) none() {
	r.t.Helper()
	if p := r.Pending(); len(p) != 0 {
		r.t.Fatalf("questions are pending: %+v", p)
	}
}

func (r *rig) answer(id string, allow bool) {
	r.t.Helper()
	if _, err := r.Answer(id, Reply{Allow: allow, By: "alice", Why: "because"}); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

func (r *rig) wantErr(got, want error) {
	r.t.Helper()
	if !errors.Is(got, want) {
		r.t.Fatalf("error is %v; want %v", got, want)
	}
}

func (r *rig) wantEvents(want ...string) {
	r.t.Helper()
	if d := cmp.Diff(want, r.log.brief(), cmpopts.EquateEmpty()); d != "" {
		r.t.Fatalf("events (-want +got):\n%s", d)
	}
}

func (r *rig) wantCount(reason Reason, n uint64) {
	r.t.Helper()
	if got := r.Counters()[reason]; got != n {
		r.t.Errorf("counter %s is %d; want %d", reason, got, n)
	}
}

// curl is a held curl of process 100 to 203.0.113.9:443.
func curl(change ...func(*Request)) Request {
	r := Request{
		Container: event.Container{ID: "c1", Name: "agent", Taint: []string{"corruption"}},
		Process: event.Process{
			PID: 100, Start: 5000, UID: 1000, Comm: "curl",
			Exe:  &event.File{Path: "/usr/bin/curl", Device: 8, Inode: 42},
			Argv: []string{"curl", "https://example.org"}, ArgvHash: 7,
		},
		Destination: event.Destination{Address: "203.0.113.9", Port: 443, Protocol: "tcp"},
		Held:        true,
		Mode:        modeEnforce,
		GrantBytes:  64 << 20, CopBytes: 4 << 20,
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

// retry is the same command in a new process.
func retry(r *Request) {
	r.Process.PID, r.Process.Start = r.Process.PID+1, r.Process.Start+1000
}

func unheld(r *Request) { r.Held = false }

func mode(m string) func(*Request) { return func(r *Request) { r.Mode = m } }

func repeat(s string, n int) []string { return slices.Repeat([]string{s}, n) }

const bucket = "questions"

// raw is a question as it is stored.
func (r *rig) raw(id string) (data []byte) {
	r.t.Helper()
	r.wantErr(r.o.DB.View(func(tx *bbolt.Tx) error {
		data = slices.Clone(tx.Bucket([]byte(bucket)).Get([]byte(id)))
		return nil
	}), nil)
	return data
}

// put stores it as it is.
func (r *rig) put(id string, data []byte) {
	r.t.Helper()
	r.wantErr(r.o.DB.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(bucket))
		if err != nil {
			return err
		}
		return b.Put([]byte(id), data)
	}), nil)
}

// stored is what tests look at of a stored question.
type stored struct {
	State     string `json:"state"`
	ClaimedBy struct {
		PID   int    `json:"pid"`
		Start uint64 `json:"start"`
	} `json:"claimed_by"`
}

func (r *rig) record(id string) (s stored) {
	r.t.Helper()
	r.wantErr(json.Unmarshal(r.raw(id), &s), nil)
	return s
}
