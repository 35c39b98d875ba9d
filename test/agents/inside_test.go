package agents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const insideEnv = "WEIR_TEST_INSIDE"

// run is what a namespace is to run.
type run struct {
	Argv  []string // ADDRESS stands for the model's address
	Env   []string
	Dir   string
	Calls []call
	Said  string // what the agent printed
	Error string
}

func TestMain(m *testing.M) {
	switch os.Getenv(insideEnv) {
	case "agent":
		inside()
	case "browser":
		browser()
	default:
		os.Exit(m.Run())
	}
}

// inside is the first process of the namespaces: it serves the model, runs the agent, and prints what the model was told.
func inside() {
	var r run
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		r.Error = err.Error()
	} else if err := r.do(); err != nil {
		r.Error = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(r) // who reads it misses it
}

func (r *run) do() error {
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	m := &model{calls: r.Calls}
	address, err := m.serve()
	if err != nil {
		return err
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
	said, err := cmd.CombinedOutput()
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Calls, r.Said = m.calls, string(said)
	return err
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
		var result any = obj{}
		switch r.Method {
		case "initialize":
			result = obj{"protocolVersion": r.Params.Version, "capabilities": obj{"tools": obj{}}, "serverInfo": obj{"name": "browser", "version": "1"}}
		case "tools/list":
			result = obj{"tools": []any{obj{"name": "navigate", "description": "reads a page", "inputSchema": obj{"type": "object", "properties": obj{"url": obj{"type": "string"}}}}}}
		case "tools/call":
			result = obj{"content": []any{obj{"type": "text", "text": "the page's text"}}}
		}
		if out.Encode(obj{"jsonrpc": "2.0", "id": r.ID, "result": result}) != nil {
			return
		}
	}
}
