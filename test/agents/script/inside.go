// Package script is a model that answers with the tool calls of a script, and runs an agent against it. It owns both sides of that
// conversation, and never decides what is right.
package script

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Run is what to run, on standard input, and what came of it, on standard output: JSON.
type Run struct {
	Argv     []string // ADDRESS stands for the model's address
	Env      []string
	Dir      string
	Terminal bool // it runs on a terminal of its own, which hangs up when the model has nothing more to say
	Calls    []Call
	Tools    [][]string // names of the tools that each request to the model gave in full
	Said     string     // what the agent printed
	Behind   *Proxy     // what stands between agent and model; nil: nothing
	Error    string
}

// Env makes a program that calls Main what its value says: agent, or browser.
const Env = "WEIR_TEST_INSIDE"

// Main is the other processes of a test; false: this is the test itself.
func Main() bool {
	switch os.Getenv(Env) {
	case "agent":
		inside()
	case "browser":
		browser()
	default:
		return false
	}
	return true
}

// inside serves the model, runs the agent, and prints what the model was told.
func inside() {
	var r Run
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		r.Error = err.Error()
	} else if err := r.do(); err != nil {
		r.Error = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(r) // who reads it misses it
}

func (r *Run) do() error {
	_ = loopbackUp() // it is, but in a namespace of its own
	m := &model{calls: r.Calls, over: make(chan struct{})}
	address, err := m.serve(r.Behind)
	if err != nil {
		return err
	}
	if r.Behind != nil {
		var stop func()
		if address, stop, err = r.Behind.start(address); err != nil {
			return err
		}
		defer stop()
	}
	put := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, strings.ReplaceAll(s, "ADDRESS", address))
		}
		return out
	}
	argv := put(r.Argv)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = put(r.Env), r.Dir
	said, err := output(cmd, r.Terminal, m.over)
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Calls, r.Tools, r.Said = m.calls, m.tools, string(said)
	return err
}

// output runs an agent, and returns what it printed: to its end, or, on a terminal, until over is closed.
func output(cmd *exec.Cmd, terminal bool, over <-chan struct{}) ([]byte, error) {
	if !terminal {
		return cmd.CombinedOutput()
	}
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-over:
			_ = cmd.Process.Signal(syscall.SIGHUP) // it may have ended
		case <-ended:
		}
	}()
	var said bytes.Buffer
	_, _ = io.Copy(&said, file) // EIO when its last process is gone
	close(ended)
	err = errors.Join(cmd.Wait(), file.Close())
	select {
	case <-over: // it was hung up
		err = nil
	default:
	}
	return said.Bytes(), err
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// browser is an MCP server on standard input and output, with one tool.
func browser() {
	out := json.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var r struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
			Params struct {
				Version string `json:"protocolVersion"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		var result any = Obj{}
		switch r.Method {
		case "initialize":
			result = Obj{"protocolVersion": r.Params.Version, "capabilities": Obj{"tools": Obj{}}, "serverInfo": Obj{"name": "browser", "version": "1"}}
		case "tools/list":
			result = Obj{"tools": []any{Obj{"name": "navigate", "description": "reads a page", "inputSchema": Obj{"type": "object", "properties": Obj{"url": Obj{"type": "string"}}}}}}
		case "tools/call":
			result = Obj{"content": []any{Obj{"type": "text", "text": "the page's text"}}}
		}
		if out.Encode(Obj{"jsonrpc": "2.0", "id": r.ID, "result": result}) != nil {
			return
		}
	}
}
