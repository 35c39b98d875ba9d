package prompt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

// sensor is one with questions of the test's.
type sensor struct {
	mu      sync.Mutex
	list    []gate.Question
	past    []gate.Question
	replies []order
	err     error
	events  chan event.Event // nil: none comes

	counters   map[string]uint64
	containers []control.Container
	approvals  []gate.StandingApproval
	forbidden  bool // to answer
}

func (s *sensor) Events(ctx context.Context, f event.Filter, follow bool, fn func(event.Event) error) error {
	if !follow || f.Container != "g-1" {
		return errors.New("other events are asked for")
	}
	for {
		select {
		case e := <-s.events:
			if err := fn(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *sensor) Pending(context.Context) ([]gate.Question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list), s.err
}

func (s *sensor) History(context.Context, int) ([]gate.Question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.past), s.err
}

func (s *sensor) Answer(_ context.Context, id string, r gate.Reply) (gate.Question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forbidden {
		return gate.Question{}, control.Errorf(control.Denied, "refused: for another group")
	}
	i := slices.IndexFunc(s.list, func(q gate.Question) bool { return q.ID == id })
	if i < 0 {
		return gate.Question{}, errors.New("no such question")
	}
	q := s.list[i]
	s.replies = append(s.replies, order{id, r})
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(o gate.Question) bool {
		if o.ID != id && (r.Who != gate.WhoProgram || !o.Alike(q)) {
			return false
		}
		o.State, o.Outcome, o.By, o.Why = gate.StateDenied, gate.Denied, "root", r.Why
		if r.Allow {
			o.State, o.Outcome = gate.StateApproved, gate.Approved
		}
		s.past = append(s.past, o)
		return true
	})
	return q, nil
}

func (s *sensor) Status(context.Context) (control.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return control.Status{Mode: "enforce", Counters: s.counters}, s.err
}

func (s *sensor) Containers(context.Context) ([]control.Container, error) { return s.containers, nil }

func (s *sensor) Approvals(context.Context) ([]gate.StandingApproval, error) { return s.approvals, nil }

func (s *sensor) set(list, past []gate.Question, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.past, s.err = list, past, err
}

// screen is a pseudo-terminal and what was written to it.
type screen struct {
	t        *testing.T
	far, tty *os.File
	mu       sync.Mutex
	out      bytes.Buffer
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	far, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, far: far, tty: tty}
	s.size(80, 24)
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
	t.Cleanup(func() { tty.Close(); far.Close() })
	return s
}

