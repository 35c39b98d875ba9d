package prompt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/event"
)

// denied is an event of the session g-1.
func denied(kind event.Kind, reason, command string, to *event.Destination) event.Event {
	return event.Event{
		Kind: kind, Container: &event.Container{ID: "g-1"}, Process: &event.Process{Comm: "cu\x1brl"}, Command: command, Destination: to,
		Verdict: &event.Decision{Decision: "deny", Reason: reason},
	}
}

// F12, F14: who sits at the terminal sees what was refused without a question, and why it was killed; not what programs try by the way.
func TestF12Refused(t *testing.T) {
	s, fake := newScreen(t), &sensor{events: make(chan event.Event)}
	to := &event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"}
	stop := notify(t, s, fake)
	asked := denied(event.Verdict, "timeout", "", to)
	asked.Question = "abc234"
	allowed := denied(event.Connect, "observe", "", to)
	allowed.Verdict.Decision = "allow"
	for _, e := range []event.Event{
		asked, allowed, denied(event.Connect, "quic", "", to), denied(event.Connect, "cancelled", "", to),
		denied(event.Connect, "outside_container", "", &event.Destination{Address: "/run/nscd/socket", Protocol: "unix"}),
	} {
		fake.events <- e
	}
	failed := denied(event.Verdict, "no_approver", "", nil)
	failed.Verdict.Failed = "cop_server"
	for _, c := range []struct {
		e    event.Event
		want string
	}{
		{denied(event.Connect, "flagged", "", to), "weir: $'cu\\x1brl' → 192.0.2.1:443 was refused (flagged); weir events says why\r\r\n"},
		{denied(event.Verdict, "git_guard", "git push -f\n", nil), "weir: $'git push -f\\n' was refused (git_guard); weir events says why\r\r\n"},
		{failed, "weir: $'cu\\x1brl' was killed before it began (no_approver after cop_server)\r\r\n"},
	} {
		fake.events <- c.e
		fake.events <- c.e // tried again
		s.shows("\r\x1b[K" + c.want)
	}
	if got := s.text(); strings.Contains(got, "weir:") {
		t.Errorf("more: %q", got)
	}
	fake.events <- denied(event.Connect, "sealed", "", to)
	fake.events <- allowed // is taken when the one before has been dealt with
	stop()                 // what is refused as the command ends is told, too
	s.shows("was refused (sealed)")
}

// F12: many denials at once are few lines.
func TestF12RefusedFlood(t *testing.T) {
	s, fake := newScreen(t), &sensor{events: make(chan event.Event)}
	stop := notify(t, s, fake)
	for i := range 200 {
		fake.events <- denied(event.Connect, "flagged", "", &event.Destination{Address: "192.0.2.1", Port: uint16(i + 1), Protocol: "tcp"})
	}
	s.shows("more were refused: weir events says which\r")
	for i := range 200 {
		fake.events <- denied(event.Verdict, "flagged", fmt.Sprint("curl ", i), nil)
	}
	time.Sleep(3 * every)
	stop()
	if n := strings.Count(s.text(), "weir:"); n > 5 {
		t.Errorf("%d more lines: %q", n, s.text())
	}
}
