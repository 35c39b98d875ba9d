//go:build vmguest

package rig

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/test/eventtest"
)

const (
	runDir     = "/run/weir"
	stateDir   = "/var/lib/weir"
	eventFile  = "/var/log/weir/rig-events.jsonl"
	policyFile = "/run/rig-policy.yaml"
)

// Sensor is weir run in a VM. There is one at a time.
type Sensor struct {
	Program string   // to start next; empty: weir
	Cgroup  string   // directory of the cgroup to start it in; empty: the test's own
	Stdout  *os.File // of the next start; nil: the test's standard error

	Took time.Duration // the last start, until all was in force

	cmd   *exec.Cmd
	ended chan error
	pid   int // of the daemon, the child of weir run
	log   eventLog
}

// StartSensor runs the sensor until t ends, then takes it out of the kernel, and forgets its state. policy is YAML without
// version and events. Every event that it wrote is checked against the schema.
func StartSensor(t testing.TB, policy string) *Sensor {
	t.Helper()
	// what they are in may be mounted there
	Must(t, "rm -rf "+stateDir+"/* "+eventFile)
	s := &Sensor{}
	s.write(t, policy)
	t.Cleanup(func() {
		s.Stop(t)
		s.detach(t)
		log, err := os.ReadFile(eventFile)
		if err != nil {
			t.Error(err)
		} else if eventtest.CheckLines(t, log) == 0 {
			t.Error("the sensor wrote no event")
		}
	})
	s.start(t)
	return s
}

func (s *Sensor) write(t testing.TB, policy string) {
	t.Helper()
	text := "version: 1\nevents:\n  file: " + eventFile + "\n" + policy
	if !strings.Contains(policy, "cop:") { // a person is asked everything
		text += "\ncop:\n  reviewer: none\n"
	}
	if err := os.WriteFile(policyFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *Sensor) detach(t testing.TB) {
	t.Helper()
	if _, exit := s.Weir(t, "detach", "--force"); exit != 0 {
		t.Errorf("weir detach: exit %d", exit)
	}
}

func (s *Sensor) start(t testing.TB) {
	t.Helper()
	ready, far, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	s.cmd = exec.Command(cmp.Or(s.Program, "weir"), "run", "--policy", policyFile, "--ready-fd", "3")
	if s.Cgroup != "" {
		dir, err := os.Open(s.Cgroup)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		s.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	}
	s.cmd.Stdout, s.cmd.Stderr = cmp.Or(s.Stdout, os.Stderr), os.Stderr
	s.cmd.ExtraFiles = []*os.File{far}
	began := time.Now()
	err = s.cmd.Start()
	far.Close()
	if err != nil {
		t.Fatal(err)
	}
	s.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan error) { ended <- cmd.Wait() }(s.cmd, s.ended)
	if err := ready.SetReadDeadline(time.Now().Add(2 * Late)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		s.Stop(t)
		t.Fatalf("weir run is not ready: %v", err)
	}
	s.Took = time.Since(began)
	s.pid, err = strconv.Atoi(strings.TrimSpace(Must(t, fmt.Sprintf("cat /proc/%d/task/*/children", s.cmd.Process.Pid))))
	if err != nil {
		t.Fatalf("find the daemon below weir run: %v", err)
	}
}

// Pid is that of the daemon.
func (s *Sensor) Pid() int { return s.pid }

// Signal is for the daemon.
func (s *Sensor) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.pid, sig); err != nil {
		t.Fatalf("signal the daemon: %v", err)
	}
}

// Kill kills the daemon with SIGKILL, and returns when weir run has seen it and ended.
func (s *Sensor) Kill(t testing.TB) {
	t.Helper()
	s.Signal(t, syscall.SIGKILL)
	s.wait(t)
}

// KillBoth kills the watcher, then the daemon.
func (s *Sensor) KillBoth(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatalf("kill the watcher: %v", err)
	}
	s.Kill(t)
	for end := time.Now().Add(Late); ; time.Sleep(10 * time.Millisecond) { // nobody waits for an orphan
		if syscall.Kill(s.pid, 0) != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the daemon outlives SIGKILL")
		}
	}
}

// Died waits for the end of a sensor that something else ended.
func (s *Sensor) Died(t testing.TB) error {
	t.Helper()
	return s.wait(t)
}

// Stop ends the sensor in order. It may have ended already.
func (s *Sensor) Stop(t testing.TB) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	// it may have ended just now
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.wait(t); err != nil {
		t.Errorf("weir run: %v", err)
	}
}

func (s *Sensor) wait(t testing.TB) error {
	t.Helper()
	s.cmd = nil
	select {
	case err := <-s.ended:
		return err
	case <-time.After(2 * Late):
		t.Fatalf("weir run still runs after %v", 2*Late)
		return nil
	}
}

// Restart starts it again after Kill or Stop.
func (s *Sensor) Restart(t testing.TB) {
	t.Helper()
	s.start(t)
}

// Configure replaces the policy file, for the next start.
func (s *Sensor) Configure(t testing.TB, policy string) {
	t.Helper()
	s.write(t, policy)
}

