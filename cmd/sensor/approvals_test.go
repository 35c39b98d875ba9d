package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/prompttest"
)

// lastingBackend has questions about connections and gives approvals that go on.
type lastingBackend struct {
	manyBackend
	standing []gate.StandingApproval
	replies  []gate.Reply
}

func (b *lastingBackend) Answer(_ context.Context, id string, r gate.Reply) (gate.Question, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.asked, func(q gate.Question) bool { return q.ID == id })
	if i < 0 {
		return gate.Question{}, gate.ErrUnknown
	}
	b.took, b.replies = append(b.took, id), append(b.replies, r)
	return b.asked[i], nil
}

func (b *lastingBackend) Approvals(context.Context) ([]gate.StandingApproval, error) {
	return b.standing, nil
}

func (b *lastingBackend) Revoke(_ context.Context, id, _, why string) (gate.StandingApproval, error) {
	for _, s := range b.standing {
		if s.ID == id && why == "enough" {
			return s, nil
		}
	}
	return gate.StandingApproval{}, gate.ErrNoneSuch
}

func connection(id, address string, argv ...string) gate.Question {
	q := asked()
	q.ID, q.Process.Argv, q.Process.Truncated, q.Process.Env = id, argv, false, nil
	q.Process.Exe = &event.File{Path: "/usr/bin/" + argv[0], Device: 1, Inode: uint64(len(argv[0]))}
	q.Container.Name, q.Destination.Address = "web", address
	q.Chain, q.GrantSeconds, q.GrantBytes, q.Asked, q.Deadline = []event.Member{q.Process.Member()}, 60, 64<<20, time.Now(), time.Now().Add(time.Minute)
	return q
}

// What an answer adds is shown, then asked about, and what is sent is what was shown.
func TestApproveForATime(t *testing.T) {
	b := &lastingBackend{manyBackend: manyBackend{asked: []gate.Question{connection("abc234", "192.0.2.1", "curl", "-d", "x")}}}
	dir, weir := serve(t, b)
	for typed, says := range map[string]string{"no": "nothing was answered", "yes": "approved: every process of web that runs /usr/bin/curl"} {
		s := prompttest.Start(t, 81, 40, nil, weir, "--run", dir, "approve", "abc234", "--for", "30m", "--who", "program")
		s.Until("asks", func([]string) bool {
			return strings.Contains(prompttest.Words(s.History()...), prompttest.Words("approve this? Type yes:"))
		})
		for _, line := range []string{
			"adds every process of web that runs /usr/bin/curl (device 1, inode 4) as uid 1000, with any arguments, and what it starts -> 192.0.2.1:443/tcp, for 30m, 256 MiB in all, at most 64 MiB and 60 s at a time; new taint ends it",
			"so far nothing", "command curl -d x",
		} {
			if !strings.Contains(prompttest.Words(s.History()...), prompttest.Words(line)) {
				t.Errorf("not shown: %s", line)
			}
		}
		s.Types(typed + "\n")
		s.Until("ends", func([]string) bool {
			return strings.Contains(prompttest.Words(s.History()...), prompttest.Words(says))
		})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.replies) != 1 {
		t.Fatal(len(b.replies), "answers")
	}
	r := b.replies[0]
	if want, err := b.asked[0].StandingBy(r); err != nil || r.Adds != want.Adds || !strings.Contains(r.Shown, r.Adds) || r.For != "30m" || r.Who != gate.WhoProgram {
		t.Errorf("sent: %+v, %v", r, err)
	}
}

// What is wrong with who an approval would be for is told with the flags that choose it; anything else without them.
func TestApproveNamesFlags(t *testing.T) {
	gone := connection("abc234", "192.0.2.1", "curl")
	gone.Held = false
	tool, dns := connection("def567", "192.0.2.1", "curl"), connection("ghj789", "192.0.2.1", "curl")
	tool.Tool, dns.Destination.DNS = true, true
	b := &lastingBackend{manyBackend: manyBackend{asked: []gate.Question{gone, tool, dns}}}
	dir, weir := serve(t, b)
	for order, want := range map[string]string{
		"abc234 --for 30m":                     "1: weir approve: the process that asked does not wait: choose a wider scope, the program or the container: nothing was answered; --scope and --who choose who it is for",
		"ghj789 --for 30m":                     "1: weir approve: 192.0.2.1:443/tcp (DNS) cannot be approved for longer: only TCP and UDP destinations can, and no questions for names: nothing was answered",
		"abc234 --for key":                     "2: weir approve: abc234 is a connection: --narrow and --for key are for tools' calls: see weir approve --help",
		"abc234 --for session --narrow":        "2: weir approve: abc234 is a connection: --narrow and --for key are for tools' calls: see weir approve --help",
		"def567 --for session --who container": "2: weir approve: def567 is a tool's call: --who, --bytes and --despite-taint are for connections: see weir approve --help",
		"def567 --for session --bytes 1MiB":    "2: weir approve: def567 is a tool's call: --who, --bytes and --despite-taint are for connections: see weir approve --help",
		"def567 --for session --despite-taint": "2: weir approve: def567 is a tool's call: --who, --bytes and --despite-taint are for connections: see weir approve --help",
	} {
		cmd := exec.Command(weir, append([]string{"--run", dir, "approve", "--yes"}, strings.Fields(order)...)...)
		out, _ := cmd.CombinedOutput()
		if got := fmt.Sprintf("%d: %s", cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out))); got != want {
			t.Errorf("%s: %s", order, got)
		}
	}
	if len(b.replies) != 0 {
		t.Errorf("answered: %+v", b.replies)
	}
}

