package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/gate"
)

const relayEnv = "WEIR_TEST_RELAY"

// TestRelay is the other process of TestCrossingG21: standard input goes to a socket, and what comes back to standard output.
func TestRelay(t *testing.T) {
	path := os.Getenv(relayEnv)
	if path == "" {
		return // this is the test, not its helper
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		io.Copy(conn, os.Stdin)
		conn.(*net.UnixConn).CloseWrite()
	}()
	io.Copy(os.Stdout, conn)
}

// byPID is a host that knows processes' containers.
type byPID struct {
	*host
	mu   sync.Mutex
	pids map[int]string
}

func (b *byPID) Who(pid int) (Asker, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pids[pid] == "" {
		return Asker{}, errors.New("in no container")
	}
	return Asker{Container: event.Container{ID: b.pids[pid], Taint: []string{"secret"}}, Process: event.Process{PID: pid, Start: 1}, Mode: "enforce"}, nil
}

// TestCrossingG21: two containers on one socket use the same ids for 2,000 requests each, and say that they are the other one. Each is asked
// about itself and gets each of its answers once, and nothing of the other's (G21).
func TestCrossingG21(t *testing.T) {
	const requests = 2000
	h := &byPID{host: &host{decide: func(_ context.Context, r gate.Request) gate.Verdict {
		return gate.Verdict{Reason: gate.Flagged, Text: "about " + r.Container.ID + " " + r.Command}
	}}, pids: map[int]string{}}
	s := New(h, quiet())
	path := filepath.Join(t.TempDir(), "b.sock")
	if err := s.Listen(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close(within)
	var clients sync.WaitGroup
	for _, id := range []string{"g-one", "g-two"} {
		other := map[string]string{"g-one": "g-two", "g-two": "g-one"}[id]
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestRelay$")
		cmd.Env = append(os.Environ(), relayEnv+"="+path)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		h.mu.Lock() // nobody is asked about before the process is known
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.pids[cmd.Process.Pid] = id
		h.mu.Unlock()
		clients.Go(func() {
			go func() {
				for i := range requests {
					fmt.Fprintf(in, `{"type":"security:bash_check","request_id":"%d","command":"curl %s-%d","container":"%s","container_id":"%s"}`+"\n", i, id, i, other, other)
				}
				in.Close()
			}()
			seen := map[string]bool{}
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var a wire.Answer
				if json.Unmarshal(lines.Bytes(), &a) != nil {
					continue // the test binary's own last words
				}
				if a.Decision != wire.Deny || !strings.Contains(a.Reason, "about "+id+" curl "+id+"-"+a.RequestID+".") || seen[a.RequestID] {
					t.Errorf("%s got %+v", id, a)
				}
				seen[a.RequestID] = true
			}
			if len(seen) != requests {
				t.Errorf("%s got %d answers", id, len(seen))
			}
			cmd.Wait() // how it ended tells nothing
		})
	}
	clients.Wait()
}
