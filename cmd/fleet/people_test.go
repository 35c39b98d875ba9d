package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/gate"
	"weir/internal/notify"
	"weir/internal/policy"
)

// sensor is what weir-fleet run asks of one: a question that waits until somebody signed an answer.
type sensor struct {
	control.Backend
	fleet policy.Fleet
	mu    sync.Mutex
	asked gate.Question
	got   []fleet.Statement
}

func (s *sensor) Events(ctx context.Context, _ event.Filter, _ bool, _ func(event.Event) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *sensor) Containers(context.Context) ([]control.Container, error) { return nil, nil }

func (s *sensor) Moved(ctx context.Context, _ []control.Elsewhere) ([]control.Wanted, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *sensor) Log(context.Context) (*event.Stored, error) { return event.NewStored(nil), nil }

func (s *sensor) Pending(context.Context) ([]gate.Question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked.State != gate.StatePending {
		return nil, nil
	}
	return []gate.Question{s.asked}, nil
}

func (s *sensor) History(context.Context, int) ([]gate.Question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []gate.Question{s.asked}, nil
}

func (s *sensor) Signed(_ context.Context, signed control.Signed) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	statement, err := fleet.Open(signed, s.fleet, "build-07", time.Now())
	if err != nil {
		return "", control.Errorf(control.Denied, "refused: %w", err)
	}
	s.got = append(s.got, statement)
	if statement.Question == s.asked.ID {
		s.asked.State, s.asked.Outcome, s.asked.By = gate.StateDenied, gate.Denied, "fleet operator "+statement.By
	}
	return "done", nil
}