// Flags choose among the questions that wait; what they do not choose is not answered.
func TestApproveChoosesQuestions(t *testing.T) {
	asked := []gate.Question{
		connection("abc234", "192.0.2.1", "curl", "a"), connection("def567", "192.0.2.2", "curl", "b"), connection("ghj789", "192.0.2.1", "git", "push"),
	}
	asked[2].Container.Name, asked[2].Container.ID = "db", "d8"
	for flags, want := range map[string][]string{
		"--to 192.0.2.1":                 {"abc234", "ghj789"},
		"--to 192.0.2.*:443/tcp":         {"abc234", "def567", "ghj789"},
		"--to 192.0.2":                   nil,
		"--container db":                 {"ghj789"},
		"--container d8 --matching g*sh": {"ghj789"},
		"--container web --to *.1":       {"abc234"},
		"--matching curl*":               {"abc234", "def567"},
		"--matching cu*l":                nil,
	} {
		b := &lastingBackend{manyBackend: manyBackend{asked: asked}}
		dir, weir := serve(t, b)
		out, err := exec.Command(weir, append([]string{"--run", dir, "approve", "--yes"}, strings.Fields(flags)...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", flags, err, out)
		}
		if diff := cmp.Diff(want, b.took); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flags, diff)
		}
	}
}

// Questions of one program about one destination are told together, each with its command; --each shows all of each.
func TestPendingGroups(t *testing.T) {
	b := &lastingBackend{manyBackend: manyBackend{asked: []gate.Question{
		connection("abc234", "192.0.2.1", "curl", "a"), connection("def567", "192.0.2.2", "curl", "b"), connection("ghj789", "192.0.2.1", "curl", "c\x1b"),
	}}}
	dir, weir := serve(t, b)
	out, err := exec.Command(weir, "--run", dir, "pending").Output()
	text := string(out)
	if err != nil || strings.Count(text, "\n  program ") != 2 || !strings.Contains(text, `1 more       ghj789  curl $'c\x1b' (pid 4711)`) {
		t.Errorf("%v\n%s", err, text)
	}
	out, err = exec.Command(weir, "--run", dir, "pending", "--each").Output()
	if text = string(out); err != nil || strings.Count(text, "\n  program ") != 3 {
		t.Errorf("%v\n%s", err, text)
	}
}

// What goes on is listed with what it covers, and ended by its id.
func TestApprovals(t *testing.T) {
	q := connection("abc234", "192.0.2.1", "curl", "a\x1b")
	s, err := q.StandingBy(gate.Reply{Allow: true, For: "session", By: "root (alice)"})
	if err != nil {
		t.Fatal(err)
	}
	s.Uses, s.Left = 2, 5
	b := &lastingBackend{standing: []gate.StandingApproval{s}}
	dir, weir := serve(t, b)
	for command, want := range map[string]string{
		"approvals": `covers       curl $'a\x1b' (pid 4711) and everything it starts -> 192.0.2.1:443/tcp, until the container ends, 64 MiB in all; new taint ends it` + "\n" +
			"  so far       let out 2 times; 5 of 67108864 bytes are left; what open grants do not use comes back\n  given by     'root (alice)'\n  end it       weir revoke abc234\n",
		"revoke abc234 --why enough": `revoked: curl $'a\x1b' (pid 4711)`,
		"revoke zzz999":              "no such approval; see weir approvals",
	} {
		out, _ := exec.Command(weir, append([]string{"--run", dir}, strings.Fields(command)...)...).CombinedOutput()
		if !strings.Contains(string(out), want) {
			t.Errorf("%s:\n%s", command, out)
		}
	}
}
