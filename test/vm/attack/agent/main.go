// Agent stands for an AI agent in a test: it lives as long as its session and runs programs when it is told to, as children
// without a terminal. It takes lines of wire.Command on standard input and prints lines of wire.Report; what it runs does not
// end with it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"weir/test/vm/wire"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// agent remembers its running children by the id that the test gave them.
type agent struct {
	mu       sync.Mutex
	out      *json.Encoder
	children map[int]*child
}

type child struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

func run(in io.Reader, out io.Writer) error {
	a := &agent{out: json.NewEncoder(out), children: map[int]*child{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var c wire.Command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return fmt.Errorf("read command: %w", err)
		}
		if len(c.Argv) > 0 {
			a.start(c)
		}
		a.tell(c)
	}
	return lines.Err()
}

func (a *agent) start(c wire.Command) {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 3 * time.Second // a daemon may keep the pipes; what was written is read in less
	cmd.Stdout = stream(func(s string) { a.say(wire.Report{ID: c.ID, Stdout: s}) })
	cmd.Stderr = stream(func(s string) { a.say(wire.Report{ID: c.ID, Stderr: s}) })
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		a.say(wire.Report{ID: c.ID, Ended: true, Exit: -1, Error: err.Error()})
		return
	}
	a.mu.Lock()
	a.children[c.ID] = &child{cmd, input}
	a.mu.Unlock()
	a.say(wire.Report{ID: c.ID, Pid: cmd.Process.Pid})
	go a.wait(c.ID, cmd)
}

func (a *agent) wait(id int, cmd *exec.Cmd) {
	report := wire.Report{ID: id, Ended: true}
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		report.Exit = exit.ExitCode()
		if s := exit.Sys().(syscall.WaitStatus); s.Signaled() {
			report.Exit = 128 + int(s.Signal())
		}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		report.Exit, report.Error = -1, err.Error()
	}
	a.mu.Lock()
	delete(a.children, id)
	a.mu.Unlock()
	a.say(report)
}

// tell passes input and signals on to a child, if it still runs.
func (a *agent) tell(c wire.Command) {
	a.mu.Lock()
	child := a.children[c.ID]
	a.mu.Unlock()
	if child == nil {
		return
	}
	// that the child is gone or does not listen is not the agent's concern
	if c.Input != "" {
		_, _ = io.WriteString(child.input, c.Input)
	}
	if c.Close {
		_ = child.input.Close()
	}
	if c.Signal != 0 {
		_ = syscall.Kill(-child.cmd.Process.Pid, syscall.Signal(c.Signal))
	}
}

func (a *agent) say(r wire.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// nobody to tell if this fails: the test is gone
	_ = a.out.Encode(r)
}

// stream is called with each piece of a child's output.
type stream func(string)

func (s stream) Write(b []byte) (int, error) {
	s(string(b))
	return len(b), nil
}
