package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/show"
)

// Whatever a container chose stays on its line and moves no cursor.
func TestB51PrintQuestion(t *testing.T) {
	q := asked()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	q.Asked, q.Deadline = now.Add(-12*time.Second), now.Add(288*time.Second)
	var b bytes.Buffer
	printQuestion(&b, q, now)
	want := `abc234  asked 12s ago, 4m48s left
  container    $'web\x1b[2J\u202e\nfake', taint secret
               id c0ffee
  program      $'/tmp/cu\x1brl' (device 254, inode 99), in memory only, deleted
  command      curl -d $'a b\nanswer       weir approve zzz999' $'https://p\u0430ypal.com/' (more arguments were not read)
  script       ./x.sh, run by /bin/sh
  environment  sets LD_PRELOAD
  process      pid 4711, uid 1000, started by $'ba\x1bsh' (4700) < init (1)
  destination  192.0.2.1:443/tcp
  state        held: it waits for the answer
  askers       2 processes: an approval lets one go on; the other asks again
  answer       weir approve abc234   or   weir deny abc234
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}

	q.Destination = event.Destination{Address: "192.0.2.53", Port: 53, Protocol: "udp", DNS: true}
	q.Held, q.Process = false, event.Process{PID: 1, Comm: "\x1b"}
	b.Reset()
	printQuestion(&b, q, now)
	for _, want := range []string{
		"destination  DNS question, asked of 192.0.2.53:53/udp: an approval opens the name servers\n",
		"state        refused with EPERM; an approval is for its retry\n",
		`program      unknown; it calls itself $'\x1b'` + "\n",
		"command      its arguments are not known\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// F01, F02: who can be let out is listed, and how to choose; what was chosen is told when it has ended.
func TestF02PrintScopes(t *testing.T) {
	q := asked()
	q.Chain = []event.Member{q.Process.Member(), {PID: 4700, Comm: "bash", Argv: []string{"bash", "fetch.sh"}}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var b bytes.Buffer
	printQuestion(&b, q, now)
	for _, want := range []string{
		"\n  scope 2      bash fetch.sh (pid 4700)\n", "\n  answer       weir approve abc234   or   weir approve abc234 --scope 2   or   weir deny abc234\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	q.State, q.Outcome, q.By, q.Scope, q.Askers = "used", "approved", "root (alice)", 2, 1
	q.Shown = &event.Shown{Text: show.Question(q), SHA256: "ab"}
	b.Reset()
	printEnded(&b, q)
	for _, want := range []string{
		"\n  approved     bash fetch.sh (pid 4700) and everything it starts -> 192.0.2.1:443/tcp\n", ", by 1 process\n",
		"\n  shown        the lines above and the state that it was in, sha256 ab\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\n  state ") {
		t.Errorf("it says that it waits:\n%s", b.String())
	}
}

// F03: what a grant is for, in words that are true of its kind.
func TestF03PrintGrants(t *testing.T) {
	to := []event.Destination{{Address: "192.0.2.1", Port: 443, Protocol: "tcp"}}
	expires := time.Now().Add(58*time.Second + 500*time.Millisecond)
	curl := &event.Member{PID: 281, Comm: "curl", Argv: []string{"curl", "x\x1b[2J y"}}
	c := container()
	c.Grants = []event.GrantInfo{
		{ID: 12, Kind: "cgroup", To: to, Bytes: 1048576, Expires: expires, Process: curl, PIDs: []int{281}},
		{ID: 13, Kind: "claim", To: to, Bytes: 1048576, Expires: expires, PIDs: []int{281}},
		{ID: 14, Kind: "claim", To: to, Bytes: 7, Expires: expires},
		{ID: 15, Kind: "mark", To: to, Bytes: 7, PIDs: []int{281}},
		{ID: 16, Kind: "mark", To: to, Bytes: 7},
		{ID: 17, Kind: "cgroup", To: append(to, to...), Bytes: 7},
	}
	var b bytes.Buffer
	printContainers(&b, []control.Container{c})
	for _, want := range []string{
		`c0ffee: grant 12 lets out curl $'x\x1b[2J y' (pid 281) and what it starts: to 192.0.2.1:443/tcp, 1048576 bytes and 58s left` + "\n",
		"c0ffee: grant 13 waits for the next try of process 281 or of the same command: to 192.0.2.1:443/tcp, 1048576 bytes and 58s left\n",
		"c0ffee: grant 14 waits for the next try of the same command: to 192.0.2.1:443/tcp, 7 bytes and 58s left\n",
		"c0ffee: grant 15 lets out connections of process 281: to 192.0.2.1:443/tcp, 7 bytes left\n",
		"c0ffee: grant 16 lets open connections go on: to 192.0.2.1:443/tcp, 7 bytes left\n",
		"c0ffee: grant 17 lets out the command that it was made for: to 192.0.2.1:443/tcp 192.0.2.1:443/tcp, 7 bytes left\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestWriteJSON(t *testing.T) {
	var b bytes.Buffer
	if err := writeJSON(&b, []string{"a<b", "\x1b\u202e\x7f\U0001F600é", "\xff"}); err != nil {
		t.Fatal(err)
	}
	want := `["a<b","\u001b\u202e\u007f\ud83d\ude00\u00e9","\ufffd"]` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59*time.Second + time.Millisecond: "59s", 288 * time.Second: "4m48s",
		2*time.Hour + 5*time.Minute: "2h5m", 76 * time.Hour: "3d4h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"":                     {},
		"10m":                  now.Add(-10 * time.Minute),
		"-10m":                 now.Add(-10 * time.Minute),
		"2026-01-01T00:00:00Z": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"2026-01-01":           time.Date(2026, 1, 1, 0, 0, 0, 0, time.Local),
	} {
		if got, err := parseSince(s, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: got %v, %v, want %v", s, got, err, want)
		}
	}
	if _, err := parseSince("yesterday", now); err == nil {
		t.Error("yesterday was taken")
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"status", "pending", "approve", "deny", "for"}
	for s, want := range map[string]string{
		"stauts": `: did you mean "status"?`, "PENDING": `: did you mean "pending"?`, "aprove": `: did you mean "approve"?`,
		"dny": `: did you mean "deny"?`, "explode": "", "": "", "foo": "", "sta": "", "nope": "",
	} {
		if got := suggest(s, names); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

// TestF40Status: a policy that is refused is in the status, each mistake on a line.
func TestF40Status(t *testing.T) {
	var b bytes.Buffer
	printStatus(&b, control.Status{Policy: "/etc/weir/policy.yaml", Refused: &control.PolicyRefusal{
		Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local), Why: []string{"p:1:7: one\x1b", "p:2:1: two"},
	}})
	want := "policy refused   since 2026-01-02 03:04:05, and the one before stays in force: correct the file\n                 p:1:7: one\\x1b\n                 p:2:1: two\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
	b.Reset()
	if printStatus(&b, control.Status{}); strings.Contains(b.String(), "refused") {
		t.Error(b.String())
	}
}
