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
