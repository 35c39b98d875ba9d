package main

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/gate"
	"weir/internal/show"
	"weir/test/prompttest"
)

// manyBackend has some questions, of which one ends before it is answered.
type manyBackend struct {
	fakeBackend
	mu    sync.Mutex
	asked []gate.Question
	took  []string
}

func (b *manyBackend) Pending(context.Context) ([]gate.Question, error) { return b.asked, nil }

func (b *manyBackend) Answer(_ context.Context, id string, r gate.Reply) (gate.Question, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.asked, func(q gate.Question) bool { return q.ID == id })
	if i < 0 || r.Shown != show.Question(b.asked[i]) {
		return gate.Question{}, gate.ErrUnknown
	}
	if id == "gone23" {
		return gate.Question{}, gate.ErrExpired
	}
	b.took = append(b.took, id)
	q := b.asked[i]
	if r.Allow {
		q.Outcome = gate.Approved
	}
	return q, nil
}

// F07: all that waits is shown in full, and answered after a word of the person's; what is not said, answers nothing.
func TestF07All(t *testing.T) {
	var asked []gate.Question
	for _, id := range []string{"abc234", "gone23", "def567"} {
		q := long()
		q.ID, q.Process.Argv = id, append([]string{"curl", id}, q.Process.Argv...)
		asked = append(asked, q)
	}
	for _, tc := range []struct {
		command, typed, says string
		took                 []string
	}{
		{"approve --all", "yes", "approved: curl def567", []string{"abc234", "def567"}},
		{"deny --all", "y", "denied: curl def567", []string{"abc234", "def567"}},
		{"approve --all", "", "nothing was answered", nil},
		{"approve --all", "no", "nothing was answered", nil},
		{"approve --all", "yes abc234", "nothing was answered", nil},
		{"approve --all --yes", "", "approved: curl def567", []string{"abc234", "def567"}},
	} {
		t.Run(tc.command+" "+tc.typed, func(t *testing.T) {
			b := &manyBackend{asked: asked}
			dir, weir := serve(t, b)
			s := prompttest.Start(t, 81, 15, nil, append([]string{weir, "--run", dir}, strings.Fields(tc.command)...)...)
			if !strings.Contains(tc.command, "--yes") {
				verb, _, _ := strings.Cut(tc.command, " ")
				s.Until("asks", func([]string) bool {
					return strings.Contains(prompttest.Words(s.History()...), prompttest.Words(verb+" all of these 3, also what is above the screen? Type yes:"))
				})
				if len(b.took) > 0 {
					t.Error("answered before anything was typed:", b.took)
				}
				s.Types(tc.typed + "\n")
			}
			s.Until("ends", func([]string) bool {
				return strings.Contains(prompttest.Words(s.History()...), prompttest.Words(tc.says))
			})
			for _, q := range asked {
				if !(q.ID == "gone23" && strings.Contains(tc.command, "--yes")) && !strings.Contains(prompttest.Words(s.History()...), prompttest.Words(show.Question(q))) {
					t.Errorf("%s was not shown in full", q.ID)
				}
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if diff := cmp.Diff(tc.took, b.took); diff != "" {
				t.Error("answered (-want +got):\n" + diff)
			}
		})
	}
}

// F07: nothing waits is no failure, and needs no word.
func TestF07None(t *testing.T) {
	dir, weir := serve(t, &manyBackend{})
	out, err := exec.Command(weir, "--run", dir, "deny", "--all").CombinedOutput()
	if err != nil || string(out) != "no questions\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// F07: several ids are answered each by itself, and what is wrong with one leaves the others; what chooses nothing answers nothing.
func TestF07Several(t *testing.T) {
	var asked []gate.Question
	for _, id := range []string{"abc234", "gone23", "def567"} {
		q := long()
		q.ID = id
		asked = append(asked, q)
	}
	for _, tc := range []struct {
		args []string
		took []string
		code int
		says string
	}{
		{[]string{"deny", "abc234", "def567"}, []string{"abc234", "def567"}, 0, ""}, {[]string{"approve", "def567", "abc234", "def567"}, []string{"def567", "abc234"}, 0, ""}, {[]string{"deny", "abc234", "gone23", "def567"}, []string{"abc234", "def567"}, 1, "gone23: "},
		{[]string{"deny", "nope22", "def567"}, []string{"def567"}, 1, "nope22: no such question"}, {[]string{"deny", "ABC234"}, nil, 1, "no such question"}, {[]string{"deny", "abc"}, nil, 1, "no such question"}, {[]string{"deny", "abc234 def567"}, nil, 1, "no such question"}, {[]string{"deny", "abc234,def567"}, nil, 1, "no such question"},
		{[]string{"approve", "../abc234"}, nil, 1, ""}, {[]string{"approve", "abc234\x1b[2J"}, nil, 1, ""}, {[]string{"approve", strings.Repeat("a", 10000)}, nil, 1, ""}, {[]string{"deny", ""}, nil, 2, "give the question's id"}, {[]string{"deny", "abc234", ""}, nil, 2, "give the question's id"},
		{[]string{"deny"}, nil, 2, "give the question's id"}, {[]string{"approve", "--all", "abc234"}, nil, 2, "leave"}, {[]string{"approve", "--all"}, nil, 2, "add --yes, or give ids"}, {[]string{"deny", "--all", "--json"}, nil, 2, "add --yes, or give ids"}, {[]string{"approve", "--yes", "abc234"}, nil, 2, "--yes is for"},
		{[]string{"approve", "--container", "", "abc234"}, nil, 2, "--container is empty"}, {[]string{"approve", "--container=", "--all", "--yes"}, nil, 2, "--container is empty"}, {[]string{"deny", "--to", "", "--yes"}, nil, 2, "--to is empty"}, {[]string{"deny", "--matching", "", "--all", "-y"}, nil, 2, "--matching is empty"},
		{[]string{"approve", "--container", "nobody", "--yes"}, nil, 0, "no questions"}, {[]string{"approve", "--to", "*", "abc234"}, nil, 2, "leave"}, {[]string{"approve", "--all", "--scope", "2"}, nil, 2, "for one question"}, {[]string{"approve", "abc234", "def567", "--for", "session"}, nil, 2, "for one question"},
		{[]string{"deny", "--scope", "2", "abc234"}, nil, 2, "scope"}, {[]string{"approve", "--scope", "0", "abc234"}, nil, 2, "--scope is 0"}, {[]string{"approve", "--scope", "-1", "abc234"}, nil, 2, "--scope is -1"}, {[]string{"approve", "--for", "25h", "abc234"}, nil, 2, "accepted are a time"}, {[]string{"approve", "--for", "", "abc234"}, nil, 2, "--for is empty"},
		{[]string{"deny", "--all", "--yes"}, []string{"abc234", "def567"}, 1, "gone23: "}, {[]string{"deny", "--all", "--yes", "--json"}, []string{"abc234", "def567"}, 1, "gone23: "},
	} {
		b := &manyBackend{asked: asked}
		dir, weir := serve(t, b)
		cmd := exec.Command(weir, append([]string{"--run", dir}, tc.args...)...)
		out, _ := cmd.CombinedOutput()
		b.mu.Lock()
		took := b.took
		b.mu.Unlock()
		if !slices.Equal(took, tc.took) || cmd.ProcessState.ExitCode() != tc.code || !strings.Contains(string(out), tc.says) || strings.Contains(string(out), "\x1b") {
			t.Errorf("%.60q: answered %v, exit %d: %.600s", tc.args, took, cmd.ProcessState.ExitCode(), out)
		}
	}
}
