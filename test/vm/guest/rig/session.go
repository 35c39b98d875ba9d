//go:build vmguest

package rig

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/test/vm/wire"
)

const cgroupRoot = "/sys/fs/cgroup"

// Session is an agent that runs commands for the test, guarded or not.
type Session struct {
	Name   string
	Pid    int    // of what was started: weir guard, or the agent
	Cgroup string // directory; empty if the rig does not know it

	in      io.WriteCloser
	mu      sync.Mutex
	ids     int
	procs   map[int]*Proc
	ended   chan struct{}
	waitErr error
	stderr  strings.Builder
}

// Proc is a command of a session.
type Proc struct {
	s       *Session
	id      int
	argv    []string
	changed chan struct{}
	pid     int
	ended   bool
	result  Result
}

// Result is what a command did.
type Result struct {
	Exit   int // 128 and more: a signal; -1: it did not start
	Stdout string
	Stderr string
	Error  string    // why it did not start
	At     time.Time // when its end was told
}

func (r Result) String() string {
	return fmt.Sprintf("exit %d %s%s%s", r.Exit, r.Stdout, r.Stderr, r.Error)
}

// Bare starts an agent in a cgroup of its own, which nobody guards, for as long as t runs.
func Bare(t testing.TB, name string) *Session {
	t.Helper()
	dir := filepath.Join(cgroupRoot, "bare-"+name)
	RemoveCgroup(t, dir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return BareIn(t, name, dir)
}

// BareIn starts an agent in a cgroup that is there, which is removed when t ends.
func BareIn(t testing.TB, name, dir string) *Session {
	t.Helper()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cmd := exec.Command("agent")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(d.Fd())}
	s := session(t, name, cmd)
	s.Cgroup = dir
	t.Cleanup(func() { RemoveCgroup(t, dir) })
	return s
}

// RemoveCgroup kills what is in a cgroup and removes it with all its children. That it does not exist is no error.
func RemoveCgroup(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		return
	}
	deadline := time.Now().Add(Late)
	for {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		var dirs []string
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs)
		for _, d := range dirs {
			_ = syscall.Rmdir(d)
		}
		if _, err := os.Stat(dir); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("cgroup %s is still busy", dir)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// session starts cmd, which is or runs an agent.
func session(t testing.TB, name string, cmd *exec.Cmd) *Session {
	t.Helper()
	s := &Session{Name: name, procs: map[int]*Proc{}, ended: make(chan struct{})}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.in = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = io.MultiWriter(os.Stderr, locked{&s.mu, &s.stderr})
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.Pid = cmd.Process.Pid
	go func() {
		s.read(out)
		err := cmd.Wait()
		s.mu.Lock()
		s.waitErr = err
		s.mu.Unlock()
		close(s.ended)
	}()
	t.Cleanup(func() { s.Close() })
	return s
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// Close lets the agent end, or kills what was started if it does not.
func (s *Session) Close() {
	s.in.Close()
	select {
	case <-s.ended:
	case <-time.After(Late):
		_ = syscall.Kill(s.Pid, syscall.SIGKILL)
		<-s.ended
	}
}

// Stderr is what weir guard or the agent said there.
func (s *Session) Stderr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.String()
}

func (s *Session) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var r wire.Report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintf(os.Stderr, "session %s says: %s\n", s.Name, lines.Text())
			continue
		}
		s.mu.Lock()
		if p := s.procs[r.ID]; p != nil {
			p.take(r)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.procs {
		if !p.ended {
			p.take(wire.Report{Ended: true, Exit: -1, Error: "the session ended"})
		}
	}
}

func (p *Proc) take(r wire.Report) {
	p.result.Stdout += r.Stdout
	p.result.Stderr += r.Stderr
	if r.Pid != 0 {
		p.pid = r.Pid
	}
	if r.Ended {
		p.ended, p.result.Exit, p.result.Error, p.result.At = true, r.Exit, r.Error, time.Now()
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// Start runs a command in the background.
func (s *Session) Start(t testing.TB, argv ...string) *Proc { return s.StartEnv(t, nil, argv...) }

// StartEnv is Start with variables, NAME=VALUE, in addition to those of the session.
func (s *Session) StartEnv(t testing.TB, env []string, argv ...string) *Proc {
	t.Helper()
	s.mu.Lock()
	s.ids++
	p := &Proc{s: s, id: s.ids, argv: argv, changed: make(chan struct{})}
	s.procs[p.id] = p
	s.mu.Unlock()
	p.order(t, wire.Command{ID: p.id, Argv: argv, Env: env})
	return p
}

// Run runs a command with empty standard input and waits for its end.
func (s *Session) Run(t testing.TB, argv ...string) Result {
	t.Helper()
	p := s.Start(t, argv...)
	p.Close(t)
	return p.Wait(t)
}

func (p *Proc) order(t testing.TB, c wire.Command) {
	t.Helper()
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if err := json.NewEncoder(p.s.in).Encode(c); err != nil && !p.ended {
		t.Errorf("session %s: %v", p.s.Name, err)
	}
}

// Input writes to the command's standard input.
func (p *Proc) Input(t testing.TB, text string) {
	t.Helper()
	p.order(t, wire.Command{ID: p.id, Input: text})
}

// Close ends its standard input.
func (p *Proc) Close(t testing.TB) {
	t.Helper()
	p.order(t, wire.Command{ID: p.id, Close: true})
}

// Signal is for its process group.
func (p *Proc) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	p.order(t, wire.Command{ID: p.id, Signal: int(sig)})
}

// await returns when done does, or reports false after d.
func (p *Proc) await(d time.Duration, done func() bool) bool {
	late := time.After(d)
	for {
		p.s.mu.Lock()
		ok, changed := done(), p.changed
		p.s.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-late:
			return false
		}
	}
}

// Pid is its process id, as the session sees it; 0 if it did not start.
func (p *Proc) Pid() int {
	p.await(Late, func() bool { return p.pid != 0 || p.ended })
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.pid
}

// WaitLine waits for a line of standard output that begins so, and returns it; "" if the command ended or d passed first.
func (p *Proc) WaitLine(prefix string, d time.Duration) string {
	line := ""
	p.await(d, func() bool {
		for l := range strings.Lines(p.result.Stdout) {
			if strings.HasPrefix(l, prefix) && strings.HasSuffix(l, "\n") {
				line = strings.TrimSpace(l)
				return true
			}
		}
		return p.ended
	})
	return line
}

// WaitFor waits for the end for d at most, and says whether it came.
func (p *Proc) WaitFor(d time.Duration) (Result, bool) {
	ok := p.await(d, func() bool { return p.ended })
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.result, ok
}

// Wait waits for the end and fails t, killing the command, if it does not come.
func (p *Proc) Wait(t testing.TB) Result {
	t.Helper()
	r, ok := p.WaitFor(2 * Late)
	if !ok {
		t.Errorf("%s: still runs after %v: %s", strings.Join(p.argv, " "), 2*Late, r)
		p.Signal(t, syscall.SIGKILL)
	}
	return r
}
