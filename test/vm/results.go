package vm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// result is one test of the guest with its subtests.
type result struct {
	name    string // below its parent
	action  string // pass, fail, skip; empty if it never ended
	elapsed float64
	output  strings.Builder
	subs    []*result
}

// event is one line of test2json.
type event struct {
	Action  string
	Test    string
	Elapsed float64
	Output  string
}

// parse turns what a test binary printed under -test.v=test2json into a tree. The root has what belongs to no test.
func parse(ctx context.Context, output []byte) (*result, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-t")
	cmd.Stdin = bytes.NewReader(output)
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("parse test output: %w", err)
	}
	root := &result{}
	byName := map[string]*result{"": root}
	dec := json.NewDecoder(bytes.NewReader(b))
	for {
		var e event
		if err := dec.Decode(&e); err == io.EOF {
			return root, nil
		} else if err != nil {
			return nil, fmt.Errorf("parse test output: %w", err)
		}
		r, ok := byName[e.Test]
		if !ok {
			parent, rest := splitName(byName, e.Test)
			r = &result{name: rest}
			parent.subs = append(parent.subs, r)
			byName[e.Test] = r
		}
		switch e.Action {
		case "output":
			r.output.WriteString(e.Output)
		case "pass", "fail", "skip":
			r.action, r.elapsed = e.Action, e.Elapsed
		}
	}
}

// splitName finds the longest known test above one: a subtest's own name may have slashes.
func splitName(known map[string]*result, name string) (*result, string) {
	for i := len(name) - 1; i > 0; i-- {
		if p, ok := known[name[:i]]; ok && name[i] == '/' {
			return p, name[i+1:]
		}
	}
	return known[""], name
}

// publish makes a test of the host out of every test of the guest.
func publish(t *testing.T, r *result) {
	for _, s := range r.subs {
		t.Run(s.name, func(t *testing.T) {
			publish(t, s)
			switch s.action {
			case "pass":
				t.Logf("%.2f s in the VM", s.elapsed)
			case "fail":
				t.Errorf("failed in the VM:\n%s", s.output.String())
			case "skip":
				t.Errorf("skipped in the VM, where every test must run:\n%s", s.output.String())
			default:
				t.Errorf("never ended in the VM:\n%s", s.output.String())
			}
		})
	}
}

// prefixer writes each line with a label before it, so that the guest's lines are not taken for the host's own results.
func prefixer(w io.Writer, label string) io.WriteCloser {
	r, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := bufio.NewReader(r)
		for {
			line, err := s.ReadString('\n')
			if line != "" {
				// 0x16 is test2json's mark of a line of the framework.
				fmt.Fprintf(w, "[%s] %s\n", label, strings.TrimRight(strings.ReplaceAll(line, "\x16", ""), "\r\n"))
			}
			if err != nil {
				return
			}
		}
	}()
	return &closeWaiter{pw, done}
}

// closeWaiter waits until all that was written is through.
type closeWaiter struct {
	*io.PipeWriter
	done chan struct{}
}

func (c *closeWaiter) Close() error {
	err := c.PipeWriter.Close()
	<-c.done
	return err
}
