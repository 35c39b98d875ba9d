package control

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/linux"
)

// fake is a backend that notes what it was asked.
type fake struct {
	mu    sync.Mutex
	calls []string
	err   error
	log   []event.Event
	live  chan event.Event
	files []string // of the log

	broken error // what Events ends with
}

func (f *fake) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return f.err
}

func (f *fake) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func (f *fake) Status(context.Context) (Status, error) {
	return Status{Version: "v1", PID: 7, Mode: "enforce"}, f.note("status")
}

func (f *fake) Containers(context.Context) ([]Container, error) {
	return []Container{{ID: "c1", Cgroup: "/a", Taint: []string{"secret"}}}, f.note("containers")
}

func (f *fake) Why(_ context.Context, name string) (Why, error) {
	return Why{Container: Container{ID: name}, Older: true}, f.note("why %s", name)
}

func (f *fake) Metrics(context.Context) (string, error) {
	return "weir_goroutines 1\n", f.note("metrics")
}

func (f *fake) Peer(_ context.Context, p Peer) error {
	return f.note("peer %d %v %v", p.PID, p.Local, p.Remote)
}

func (f *fake) ModelRefused(_ context.Context, r ModelRefusal) error {
	return f.note("model %s %d", r.Code, r.PID)
}

func (f *fake) Events(ctx context.Context, filter event.Filter, follow bool, fn func(event.Event) error) error {
	if err := f.note("events %v %q follow=%v", filter.Kinds, filter.Container, follow); err != nil {
		return err
	}
	for _, e := range f.log {
		if err := fn(e); err != nil {
			return err
		}
	}
	for follow {
		select {
		case e := <-f.live:
			if err := fn(e); err != nil {
				return err
			}
		case <-ctx.Done():
			f.note("events end")
			return ctx.Err()
		}
	}
	return f.broken
}

func (f *fake) Log(context.Context) (*event.Stored, error) {
	if err := f.note("log"); err != nil {
		return nil, err
	}
	var files []*os.File
	for _, name := range f.files {
		file, err := linux.OpenInput(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return event.NewStored(files), nil
}

func (f *fake) Taint(_ context.Context, name string, bits []string, by, why string) (Container, error) {
	return Container{ID: name, Taint: bits, By: by}, f.note("taint %s %v %s %s", name, bits, by, why)
}

func (f *fake) Untaint(_ context.Context, name string, bits []string, by, why string) (Container, error) {
	return Container{ID: name, By: by}, f.note("untaint %s %v %s %s", name, bits, by, why)
}

func (f *fake) TaintPath(_ context.Context, path string, bits []string, by, why string) (Volume, error) {
	return Volume{Path: path, Taint: bits, By: by}, f.note("taint-path %s %v %s %s", path, bits, by, why)
}

func (f *fake) UntaintPath(_ context.Context, path string, bits []string, by, why string) (Volume, error) {
	return Volume{Path: path, By: by}, f.note("untaint-path %s %v %s %s", path, bits, by, why)
}

func (f *fake) Pending(context.Context) ([]gate.Question, error) {
	return []gate.Question{{ID: "abc234", State: gate.StatePending}}, f.note("pending")
}

func (f *fake) History(_ context.Context, most int) ([]gate.Question, error) {
	return []gate.Question{{ID: "abc233", State: "used"}}, f.note("history %d", most)
}

func (f *fake) Answer(_ context.Context, id string, r gate.Reply) (gate.Question, error) {
	q := gate.Question{ID: id, By: r.By, From: r.From, Shown: &event.Shown{Text: r.Shown}}
	if r.Scope != 0 {
		q.Scope = r.Scope
		return q, f.note("answer %s %v %s scope %d", id, r.Allow, r.By, r.Scope)
	}
	if r.Who != "" {
		return q, f.note("answer %s %v %s for %s %s %d %v %s", id, r.Allow, r.By, r.For, r.Who, r.Bytes, r.Keeps, r.Adds)
	}
	return q, f.note("answer %s %v %s %s", id, r.Allow, r.By, r.Why)
}

func (f *fake) Guard(_ context.Context, r GuardRequest) (GuardReply, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return GuardReply{}, err
	}
	return GuardReply{ID: "s1", Cgroup: "/sys/fs/cgroup/weir/s1"}, f.note("guard %s", data)
}

func (f *fake) GuardCgroup(_ context.Context, r CgroupRequest) (Container, error) {
	return Container{ID: r.Cgroup, Taint: r.Taint}, f.note("guard-cgroup %s %s %v %s", r.Cgroup, r.Name, r.Taint, r.By)
}

func (f *fake) GuardAgent(_ context.Context, id string, pid int) error {
	return f.note("agent %s %d", id, pid)
}

func (f *fake) GuardEnd(_ context.Context, id string) (Summary, error) {
	return Summary{Denied: 3}, f.note("end %s", id)
}

func (f *fake) Mode(_ context.Context, mode, by, why string) error {
	return f.note("mode %s %s %s", mode, by, why)
}

func (f *fake) Reload(context.Context) error { return f.note("reload") }

func (f *fake) Approvals(context.Context) ([]gate.StandingApproval, error) {
	return []gate.StandingApproval{{ID: "abc234", Who: gate.WhoContainer, Adds: "all"}}, f.note("approvals")
}

func (f *fake) Signed(_ context.Context, s Signed) (string, error) {
	return "done", f.note("signed %s %s %s", s.Key, s.Statement, s.Signature)
}

func (f *fake) Moved(_ context.Context, told []Elsewhere) ([]Wanted, error) {
	return []Wanted{{Identity: "pod 1"}}, f.note("moved %v", told)
}

func (f *fake) Revoke(_ context.Context, id, by, why string) (gate.StandingApproval, error) {
	return gate.StandingApproval{ID: id}, f.note("revoke %s %q %q", id, by, why)
}
