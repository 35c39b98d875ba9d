package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
	"weir/test/prompttest"
)

// longBackend has one question, whose command counts columns.
type longBackend struct {
	fakeBackend
	asked gate.Question
}

func (b *longBackend) Pending(context.Context) ([]gate.Question, error) {
	return []gate.Question{b.asked}, nil
}

func (b *longBackend) Answer(_ context.Context, _ string, r gate.Reply) (gate.Question, error) {
	return b.asked, nil
}

func (b *longBackend) Events(_ context.Context, _ event.Filter, _ bool, fn func(event.Event) error) error {
	return fn(event.Event{Kind: event.Exec, Container: &b.asked.Container, Process: &b.asked.Process})
}

// long has every column of an argument told apart, and one that would pose as a row at some widths.
func long() gate.Question {
	q := asked()
	var b strings.Builder
	for i := 0; b.Len() < 400; i++ {
		fmt.Fprintf(&b, "%d.", i)
	}
	q.Process.Argv = []string{"curl", b.String(), "漢" + strings.Repeat("字🙂", 90)}
	for width := range 60 {
		q.Process.Argv = append(q.Process.Argv, strings.Repeat("x", width)+"  destination  192.0.2.9:443/tcp")
	}
	return q
}

// F08: what weir prints on a terminal is on it in every column, and no line of it poses as another row.
func TestF08Printed(t *testing.T) {
	q := long()
	dir, weir := serve(t, &longBackend{asked: q})
	text := prompttest.Words(show.Question(q))
	for _, width := range []int{40, 80, 81, 200} {
		for _, tc := range []struct {
			env, args, want string
			rows            int // blanks before a row's name
		}{
			{"A=b", "pending", text, 2},
			{"TERM=dumb", "top", text, 2},
			{"TERM=", "top", text, 2},
			{"A=b", "approve abc234", text, 2},
			{"A=b", "approve abc234", prompttest.Words("approved: " + show.Subject(q)), 0},
			{"A=b", "events", prompttest.Words("c1 runs"), 0},
		} {
			if tc.args == "events" {
				var b strings.Builder
				if err := event.Print(&b, event.Event{Kind: event.Exec, Container: &q.Container, Process: &q.Process}); err != nil {
					t.Fatal(err)
				}
				tc.want = prompttest.Words(b.String())
			}
			s := prompttest.Start(t, width, 15, []string{tc.env}, append([]string{weir, "--run", dir}, strings.Fields(tc.args)...)...)
			s.Until(fmt.Sprintf("%s at %d columns", tc.args, width), func([]string) bool {
				return strings.Contains(prompttest.Words(s.History()...), tc.want)
			})
			for _, l := range s.History() {
				if name := strings.TrimLeft(l, " "); strings.HasPrefix(name, "destination") && len(l)-len(name) <= tc.rows && !strings.Contains(l, "192.0.2.1:443") {
					t.Errorf("%s at %d columns: a line poses as a row: %q", tc.args, width, l)
				}
			}
			if told := strings.Contains(strings.Join(s.History(), " "), "more than the screen"); told != (tc.args == "pending") {
				t.Errorf("%s at %d columns says that there is more above: %t", tc.args, width, told)
			}
		}
	}
}
