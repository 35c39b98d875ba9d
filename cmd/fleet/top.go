package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/fleet/link"
	"weir/internal/gate"
	"weir/internal/notify"
	"weir/internal/prompt"
	"weir/internal/show"
)

func (p *place) topCommand() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "top",
		Short: "follow the questions of all nodes in the terminal, and answer by key",
		Long: `Shows the questions of all nodes that wait, and what becomes of them. Keys answer; the last line names them. Your key signs what was on the
screen. Without a key's file you see the same, and answer nothing. Without a terminal that can be drawn on it prints the questions, and what became of them.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := fleet.ReadKey(key)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			s, err := p.connect(cmd)
			if err != nil {
				return err
			}
			defer s.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP, syscall.SIGQUIT)
			defer stop()
			return top(ctx, newNodes(ctx, s, own), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	keyFlag(c, &key, "the `file` of your key")
	return c
}

func top(ctx context.Context, n *nodes, stdin io.Reader, stdout, stderr io.Writer) error {
	if s, ok := stdout.(show.Screen); ok {
		out, drawn := s.Writer.(*os.File)
		if in, ok := stdin.(*os.File); ok && drawn && term.IsTerminal(int(in.Fd())) && prompt.Draws(out, os.Getenv("TERM")) {
			return prompt.Top(ctx, n, prompt.Options{Words: words}, in, out)
		}
	}
	return prompt.Lines(ctx, n, func(q gate.Question) error {
		text := fmt.Sprintf("%s: %s\n", q.ID, show.Outcome(q))
		if q.State == gate.StatePending {
			text = n.printed(q.ID)
		}
		_, err := io.WriteString(stdout, text)
		return err
	}, func(err error) {
		fmt.Fprintf(stderr, "weir-fleet top: %s: trying again\n", event.Visible(event.Plain(err)))
	})
}

// nodes are all of them, as prompt sees one sensor.
type nodes struct {
	*link.Servers
	key  ed25519.PrivateKey // nil: who looks has none
	mu   sync.Mutex
	all  map[string]notify.Message
	err  error
	news chan struct{} // closed when there are
}

func newNodes(ctx context.Context, s *link.Servers, key ed25519.PrivateKey) *nodes {
	n := &nodes{Servers: s, key: key, news: make(chan struct{})}
	first := make(chan struct{})
	go func() {
		told := sync.OnceFunc(func() { close(first) })
		defer told()
		for ctx.Err() == nil {
			err := s.Watch(ctx, func(all map[string]notify.Message) error { n.take(all, nil); told(); return nil })
			n.take(nil, err)
			told()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}()
	<-first
	return n
}

// take keeps what the nodes have told, or why nobody knows.
func (n *nodes) take(all map[string]notify.Message, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err = err; err == nil {
		n.all = map[string]notify.Message{}
		for _, m := range all {
			n.all[name(m)] = m
		}
	}
	close(n.news)
	n.news = make(chan struct{})
}

func (n *nodes) look() (map[string]notify.Message, <-chan struct{}, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all, n.news, n.err
}

func (n *nodes) printed(id string) string {
	all, _, _ := n.look()
	return printed(all[id])
}

// Pending implements prompt.Sensor.
func (n *nodes) Pending(context.Context) ([]gate.Question, error) {
	all, _, err := n.look()
	var list []gate.Question
	for _, m := range waiting(all) {
		list = append(list, question(m))
	}
	return list, err
}

// History implements prompt.Sensor.
func (n *nodes) History(context.Context, int) ([]gate.Question, error) {
	all, _, err := n.look()
	var list []gate.Question
	for _, m := range all {
		if m.Answer != nil {
			list = append(list, question(m))
		}
	}
	return list, err
}

// Events implements prompt.Sensor: fn is told that something has changed.
func (n *nodes) Events(ctx context.Context, _ event.Filter, _ bool, fn func(event.Event) error) error {
	for {
		_, news, _ := n.look()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		}
		if err := fn(event.Event{}); err != nil {
			return err
		}
	}
}

// Answer implements prompt.Sensor: it signs for what was on the screen.
func (n *nodes) Answer(ctx context.Context, id string, r gate.Reply) (gate.Question, error) {
	if n.key == nil {
		return gate.Question{}, control.Errorf(control.Denied, "there is no key to sign with")
	}
	node, id, ok := strings.Cut(id, "/")
	if !ok {
		return gate.Question{}, errors.New("it is no question")
	}
	s := fleet.Statement{Node: node, Question: id, Answer: fleet.Deny, Why: r.Why}
	if r.Allow {
		s.Answer, s.Scope, s.Shown = fleet.Approve, r.Scope, gate.Digest(r.Shown)
	}
	_, err := send(ctx, n.Servers, n.key, s)
	return gate.Question{}, err
}

// Status implements prompt.Overview. Like the rest of it, it is for who is on the node.
func (n *nodes) Status(context.Context) (control.Status, error) { return control.Status{}, nil }

// Containers implements prompt.Overview.
func (n *nodes) Containers(context.Context) ([]control.Container, error) { return nil, nil }

// Approvals implements prompt.Overview.
func (n *nodes) Approvals(context.Context) ([]gate.StandingApproval, error) { return nil, nil }

// question is m as a line of a list. Its program has no file, so that each is answered by itself: its own text alone is what is signed.
func question(m notify.Message) gate.Question {
	text, _, err := read(m)
	if err != nil {
		text = err.Error() + "\n" // which is no sensor's, so it approves nothing
	}
	b := m.Question
	q := gate.Question{
		ID: name(m), Container: event.Container{ID: m.Host + "/" + b.Container, Name: m.Host + "/" + cmp.Or(b.Name, b.Container), Taint: b.Taint}, Process: event.Process{Argv: strings.Fields(b.Command)},
		Chain: make([]event.Member, len(b.Chain)), Half: b.Half, Asked: b.Asked, Deadline: b.Deadline, State: gate.StatePending, Shown: &event.Shown{Text: text},
	}
	if b.Destination != nil {
		q.Destination = *b.Destination
	}
	if a := m.Answer; a != nil {
		q.State, q.Outcome, q.By, q.Why, q.Scope, q.Answered = a.State, gate.Reason(a.Outcome), a.By, a.Why, a.Scope, a.At
		q.Half = nil
	}
	return q
}

func words(q gate.Question) string { return q.Shown.Text }