// Policy replaces the policy file and lets the sensor load it. It asks for that at the control socket, which answers when the policy is
// in force: an event says only that some policy was loaded, and the sensor, which watches the file, may load one twice.
func (s *Sensor) Policy(t testing.TB, policy string) {
	t.Helper()
	s.write(t, policy)
	if err := client().Reload(context.Background()); err != nil {
		t.Fatalf("load the policy: %v", err)
	}
}

// Hangup sends SIGHUP, as service managers do: to weir run.
func (s *Sensor) Hangup(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// Weir runs a command of weir and returns its standard output and exit status.
func (s *Sensor) Weir(t testing.TB, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command("weir", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("weir %s: %v", strings.Join(args, " "), err)
	}
	if errs.Len() > 0 {
		t.Logf("weir %s: %s", strings.Join(args, " "), errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// Must is Weir for what has to succeed.
func (s *Sensor) Must(t testing.TB, args ...string) string {
	t.Helper()
	out, exit := s.Weir(t, args...)
	if exit != 0 {
		t.Fatalf("weir %s: exit %d", strings.Join(args, " "), exit)
	}
	return out
}

// Guard starts an agent in a guarded session, for as long as t runs. args are flags of weir guard.
func (s *Sensor) Guard(t testing.TB, name string, args ...string) *Session {
	t.Helper()
	cmd := exec.Command("weir", append(append([]string{"guard", "-q", "--name", name}, args...), "--", "agent")...)
	session := session(t, name, cmd)
	// it is guarded when the agent answers
	if r := session.Run(t, "cat", "/proc/self/cgroup"); r.Exit != 0 {
		t.Fatalf("guarded session %s: %s%s", name, r, session.Stderr())
	} else {
		session.Cgroup = cgroupRoot + strings.TrimPrefix(strings.TrimSpace(r.Stdout), "0::")
	}
	return session
}

// Taint taints a session. Like the other calls that tests make all the time it goes to the control socket itself.
func (s *Sensor) Taint(t testing.TB, name string, bits ...string) {
	t.Helper()
	if _, err := client().Taint(context.Background(), name, bits, "test", ""); err != nil {
		t.Fatalf("taint %s: %v", name, err)
	}
}

// Untaint clears bits.
func (s *Sensor) Untaint(t testing.TB, name string, bits ...string) {
	t.Helper()
	if _, err := client().Untaint(context.Background(), name, bits, "test", "the next test"); err != nil {
		t.Fatalf("untaint %s: %v", name, err)
	}
}

// Containers lists what is guarded.
func (s *Sensor) Containers(t testing.TB) []control.Container {
	t.Helper()
	list, err := client().Containers(context.Background())
	if err != nil {
		t.Fatalf("list containers: %v", err)
	}
	return list
}

// Pending lists the open questions.
func (s *Sensor) Pending(t testing.TB) []gate.Question {
	t.Helper()
	list, err := client().Pending(context.Background())
	if err != nil {
		t.Fatalf("list questions: %v", err)
	}
	return list
}

func client() *control.Client { return control.NewClient(runDir) }

// Asked waits for a question that is as want says.
func (s *Sensor) Asked(t testing.TB, want func(gate.Question) bool) gate.Question {
	t.Helper()
	var found *gate.Question
	if !s.until(Late, func() bool {
		for _, q := range s.Pending(t) {
			if want(q) {
				found = &q
				return true
			}
		}
		return false
	}) {
		t.Fatalf("nobody asks; open questions: %+v", s.Pending(t))
	}
	return *found
}

// Approve answers yes.
func (s *Sensor) Approve(t testing.TB, id string) { t.Helper(); s.answer(t, id, true) }

// Deny answers no.
func (s *Sensor) Deny(t testing.TB, id string) { t.Helper(); s.answer(t, id, false) }

func (s *Sensor) answer(t testing.TB, id string, allow bool) {
	t.Helper()
	if _, err := client().Answer(context.Background(), id, gate.Reply{Allow: allow, By: "test"}); err != nil {
		t.Fatalf("answer %s: %v", id, err)
	}
}

// Event waits for an event that is as want says.
func (s *Sensor) Event(t testing.TB, want func(event.Event) bool) event.Event {
	t.Helper()
	var found *event.Event
	if !s.until(Late, func() bool {
		for _, e := range s.Events(t) {
			if want(e) {
				found = &e
				return true
			}
		}
		return false
	}) {
		t.Fatal("no such event")
	}
	return *found
}

// until polls, because nothing tells when a file or an answer changes.
func (s *Sensor) until(d time.Duration, done func() bool) bool {
	for end := time.Now().Add(d); ; time.Sleep(50 * time.Millisecond) {
		if done() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// Counter is one of the counters that weir status shows.
func (s *Sensor) Counter(t testing.TB, name string) uint64 {
	t.Helper()
	st, err := client().Status(context.Background())
	if err != nil {
		t.Fatalf("read counters: %v", err)
	}
	return st.Counters[name]
}
