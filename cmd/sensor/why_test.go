package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/event"
)

type whyBackend struct {
	fakeBackend
	why control.Why
}

func (b *whyBackend) Why(context.Context, string) (control.Why, error) { return b.why, nil }

// F11: why a container is tainted, with what its words cannot pose as.
func TestF11Why(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 3, 11, 0, time.UTC)
	b := &whyBackend{why: control.Why{
		Container: control.Container{ID: "c0ffee", Name: hostile, Taint: []string{"secret"}},
		Causes: []event.Cause{{
			Bit: "secret", At: at, Source: "file", By: "cat (process 7)", Why: "opened /srv/\x1bkey", Argv: []string{"cat", "/srv/\x1bkey"}, Above: []string{"bash fetch.sh", "make\x1b"},
		}},
		History: []event.Event{
			{Time: at, Kind: event.Taint, Change: &event.TaintChange{Set: []string{"secret"}, Source: "file", Why: "opened /srv/key"}, Process: &event.Process{
				PID: 7, Argv: []string{"cat", "/srv/key"}, Ancestry: []event.Ancestor{{Comm: "bash", Inside: true}, {Comm: "sshd"}},
			}},
			{Time: at, Kind: event.Taint, Change: &event.TaintChange{Cleared: []string{"secret"}, Source: "operator", By: "root", Why: "rebuilt"}},
		},
		Older:  true,
		Unread: 3,
	}}
	dir, weir := serve(t, b)
	out, err := exec.Command(weir, "--run", dir, "why", "c0ffee").CombinedOutput()
	for _, want := range []string{
		"secret 2026-11-22 10:03:11 UTC: $'opened /srv/\\x1bkey', by 'cat (process 7)', command cat $'/srv/\\x1bkey', below bash fetch.sh < make\\x1b (file)\n",
		"+secret 2026-11-22 10:03:11 UTC: 'opened /srv/key', command cat /srv/key, below bash (its arguments are not known) (file)\n",
		"-secret 2026-11-22 10:03:11 UTC: rebuilt, by root (operator)\n", "older ones are not shown", "\n3 lines of the event log could not be read", ": taint secret\n",
	} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("no %q in:\n%s%v", want, out, err)
		}
	}
	b.why.History, b.why.Unread = nil, 1
	if out, err := exec.Command(weir, "--run", dir, "why", "c0ffee").CombinedOutput(); err != nil || !strings.Contains(string(out), "\n1 line of the event log could not be read") {
		t.Errorf("%s%v", out, err)
	}
	if strings.ContainsAny(string(out), "\x1b\u202e") {
		t.Errorf("it writes to the terminal: %q", out)
	}
}