// TestPeopleB151 goes the whole way from the command line of one person to a sensor, over a server of NATS: what is approved is what was on the screen.
func TestPeopleB151(t *testing.T) {
	dir := t.TempDir()
	hub, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go hub.Start()
	defer hub.Shutdown()
	if !hub.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	url := fmt.Sprintf("nats://127.0.0.1:%d", hub.Addr().(*net.TCPAddr).Port)
	at := func(name string) string { return filepath.Join(dir, name) }
	try := func(stdin string, args ...string) (int, string, string) {
		t.Helper()
		var out, errs bytes.Buffer
		code := run(t.Context(), append(args, "--policy", at("fleet.yaml")), strings.NewReader(stdin), &out, &errs)
		return code, out.String(), errs.String()
	}
	must := func(want, stdin string, args ...string) (out string) {
		t.Helper()
		code, out, told := try(stdin, args...)
		if code != 0 || !strings.Contains(out+told, want) {
			t.Fatalf("%q: code %d, %s%s, want %q", args, code, out, told, want)
		}
		return out
	}
	fails := func(want, stdin string, args ...string) {
		t.Helper()
		if code, out, told := try(stdin, args...); code == 0 || !strings.Contains(told, want) || out != "" {
			t.Errorf("%q: code %d, %s%s, want %q", args, code, out, told, want)
		}
	}

	fails("fleet.yaml", "", "pending")
	if err := os.WriteFile(at("fleet.yaml"), []byte("fleet: {node: build-07, servers: ["+url+"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails("weir_questions", "", "pending")
	fails("accepted are", "", "init", "--replicas", "6")
	fails("accepted are", "", "init", "--bytes", "much")
	must("", "", "init", "--bytes", "64MiB", "--age", "1h")
	must("", "", "init", "--bytes", "128MiB")
	must("no questions", "", "pending")

	lines := must("the key is in", "", "operator", "add", "alice", "--key", at("key"))
	p, err := policy.Parse("p", []byte(lines))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	s := &sensor{fleet: p.Fleet, asked: gate.Question{
		ID: "abc234", State: gate.StatePending, Asked: now, Deadline: now.Add(time.Hour), Held: true, Container: event.Container{ID: "c1", Name: "web", Taint: []string{"secret"}},
		Process:     event.Process{PID: 7, Comm: "curl", Exe: &event.File{Path: "/usr/bin/curl"}, Argv: []string{"curl", "https://example.org/", strings.Repeat("x", 300)}},
		Destination: event.Destination{Address: "203.0.113.9", Port: 443, Protocol: "tcp"},
	}}
	c, err := control.Listen(at("run"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- c.Serve(ctx, s, nil) }()
	defer func() { cancel(); <-served }()
	var unlink func()
	relink := func() {
		ctx, cancel := context.WithCancel(ctx)
		linked := make(chan int)
		var said bytes.Buffer
		go func() {
			linked <- run(ctx, []string{"run", "--policy", at("fleet.yaml"), "--run", at("run"), "--state", at("state")}, nil, &said, &said)
		}()
		unlink = func() {
			cancel()
			if code := <-linked; code != 0 {
				t.Errorf("the link ended with %d: %s", code, &said)
			}
		}
	}
	relink()
	defer func() { unlink() }()
	pending := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(pending, "build-07/abc234") && time.Now().Before(end); {
		pending = must("", "", "pending")
	}
	if !strings.Contains(pending, "curl https://example.org/") || !strings.Contains(pending, "203.0.113.9") {
		t.Fatal(pending)
	}
	for _, args := range [][]string{{"pending"}, {"approve", "build-07/abc234", "--key", at("key")}} { // no line is one that a container has made
		out := onTerminal(t, func(tty *os.File) {
			run(t.Context(), append(args, "--policy", at("fleet.yaml")), strings.NewReader("no\n"), tty, tty)
		})
		if !strings.Contains(out, "above") {
			t.Errorf("%q: more than the screen has, and nothing tells it:\n%s", args, out)
		}
		shown, _, _ := strings.Cut(out, "approve this") // what follows is no terminal's echo
		for line := range strings.Lines(shown) {
			line = strings.TrimRight(line, "\r\n")
			if len(line) > 40 || strings.HasPrefix(strings.TrimSpace(line), "xx") && !strings.HasPrefix(line, strings.Repeat(" ", 17)) {
				t.Errorf("%q: the terminal breaks %q, or it poses as one of its own", args, line)
			}
		}
	}
	_, hash, _ := strings.Cut(pending, "hash ")
	hash = strings.TrimSpace(hash)
	signed := func() []fleet.Statement {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.got
	}

	fails("no node asks", "", "approve", "build-07/zzzzzz", "--key", at("key"))
	fails("no node asks", "", "approve", "build-08/abc234", "--key", at("key"))
	fails("give a question", "", "approve", "--key", at("key"))
	fails("it does not exist", "", "approve", "build-07/abc234", "--key", at("none"))
	fails("scope", "yes\n", "approve", "build-07/abc234", "--key", at("key"), "--scope", "0")
	for _, answer := range []string{"", "no\n", "\n"} {
		fails("nothing was answered", answer, "approve", "build-07/abc234", "--key", at("key"))
	}
	fails("nothing was answered", "yes\n", "approve", "build-07/abc234", "--key", at("key"), "--hash", gate.Digest("x"))

	// Whoever has the servers shows another text: nobody signs what they did not see.
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.KeyValue(ctx, "weir_questions")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := bucket.Get(ctx, "build-07.abc234")
	if err != nil {
		t.Fatal(err)
	}
	forge := func(text string) {
		t.Helper()
		var m notify.Message
		if err := json.Unmarshal(entry.Value(), &m); err != nil {
			t.Fatal(err)
		}
		m.Shown.Text = text // and the hash says that it is the old one
		data, err := json.Marshal(m)
		if err == nil {
			_, err = bucket.Put(ctx, "build-07.abc234", data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	forge("program      /usr/bin/true\n")
	fails("nothing was answered", "", "approve", "build-07/abc234", "--key", at("key"), "--hash", hash)
	forge("program      \x1b[2J/usr/bin/true\n")
	fails("characters that are not shown", "yes\n", "approve", "build-07/abc234", "--key", at("key"))
	if out := must("not one of a sensor's", "", "pending"); strings.Contains(out, "\x1b") {
		t.Error("an escape of whoever has the servers comes to the terminal")
	}
	if _, err := bucket.Put(ctx, "build-07.abc234", entry.Value()); err != nil {
		t.Fatal(err)
	}
	posing := bytes.ReplaceAll(entry.Value(), []byte(`"build-07"`), []byte(`"posing\u001b[2J"`))
	if _, err := js.Publish(ctx, "$KV.weir_questions.posing\x1b[2J.abc234", posing); err != nil || bytes.Equal(posing, entry.Value()) {
		t.Fatal(err)
	}
	if out := must("build-07/abc234", "", "pending"); strings.Contains(out, "posing") {
		t.Errorf("no node can be called so: %s", out)
	}
	if got := signed(); len(got) > 0 {
		t.Fatalf("%+v was signed", got)
	}

	must("done", "", "approve", "build-07/abc234", "--key", at("key"), "--hash", hash, "--scope", "2", "--why", "known")
	if got := signed(); len(got) != 1 || got[0].By != "alice" || got[0].Answer != fleet.Approve || got[0].Shown != hash || got[0].Scope != 2 || got[0].Why != "known" {
		t.Errorf("%+v", got)
	}
	for end := time.Now().Add(time.Minute); strings.Contains(pending, "abc234") && time.Now().Before(end); {
		pending = must("", "", "pending")
	}
	fails("already answered: denied by fleet operator alice", "yes\n", "approve", "build-07/abc234", "--key", at("key"))
	fails("already answered", "", "deny", "build-07/abc234", "--key", at("key"))

	// Another question, with a yes; and by who is no operator there.
	s.mu.Lock()
	s.asked.ID, s.asked.State = "def567", gate.StatePending
	s.mu.Unlock()
	for end := time.Now().Add(time.Minute); !strings.Contains(pending, "def567") && time.Now().Before(end); {
		pending = must("", "", "pending")
	}
	must("the key is in", "", "operator", "add", "mallory", "--key", at("other"))
	fails("no operator's", "yes\n", "approve", "build-07/def567", "--key", at("other"))
	must("done", "yes\n", "approve", "build-07/def567", "--key", at("key"))

	// Two people see the same on their screens: the first answer counts, it is for what was on the screen, and both see whose it was.
	t.Setenv("TERM", "xterm")
	for end := time.Now().Add(time.Minute); strings.Contains(pending, "def567") && time.Now().Before(end); {
		pending = must("", "", "pending")
	}
	s.mu.Lock()
	s.asked.ID, s.asked.State, s.asked.By, s.asked.Half = "ghi789", gate.StatePending, "", []string{"carol"}
	s.asked.Process.Argv = []string{"curl", "https://example.org/"}
	s.mu.Unlock()
	screens := []*screen{onScreen(t, "top", "--policy", at("fleet.yaml"), "--key", at("key")), onScreen(t, "top", "--policy", at("fleet.yaml"), "--key", at("other")), onScreen(t, "top", "--policy", at("fleet.yaml"), "--key", at("none"))}
	for _, one := range screens {
		one.shows("build-07/ghi789")
		one.shows("https://example.org/")
		one.shows("carol; another person has to approve the same")
	}
	screens[0].types("l")
	screens[0].shows("an approval from elsewhere is for once")
	screens[2].types("a")
	screens[2].shows("you may look, and not answer")
	screens[1].types("a")
	screens[1].shows("approve build-07/ghi789?")
	screens[1].types("y")
	screens[1].shows("no operator's") // it is mallory's
	before := len(signed())
	screens[0].types("a")
	screens[0].shows("approve build-07/ghi789?")
	for _, one := range screens {
		one.anew()
	}
	screens[0].types("y")
	for _, one := range screens {
		one.shows("build-07/ghi789: denied by fleet operator alice") // as this sensor does
		one.shows("0 questions wait")
		one.ends()
	}
	s.mu.Lock()
	text, _ := notify.Shown(s.asked)
	s.mu.Unlock()
	if got := signed()[before:]; len(got) != 1 || got[0].Answer != fleet.Approve || got[0].Question != "ghi789" || got[0].Shown != gate.Digest(text) {
		t.Errorf("%+v, shown %s", got, text)
	}

	// Orders: by who may, to the node that is there, and to one that was away; the newest comes first, so that no older one is in force for a moment.
	order := []string{"mode", "seal", "--why", "x", "--key", at("key"), "--wait", "1m", "--node", "build-07"}
	if code, out, told := try("", order...); code == 0 || !strings.Contains(out, "build-07: refused: alice does not have the role mode") || !strings.Contains(told, "1 did not take it, 0 did") {
		t.Errorf("code %d, %s%s", code, out, told)
	}
	s.mu.Lock()
	s.fleet.Operators[0].Roles = []string{policy.RoleMode}
	s.mu.Unlock()
	must("1 node took it", "", order...)
	if got := signed(); got[len(got)-1].Mode != "seal" || got[len(got)-1].Node != "build-07" || got[len(got)-1].Why != "x" {
		t.Errorf("%+v", got)
	}
	for _, bad := range [][]string{{"seal", "--why", "x"}, {"seal", "--every"}, {"open", "--every", "--why", "x"}, {"seal", "--every", "--node", "a", "--why", "x"}, {"seal", "--node", "*", "--why", "x"}, {}} {
		if code, _, told := try("", append([]string{"mode", "--key", at("key")}, bad...)...); code != 2 {
			t.Errorf("%q: code %d, %s", bad, code, told)
		}
	}
	s.mu.Lock()
	s.fleet.Operators[0].Roles = []string{policy.RoleMode, policy.RolePolicy}
	s.mu.Unlock()
	for name, text := range map[string]string{"good.yaml": "approval_ttl: 31\n", "bad.yaml": "approval: 31\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fails("bad.yaml:1", "", "policy", at("bad.yaml"), "--every", "--why", "x", "--key", at("key"))
	if err := os.WriteFile(at("long.yaml"), []byte("version: 1\n"+strings.Repeat("# \"\"\"\"\"\"\"\"\"\n", 20<<10)), 0o600); err != nil {
		t.Fatal(err)
	}
	fails("long.yaml cannot be signed", "", "policy", at("long.yaml"), "--every", "--why", "x", "--key", at("key"))
	must("1 node took it", "", "policy", at("good.yaml"), "--node", "build-07", "--why", "x", "--key", at("key"), "--wait", "1m")
	if got := signed(); got[len(got)-1].Policy != "approval_ttl: 31\n" || got[len(got)-1].Expires.Sub(got[len(got)-1].Signed) != fleet.MostPolicy {
		t.Errorf("%+v", got)
	}
	before = len(signed())
	unlink()
	must("0 nodes took it", "", "mode", "observe", "--node", "build-07", "--why", "older", "--key", at("key"), "--wait", "1ms")
	must("0 nodes took it", "", "mode", "seal", "--every", "--why", "newer", "--key", at("key"), "--wait", "1ms")
	relink()
	for end := time.Now().Add(time.Minute); len(signed()) < before+4 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if got := signed()[before:]; len(got) != 4 || got[0].Why != "newer" || got[0].Node != "weir/*" || got[1].Why != "older" || got[2].Policy == "" || got[3].Mode != "seal" || got[3].Why != "x" {
		t.Errorf("%+v", got)
	}
}

// screen is a terminal on which a command runs.
type screen struct {
	t    *testing.T
	far  *os.File
	mu   sync.Mutex
	out  bytes.Buffer
	from int // what was drawn before counts no more
	done chan int
}

func onScreen(t *testing.T, args ...string) *screen {
	t.Helper()
	far, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close(); tty.Close() })
	if err := pty.Setsize(far, &pty.Winsize{Cols: 100, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, far: far, done: make(chan int, 1)}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := far.Read(buf)
			s.mu.Lock()
			s.out.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { s.done <- run(t.Context(), args, tty, tty, tty) }()
	return s
}

// anew has shows see only what is drawn from now on.
func (s *screen) anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = s.out.Len()
}

// shows waits until something was drawn.
func (s *screen) shows(want string) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		found := strings.Contains(s.out.String()[s.from:], want)
		s.mu.Unlock()
		if found {
			return
		}
	}
	s.t.Fatalf("no %q on the screen:\n%s", want, s.out.String())
}

func (s *screen) types(keys string) {
	s.t.Helper()
	if _, err := s.far.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// ends has the command end.
func (s *screen) ends() {
	s.t.Helper()
	s.types("q")
	if code := <-s.done; code != 0 {
		s.t.Errorf("it ended with %d", code)
	}
}

// onTerminal is what is written to one of 40 columns and 10 lines.
func onTerminal(t *testing.T, write func(tty *os.File)) string {
	t.Helper()
	far, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if err := pty.Setsize(far, &pty.Winsize{Cols: 40, Rows: 10}); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&shown, far) // until the other side is closed
	}()
	write(tty)
	tty.Close()
	<-done
	return shown.String()
}
