package bridge

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/eventtest"

	"weir/internal/memory"
	"weir/internal/permission"
	"weir/internal/redact"
	"weir/internal/vault"
)

const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"

// rig is the bridge with its tools, a real gate, a real vault, and an HTTPS server of the test's own.
type rig struct {
	t      *testing.T
	gate   *gate.Gate
	vault  *vault.Vault
	memory *memory.Memory
	socket string
	web    *httptest.Server
	port   string
	logged strings.Builder

	mu      sync.Mutex
	rules   *permission.Set
	written []string // rules
	unruled error    // of Allow
	unused  error    // of Consume
	events  []event.Event
	tainted []string
	taint   error // of Taint
	logErr  error // of tool events
	trusted bool
	killed  bool
	checked int // how often killed was asked for
	mode    string
	bits    []string // taint of the container that the client is in
	tools   *ToolServer
	cgroup  uint64   // of the container that the client is in
	gone    bool     // the client is in none
	shown   []string // all that a client was given
	told    []string // progress
	sent    []string // to the web server
}

type names struct{}

func (names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, mode: "enforce", memory: memory.New(filepath.Join(t.TempDir(), "memory"))}
	dir := t.TempDir()
	db, err := bbolt.Open(filepath.Join(dir, "state.db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	logger := logrus.New()
	logger.SetOutput(&r.logged)
	logger.SetLevel(logrus.TraceLevel)
	if r.gate, err = gate.Open(gate.Options{DB: db, Log: r, Approver: true, Logger: logger}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.gate.Close)
	key := filepath.Join(dir, "vault.key")
	if err := vault.MakeFile(key); err != nil {
		t.Fatal(err)
	}
	k, err := vault.FromFile(key)
	if err != nil {
		t.Fatal(err)
	}
	r.vault = vault.New(filepath.Join(dir, "vault.age"), k)
	fetcher := &vault.Fetcher{Vault: r.vault, Resolver: names{}}
	r.web = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.web.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.web.EnableHTTP2 = true
	r.web.StartTLS()
	t.Cleanup(r.web.Close)
	_, r.port, _ = net.SplitHostPort(r.web.Listener.Addr().String())

	server := New(r, logger)
	server.Use(Rules{Permissions: r})
	r.tools = NewToolServer(ToolOptions{Gate: approver{r}, Rules: r, Host: r, Vault: func() *vault.Fetcher { return fetcher }, Memory: r.memory, Logger: logger})
	server.Offer(r.tools)
	r.socket = filepath.Join(dir, "b.sock")
	if err := server.Listen(r.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(within); err != nil {
			t.Error(err)
		}
		r.check()
	})
	return r
}

// approver is the gate, whose approvals can fail to be used.
type approver struct{ r *rig }

func (a approver) Confirm(ctx context.Context, q gate.Request) gate.Verdict {
	return a.r.gate.Confirm(ctx, q)
}

func (a approver) Consume(id string) error {
	a.r.mu.Lock()
	err := a.r.unused
	a.r.mu.Unlock()
	if err != nil {
		return err
	}
	return a.r.gate.Consume(id)
}

func (r *rig) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.sent = append(r.sent, req.Header.Get("Authorization"))
	r.mu.Unlock()
	sent := req.Header.Get("Authorization")
	switch req.URL.Path {
	case "/401":
		w.Header().Set("X-Echo", sent)
		w.WriteHeader(http.StatusUnauthorized)
	case "/redirect":
		http.Redirect(w, req, "https://elsewhere.example.com/?"+sent, http.StatusFound)
		return
	case "/reset":
		panic(http.ErrAbortHandler)
	case "/long":
		fmt.Fprint(w, strings.Repeat("文", 500<<10/3), "the end")
		return
	case "/slow":
		<-req.Context().Done()
		return
	}
	fmt.Fprintf(w, "hello %s", sent)
}

// bind adds the key gh, bound to the web server.
func (r *rig) bind(hosts ...string) {
	r.t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.web.Certificate().Raw})
	if err := r.vault.Set("gh", "", []byte(secret), vault.Binding{Hosts: hosts, Networks: []string{"127.0.0.1"}, CA: string(ca)}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) host() string { return "example.com:" + r.port }

func (r *rig) allow(own, managed string) {
	r.t.Helper()
	set := parse(r.t, own, managed)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = set
}

func parse(t *testing.T, own, managed string) *permission.Set {
	t.Helper()
	set, warnings, err := permission.Parse(permission.File{Name: "p", Data: []byte(own)}, permission.File{Name: "m", Data: []byte(managed), Managed: true})
	if err != nil || len(warnings) > 0 {
		t.Error(err, warnings)
	}
	return set
}

// The rig is the bridge's host, the gate's log, the tools' host and their rules.

func (r *rig) Who(int) (Asker, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return Asker{}, errors.New("in no container")
	}
	return Asker{Container: event.Container{ID: "g-test", CgroupID: r.cgroup, Taint: r.bits}, Process: event.Process{PID: os.Getpid(), Start: 1}, Mode: r.mode}, nil
}

func (r *rig) Decide(context.Context, gate.Request) gate.Verdict { return gate.Verdict{} }

func (r *rig) Confirm(context.Context, gate.Request) gate.Verdict { return gate.Verdict{} }

func (r *rig) Deny(a Asker, command string, d event.Decision) error {
	return r.Write(event.Event{Kind: event.Verdict, Container: &a.Container, Process: &a.Process, Command: command, Verdict: &d})
}