func (s *screen) size(width, height uint16) {
	s.t.Helper()
	if err := pty.Setsize(s.far, &pty.Winsize{Cols: width, Rows: height}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// shows waits for text, and takes what was written up to it.
func (s *screen) shows(want string) {
	s.t.Helper()
	for range 3000 {
		s.mu.Lock()
		all := s.out.String()
		i := strings.Index(all, want)
		if i >= 0 {
			s.out.Next(i + len(want))
		}
		s.mu.Unlock()
		if i >= 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("no %q on the terminal: %q", want, s.text())
}

func (s *screen) types(keys string) {
	s.t.Helper()
	if _, err := s.far.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) mode() *unix.Termios {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// The whole way in a terminal: approve, deny with a reason, an end meanwhile, another
// size; then it is as it was.
func TestTop(t *testing.T) {
	s, fake := newScreen(t), &sensor{}
	a, b, c := asked("aaaaaa", "one"), asked("bbbbbb", "two"), asked("cccccc", "three")
	fake.set([]gate.Question{a, b, c}, nil, nil)
	before := s.mode()
	done := make(chan error, 1)
	go func() { done <- Top(t.Context(), fake, Options{By: "alice"}, s.tty, s.tty) }()
	s.shows("\x1b[?1049h")
	s.shows("> aaaaaa")
	s.shows("192.0.2.1:443/tcp")
	s.shows("a approve")
	s.types("a")
	s.shows("approve aaaaaa?")
	s.types("y")
	s.shows("aaaaaa: approved by root")
	s.shows("> bbbbbb")
	s.types("dr")
	s.shows("deny bbbbbb, reason")
	s.types("not known\r")
	s.shows("bbbbbb: denied by root: not known")
	s.size(50, 12)
	unix.Kill(os.Getpid(), unix.SIGWINCH)
	s.shows("\r\n\x1b[K" + strings.Repeat("-", 50) + "\r\n") // F08: nothing is cleared behind a full line
	over := c
	over.State, over.Outcome = gate.StateExpired, gate.Timeout
	fake.set(nil, []gate.Question{over}, nil)
	s.shows("cccccc: denied: nobody answered in time")
	fake.set(nil, nil, errors.New("the sensor is gone"))
	s.shows("weir: the sensor is gone")
	s.types("q")
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.shows("\x1b[?1049l")
	if diff := cmp.Diff(before, s.mode()); diff != "" {
		t.Error("the terminal is not as it was:\n" + diff)
	}
	want := []order{
		{"aaaaaa", gate.Reply{Allow: true, By: "alice", Shown: show.Question(a)}},
		{"bbbbbb", gate.Reply{By: "alice", Why: "not known", Shown: show.Question(b)}},
	}
	if diff := cmp.Diff(want, fake.replies, cmp.AllowUnexported(order{})); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

// However it ends, the terminal is put back.
func TestTopEnds(t *testing.T) {
	for name, end := range map[string]func(*screen, context.CancelFunc){
		"signal": func(_ *screen, cancel context.CancelFunc) { cancel() },
		"ctrl-C": func(s *screen, _ context.CancelFunc) { s.types("\x03") },
	} {
		t.Run(name, func(t *testing.T) {
			s, fake := newScreen(t), &sensor{}
			fake.set([]gate.Question{asked("aaaaaa")}, nil, nil)
			before := s.mode()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- Top(ctx, fake, Options{By: "alice"}, s.tty, s.tty) }()
			s.shows("> aaaaaa")
			end(s, cancel)
			if err := <-done; err != nil {
				t.Error(err)
			}
			s.shows("\x1b[?25h\x1b[?1049l")
			if diff := cmp.Diff(before, s.mode()); diff != "" {
				t.Error("the terminal is not as it was:\n" + diff)
			}
			cancel()
		})
	}
	t.Run("no sensor", func(t *testing.T) {
		s, fake := newScreen(t), &sensor{err: errors.New("no sensor is running")}
		if err := Top(t.Context(), fake, Options{}, s.tty, s.tty); err != fake.err {
			t.Error(err)
		}
		if s.text() != "" {
			t.Errorf("written: %q", s.text())
		}
	})
}

// Who confirms and ends it at once has answered all the same.
func TestTopEndsAfterAnswers(t *testing.T) {
	s, fake := newScreen(t), &sensor{}
	fake.set([]gate.Question{asked("aaaaaa")}, nil, nil)
	done := make(chan error, 1)
	go func() { done <- Top(t.Context(), fake, Options{By: "alice"}, s.tty, s.tty) }()
	s.shows("> aaaaaa")
	fake.mu.Lock() // the sensor is slow
	s.types("ayq")
	s.shows("\x1b[?1049l")
	fake.mu.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
	fake.mu.Lock()
	defer fake.mu.Unlock()
	if len(fake.replies) != 1 || fake.replies[0].id != "aaaaaa" {
		t.Errorf("%+v", fake.replies)
	}
}

// What is refused after it was ended is told by its error, and what was on the screen is not told again.
func TestTopEndsBeforeRefusal(t *testing.T) {
	for _, at := range []bool{true, false} {
		s, fake := newScreen(t), &sensor{}
		fake.set([]gate.Question{asked("aaaaaa")}, nil, nil)
		done := make(chan error, 1)
		go func() { done <- Top(t.Context(), fake, Options{By: "alice"}, s.tty, s.tty) }()
		s.shows("> aaaaaa")
		fake.mu.Lock()
		fake.forbidden = true
		if at {
			s.types("ayq")
			s.shows("\x1b[?1049l")
			fake.mu.Unlock()
		} else {
			fake.mu.Unlock()
			s.types("ay")
			s.shows("aaaaaa: refused: for another group")
			s.types("q")
		}
		if err := <-done; (err != nil) != at || at && err.Error() != "aaaaaa: refused: for another group" {
			t.Errorf("ended at once %v: %v", at, err)
		}
	}
}

// B51: nothing but the program's own sequences reaches the terminal.
func TestB51Top(t *testing.T) {
	s, fake := newScreen(t), &sensor{}
	fake.set([]gate.Question{asked("aaaaaa", "\x1b]0;owned\x07", "\x9b2J", "\u202eabc", "\r\nstate  held")}, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Top(ctx, fake, Options{By: "alice"}, s.tty, s.tty) }()
	for i := 0; i < 3000 && strings.Count(s.text(), "a approve") < 3; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	out := s.text()
	out = out[:strings.LastIndex(out, "a approve")]
	for _, own := range []string{enter, leave, home, rest, "\r\n"} {
		out = strings.ReplaceAll(out, own, "")
	}
	if !strings.Contains(out, "owned") || strings.ContainsAny(out, "\x1b\x07\u009b\u202e\r\n") || strings.Contains(out, "\x9b") {
		t.Errorf("%q", out)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Keys are what a terminal sends for them, also in parts, and in its application mode. What is pasted is no key.
func TestKeys(t *testing.T) {
	s, fake := newScreen(t), &sensor{list: []gate.Question{asked("aaaaaa"), asked("bbbbbb"), asked("cccccc")}}
	done := make(chan error, 1)
	go func() { done <- Top(t.Context(), fake, Options{By: "alice"}, s.tty, s.tty) }()
	s.shows("> aaaaaa")
	for _, k := range []struct{ sends, shows string }{
		{"\x1bOB", "> bbbbbb"}, {"\x1b[B", "> cccccc"}, {"\x1b[A", "> bbbbbb"}, {"k", "> aaaaaa"}, {"\x1b[200~djy\x1b[201~", "what was pasted is no key"},
		{"d", "deny aaaaaa?"}, {"r", "deny aaaaaa, reason"}, {"é\xffe\u0301漢", "no): ée\u0301\\u6f22"}, {"\x1b[200~x\ny\x1b[201~", "\\u6f22xy"}, {"\x7f\x7f\x7f\x7f\x7f", "no): é\x1b"}, {"\x1b", "nothing was answered"},
		{"/", "find (enter"}, {"b b", "have 'b b'"}, {"\x1b", "> aaaaaa"},
	} {
		s.types(k.sends)
		s.shows(k.shows)
	}
	s.types("\x1b[")
	s.types("B")
	s.shows("> bbbbbb")
	s.types("qdy")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(fake.replies) > 0 {
		t.Errorf("answered: %+v", fake.replies)
	}
}

// Whom the sensor lets look, and not answer, is offered no key that answers.
func TestTopLooks(t *testing.T) {
	s, fake := newScreen(t), &sensor{list: []gate.Question{asked("aaaaaa")}, forbidden: true}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Top(ctx, fake, Options{By: "alice"}, s.tty, s.tty) }()
	s.shows("you may look, not answer")
	s.types("dy")
	s.shows("you may look, and not answer")
	if strings.Contains(s.text(), "approve") {
		t.Errorf("%q", s.text())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Without a terminal, questions and their ends are told once each; a sensor that is
// away for a while ends nothing.
func TestLines(t *testing.T) {
	fake := &sensor{err: errors.New("no sensor is running")}
	if err := Lines(t.Context(), fake, nil, nil); err != fake.err {
		t.Error(err)
	}
	a, b := asked("aaaaaa"), asked("bbbbbb")
	fake.set([]gate.Question{a}, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan string, 10)
	away := make(chan error, 10)
	done := make(chan error, 1)
	go func() {
		done <- Lines(ctx, fake, func(q gate.Question) error { told <- q.ID + " " + q.State; return nil }, func(err error) { away <- err })
	}()
	if got := <-told; got != "aaaaaa pending" {
		t.Error(got)
	}
	fake.set(nil, nil, errors.New("away"))
	if err := <-away; err.Error() != "away" {
		t.Error(err)
	}
	over := a
	over.State = gate.StateDenied
	fake.set([]gate.Question{b}, []gate.Question{over}, nil)
	if got := <-told + ", " + <-told; got != "aaaaaa denied, bbbbbb pending" {
		t.Error(got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	full := errors.New("no space left")
	if err := Lines(t.Context(), fake, func(gate.Question) error { return full }, nil); err != full {
		t.Error(err)
	}
}
