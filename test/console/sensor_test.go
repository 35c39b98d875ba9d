package console

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
)

// given is an answer that the sensor was given.
type given struct {
	id    string
	reply gate.Reply
}

// sensor is one without a kernel: what a test puts in is shown, and what is answered is kept.
type sensor struct {
	lock       sync.Mutex
	err        error
	looks      bool // the caller may not answer
	containers []control.Container
	questions  []gate.Question
	approvals  []gate.StandingApproval
	why        map[string]control.Why
	answers    []given
	log        string // of the stored events
}

// change changes what the sensor has.
func (s *sensor) change(f func()) {
	s.lock.Lock()
	defer s.lock.Unlock()
	f()
}

func (s *sensor) Status(context.Context) (control.Status, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return control.Status{Version: "1.0", Mode: "enforce"}, s.err
}

func (s *sensor) Containers(context.Context) ([]control.Container, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Clone(s.containers), s.err
}

func (s *sensor) Why(_ context.Context, name string) (control.Why, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.why[name], s.err
}

func (s *sensor) Metrics(context.Context) (string, error) { return "", nil }

func (s *sensor) Peer(context.Context, control.Peer) error { return nil }

func (s *sensor) Log(context.Context) (*event.Stored, error) { return event.OpenStored(s.log) }

func (s *sensor) Pending(context.Context) ([]gate.Question, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Clone(s.questions), s.err
}

func (s *sensor) Answer(_ context.Context, id string, r gate.Reply) (gate.Question, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.looks {
		return gate.Question{}, control.Errorf(control.Denied, "refused: %q is for root", "approve")
	}
	if id == "" {
		return gate.Question{}, gate.ErrUnknown
	}
	i := slices.IndexFunc(s.questions, func(q gate.Question) bool { return q.ID == id })
	if i < 0 {
		return gate.Question{}, gate.ErrUnknown
	}
	q := s.questions[i]
	q.Outcome, q.By, q.Why, q.Scope = gate.Denied, "alice", r.Why, r.Scope
	if r.Allow {
		q.Outcome = gate.Approved
	}
	if r.For != "" {
		a, err := q.StandingBy(r)
		if err != nil {
			return q, err
		}
		a.By, a.Until = "alice", time.Now().Add(time.Hour)
		s.approvals = append(s.approvals, a)
	}
	s.questions = slices.Delete(slices.Clone(s.questions), i, i+1)
	s.answers = append(s.answers, given{id, r})
	return q, s.err
}

func (s *sensor) Approvals(context.Context) ([]gate.StandingApproval, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Clone(s.approvals), s.err
}

func (s *sensor) Signed(context.Context, control.Signed) (string, error) { return "", nil }

func (s *sensor) Revoke(_ context.Context, id, _, _ string) (gate.StandingApproval, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	i := slices.IndexFunc(s.approvals, func(a gate.StandingApproval) bool { return a.ID == id })
	if i < 0 {
		return gate.StandingApproval{}, gate.ErrNoneSuch
	}
	a := s.approvals[i]
	s.approvals = slices.Delete(slices.Clone(s.approvals), i, i+1)
	return a, s.err
}

// asks is a question about a connection.
func asks(id string, destination string, argv ...string) gate.Question {
	p := event.Process{
		PID: 281, UID: 1000, Comm: "curl", Argv: argv, Exe: &event.File{Path: "/usr/bin/" + argv[0], Device: 1, Inode: uint64(len(argv[0]))},
	}
	return gate.Question{
		ID: id, Container: event.Container{ID: "c1", Name: "web-1", Taint: []string{"secret"}}, Process: p, Held: true, State: gate.StatePending, Askers: 1,
		Destination: event.Destination{Address: "198.18.0.1", Name: destination, Port: 443, Protocol: "tcp"}, GrantSeconds: 60, GrantBytes: 16 << 20,
		Chain: []event.Member{
			{PID: 281, Argv: argv, Exe: "/usr/bin/" + argv[0]}, {PID: 276, Argv: []string{"bash", "fetch.sh"}, Exe: "/usr/bin/bash"}, {PID: 270, Argv: []string{"make", "deps"}, Exe: "/usr/bin/make"},
		},
		Causes: []event.Cause{cause()},
		Asked:  time.Now().Add(-20 * time.Second), Deadline: time.Now().Add(5 * time.Minute),
	}
}

func cause() event.Cause {
	return event.Cause{
		Bit: "secret", At: time.Date(2026, 11, 22, 10, 3, 11, 0, time.UTC), Source: "file", Why: "opened /srv/key", By: "cat (process 7)",
		Argv: []string{"cat", "/srv/key"}, Above: []string{"bash fetch.sh", "make"},
	}
}

// usual is a sensor with everyday questions.
func usual() *sensor {
	s := &sensor{why: map[string]control.Why{}}
	s.containers = []control.Container{
		{ID: "c1", Name: "web-1", Cgroup: "/agents/web-1", Taint: []string{"secret"}, Since: cause().At, By: "cat (process 7)", Live: true, Image: "node:22", Grants: []event.GrantInfo{{ID: 4}}},
		{ID: "c2", Name: "docs", Cgroup: "/weir/docs", Live: true},
		{ID: "c3", Name: "ci-77", Cgroup: "/agents/ci-77", Taint: []string{"corruption"}, Since: cause().At, By: "policy"},
	}
	s.why["c1"] = control.Why{Container: s.containers[0], Causes: []event.Cause{cause()}}
	s.questions = []gate.Question{
		asks("aaa222", "pypi.org", "pip", "download", "-r", "requirements.txt"),
		asks("bbb222", "registry.corp.test", "npm", "install"),
		asks("ccc222", "registry.corp.test", "npm", "ci"),
		asks("ddd222", "example.org", "curl", "-fsS", "https://example.org/doc"),
	}
	return s
}

func why(y control.Why) string {
	text := ""
	for _, c := range y.Causes {
		text += fmt.Sprintf("%s: taint %v\n", event.Visible(y.Container.Name), c.Bit)
	}
	return text
}