func (r *rig) Withdraw(gate.Request, gate.Verdict) {}

func (r *rig) Called(Asker, string, bool) error {
	return errors.New("called for a tool of its own")
}

func (r *rig) Write(e event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	r.events = append(r.events, e)
	return nil
}

func (r *rig) Log(e event.Event) error {
	r.mu.Lock()
	err := r.logErr
	r.mu.Unlock()
	return errors.Join(err, r.Write(e))
}

func (r *rig) Taint(_ Asker, secret, corruption bool, why string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tainted = append(r.tainted, fmt.Sprintf("secret %v, corruption %v: %s", secret, corruption, why))
	return r.taint
}

func (r *rig) Trusts(Asker, netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trusted
}

func (r *rig) Check(c permission.Call, mode string) permission.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rules.Check(c, mode)
}

func (r *rig) Killed(string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checked++
	return r.killed
}

func (r *rig) Allow(rule string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unruled != nil {
		return r.unruled
	}
	r.written = append(r.written, rule)
	return nil
}

// check searches all that was said for the secret, and holds events against the schema.
func (r *rig) check() {
	r.t.Helper()
	scrub, err := redact.New([]byte(secret))
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := append(slices.Clone(r.shown), r.logged.String())
	all = append(append(append(all, r.written...), r.tainted...), r.told...)
	for _, e := range r.events {
		line, err := json.Marshal(e)
		if err != nil {
			r.t.Fatal(err)
		}
		eventtest.Check(r.t, line)
		all = append(all, string(line))
	}
	for _, text := range all {
		if scrub.String(text) != text {
			r.t.Errorf("the secret stands in %.300q", text)
		}
	}
}

// caller calls tools as weir-hook mcp does: each over a connection of its own, with the agent's session once it is known.
type caller struct {
	r       *rig
	session string
}

type callParams struct {
	Name      string
	Arguments any
	ToolUse   string
}

type callResult struct {
	IsError bool
	Meta    map[string]any
	Text    string
}

func (r *rig) client() *caller { return &caller{r: r} }

// CallTool makes a call; the error is that there is no answer.
func (c *caller) CallTool(ctx context.Context, p *callParams) (*callResult, error) {
	input, err := json.Marshal(p.Arguments)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(wire.Request{Type: wire.ToolCall, RequestID: "c1", ToolName: p.Name, ToolInput: input, ToolUseID: p.ToolUse, SessionID: c.session})
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("unix", c.r.socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(conn); ; {
		var a wire.CallAnswer
		if err := dec.Decode(&a); err != nil {
			return nil, err
		}
		if a.RequestID != "c1" {
			return nil, fmt.Errorf("the answer is to %q", a.RequestID)
		}
		if a.Progress != "" {
			c.r.mu.Lock()
			c.r.told = append(c.r.told, a.Progress)
			c.r.mu.Unlock()
			continue
		}
		if c.session == "" {
			c.session = a.SessionID
		}
		return &callResult{a.Decision != wire.Allow, a.Meta, a.Text + a.Reason}, nil
	}
}

// hook tells of a call as an agent's hook does, and gives the answer.
func (r *rig) hook(q wire.Request, tool string, input any) wire.Answer {
	r.t.Helper()
	q.Type, q.RequestID, q.ToolName = wire.ToolCheck, "1", "mcp__weir__"+tool
	var err error
	if q.ToolInput, err = json.Marshal(input); err != nil {
		r.t.Fatal(err)
	}
	line, err := json.Marshal(q)
	if err != nil {
		r.t.Fatal(err)
	}
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(append(line, '\n')); err != nil {
		r.t.Fatal(err)
	}
	var a wire.Answer
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = append(r.shown, a.Reason)
	return a
}

// call makes a call; text is what the model reads.
func (r *rig) call(s *caller, tool string, input any) (text string, res *callResult) {
	r.t.Helper()
	res, err := s.CallTool(r.t.Context(), &callParams{Name: tool, Arguments: input})
	if err != nil {
		r.t.Fatal(err)
	}
	data, err := json.Marshal(res)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = append(r.shown, string(data))
	return res.Text, res
}

// announced tells of a call as the main agent's, and makes it.
func (r *rig) announced(s *caller, mode, tool string, input any) (string, *callResult) {
	r.t.Helper()
	if a := r.hook(wire.Request{SessionID: "s1", PermissionMode: mode}, tool, input); a.Decision != wire.Allow {
		return a.Reason, &callResult{IsError: true}
	}
	return r.call(s, tool, input)
}

// person answers the next question, and gives its text.
func (r *rig) person(reply gate.Reply) <-chan string {
	text := make(chan string, 1)
	reply.By = "alice"
	go func() {
		for range 12_000 { // a minute
			if list := r.gate.Pending(); len(list) > 0 {
				_, err := r.gate.Answer(list[0].ID, reply)
				if err != nil {
					text <- err.Error()
					return
				}
				text <- list[0].Text
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		text <- "nobody was asked"
	}()
	return text
}

func (r *rig) request(path string) map[string]any {
	return map[string]any{"url": "https://" + r.host() + path, "vault_auth_key": "gh", "auth_scheme": "bearer", "reason": "to look\nat it"}
}

func (r *rig) uses() []event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []event.Event
	for _, e := range r.events {
		if e.Kind == event.Tool {
			list = append(list, e)
		}
	}
	return list
}
