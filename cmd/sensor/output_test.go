package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
)

// B51: whatever a container chose stays on its line and moves no cursor.
func TestPrintQuestion(t *testing.T) {
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
  askers       2 processes; an approval is for one
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
	names := []string{"status", "pending", "approve", "deny"}
	for s, want := range map[string]string{
		"stauts": `: did you mean "status"?`, "PENDING": `: did you mean "pending"?`, "aprove": `: did you mean "approve"?`,
		"dny": `: did you mean "deny"?`, "explode": "", "": "",
	} {
		if got := suggest(s, names); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}
