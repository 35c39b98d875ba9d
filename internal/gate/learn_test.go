package gate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/event"
	"weir/internal/policy"
)

// said is a person's answer to a connection.
func said(decision, reason, by string, change ...func(*event.Event)) event.Event {
	e := connect(decision, reason, "corruption", "secret")
	e.Kind, e.Question, e.Verdict.By, e.Verdict.From, e.Time = event.Verdict, "abc234", by, &event.Origin{Via: "control"}, time.Unix(1e9, 0).UTC()
	for _, f := range change {
		f(&e)
	}
	return e
}

func to(name, address string, port uint16) func(*event.Event) {
	return func(e *event.Event) {
		e.Destination = &event.Destination{Name: name, Address: address, Port: port, Protocol: "tcp"}
	}
}

func changed(change event.TaintChange, argv ...string) event.Event {
	return event.Event{
		Kind: event.Taint, Container: &event.Container{ID: "c1"}, Time: time.Unix(1e9, 0).UTC(), Change: &change, Process: &event.Process{PID: 7, Argv: argv},
	}
}

// What a person let through is suggested, as narrow as it was; not what somebody denied, what nobody approved, or what is open already.
func TestLearning(t *testing.T) {
	l, err := NewLearning(parse(t, `
allow: [{prefix: 10.0.0.0/8, protocol: tcp, ports: 443}, {name: "*.corp.example", protocol: tcp}]
taint:
  trusted_networks: [10.0.0.0/8]
  secret_files: [/srv/a, /srv/keys/, "**/.env", ~/.ssh/id_*]
`))
	if err != nil {
		t.Fatal(err)
	}
	kernel := func(change ...func(*event.Event)) event.Event {
		e := connect("allow", "observe", "secret")
		for _, f := range change {
			f(&e)
		}
		return e
	}
	dns := func(e *event.Event) {
		e.Destination = &event.Destination{Address: "192.0.2.53", Port: 53, Protocol: "udp", DNS: true}
	}
	used := func(e *event.Event) { e.Verdict.From = nil }
	for _, e := range []event.Event{
		said("allow", "approved", "root (alice)"), said("allow", "approved", "root (bob)"), said("allow", "standing", "root (bob)", used),
		said("allow", "approved", "x", used),                                           // who claims it
		said("allow", "approved", "x", func(e *event.Event) { e.Verdict.For = "30m" }), // told again with each use
		said("allow", "approved", "root", to("pypi.org", "198.18.0.1", 443)),
		said("allow", "approved", "root", to("pypi.org", "198.18.0.9", 443)),
		said("allow", "approved", "root", to("a.corp.example", "198.18.0.9", 443)), // open
		said("allow", "approved", "root", to("", "10.1.2.3", 443)),                 // open
		said("allow", "approved", "root", to("", "10.1.2.3", 22)),
		said("allow", "approved", "root", dns),
		said("allow", "approved", "root", to("*.pages.example", "198.18.0.3", 443)), // looked up with its star: in a policy it is every name below
		said("allow", "approved", "root", to("evil.example", "198.18.0.2", 443)),
		said("deny", "denied", "root", to("evil.example", "198.18.0.2", 443)),
		said("allow", "not_flagged", "cop", to("", "192.0.2.99", 443)),
		said("deny", "timeout", "", to("", "192.0.2.98", 443)),
		kernel(to("", "192.0.2.5", 80)), kernel(to("", "192.0.2.5", 80)),
		changed(event.TaintChange{Set: []string{"corruption"}, Source: "destination", Why: "192.0.2.7 port 443 (tcp) is not trusted"}, "curl"),
		changed(event.TaintChange{Set: []string{"secret"}, Source: "file", Why: "opened /srv/keys/x/y"}, "cat"),
		changed(event.TaintChange{Set: []string{"secret"}, Source: "file", Why: "opened /home/dev/.ssh/id_rsa"}, "ssh"),
		changed(event.TaintChange{Cleared: []string{"corruption", "secret"}, Source: "operator", By: "root (alice)", Why: "rebuilt"}),
		changed(event.TaintChange{Set: []string{"corruption"}, Source: "destination", Why: "192.0.2.8 port 443 (tcp) is not trusted"}, "curl"),
		changed(event.TaintChange{Set: []string{"secret"}, Source: "file", Why: "opened /srv/a"}, "cat"),
		changed(event.TaintChange{Set: []string{"secret"}, Source: "file", Why: "opened /home/dev/.ssh/id_ed25519"}, "ssh"),
		changed(event.TaintChange{Set: []string{"secret"}, Source: "operator", Why: "opened /srv/a"}, "cat"),
	} {
		l.Event(e)
	}
	type row struct {
		Edit               policy.Edit
		Approved, Observed uint64
		By                 []string
	}
	var got []row
	all, left := l.Lessons(1)
	for _, s := range all {
		got = append(got, row{s.Edit, s.Approved, s.Observed, s.By})
		if s.Opens == "" || s.First.IsZero() != (s.Observed > 0) || len(s.Commands) != 1 || len(s.In) != 1 {
			t.Errorf("%+v", s)
		}
	}
	allow := func(what, port string) policy.Edit {
		return policy.Edit{Key: "allow", Add: []string{what, "protocol: tcp", "ports: " + port}}
	}
	want := []row{
		{allow(`prefix: "192.0.2.1"`, "443"), 3, 0, []string{"root (alice)", "root (bob)"}},
		{allow(`name: "pypi.org"`, "443"), 2, 0, []string{"root"}},
		{allow(`prefix: "10.1.2.3"`, "22"), 1, 0, []string{"root"}},
		{allow(`prefix: "192.0.2.5"`, "80"), 0, 2, nil},
		{policy.Edit{Key: "taint.secret_files", Remove: "/srv/keys/"}, 1, 0, []string{"root (alice)"}},
		{policy.Edit{Key: "taint.trusted_networks", Add: []string{`"192.0.2.7"`}}, 1, 0, []string{"root (alice)"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if left != 4 { // evil.example, 192.0.2.8, /srv/a, ~/.ssh/id_*
		t.Error(left, "are left out")
	}
	if all, _ := l.Lessons(3); len(all) != 1 {
		t.Errorf("at least three times: %+v", all)
	}
}

// What a container chose to reach bounds what is kept.
func TestLearningIsBounded(t *testing.T) {
	l, err := NewLearning(policy.Default())
	if err != nil {
		t.Fatal(err)
	}
	for port := range 3 * maxLessons {
		l.Event(said("allow", "approved", "root", func(e *event.Event) { e.Destination.Port = uint16(1 + port) }))
	}
	if all, _ := l.Lessons(1); len(all) != maxLessons {
		t.Error(len(all))
	}
}

// What an event says moves no cursor, and is no more than one text in a policy.
func TestLearningIsVisible(t *testing.T) {
	l, err := NewLearning(parse(t, "taint: {trusted_networks: [10.0.0.0/8]}"))
	if err != nil {
		t.Fatal(err)
	}
	const evil = "fe80::1%\x1b[2J\nmode:\tobserve\u202e"
	l.Event(changed(event.TaintChange{Set: []string{"corruption"}, Source: "destination", Why: evil + " port 443"}, "curl"))
	l.Event(changed(event.TaintChange{Cleared: []string{"corruption"}, Source: "operator", By: "root"}))
	l.Event(said("allow", "approved", "root", to("", evil, 443)))
	l.Event(said("allow", "approved", "root", to("a\"\n- {prefix: 0.0.0.0/0}\n#\u2028", "198.18.0.1", 443)))
	all, _ := l.Lessons(1)
	for _, s := range all {
		if s.Opens != event.Visible(s.Opens) {
			t.Errorf("it opens %q", s.Opens)
		}
		const before = "version: 1\ntaint:\n  trusted_networks: []\n"
		if text, err := policy.Apply("p", []byte(before), []policy.Edit{s.Edit}); err == nil {
			t.Errorf("%s", text)
		}
	}
	if len(all) != 3 {
		t.Errorf("%+v", all)
	}
}
