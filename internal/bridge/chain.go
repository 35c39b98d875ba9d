package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/strict"
)

// Limits on one hook of the operator.
const (
	hookTime = 5 * time.Second
	hookMost = 64 << 10 // bytes that it may print
	maxHooks = 64
	hookPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// hookInput is what a hook reads: one JSON object.
type hookInput struct {
	Event     string          `json:"event"` // before_tool_use
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	Container event.Container `json:"container"`
}

// hookOutput is what a hook prints; {} has no objection.
type hookOutput struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}

// hooks runs the operator's hooks by name; the first that denies wins (G18). It returns why the call is denied, or nothing. A broken hook
// denies in a tainted container, and is told of in a clean one.
func (s *Server) hooks(ctx context.Context, who Asker, command, tool string, input json.RawMessage) string {
	if who.Hooks == "" {
		return ""
	}
	list, err := hookFiles(who.Hooks)
	if err != nil {
		return s.broken(who, command, "the hooks folder", err)
	}
	if len(list) == 0 {
		return ""
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	question := marshal(hookInput{"before_tool_use", tool, input, who.Container})
	for _, path := range list {
		name := filepath.Base(path)
		out, err := s.runHook(ctx, path, question)
		if err != nil {
			if reason := s.broken(who, command, name, err); reason != "" {
				return reason
			}
			continue
		}
		if out.Decision == "deny" {
			text := fmt.Sprintf("the hook %s denies it", name)
			if out.Reason != "" {
				text += ": " + out.Reason
			}
			reason := fmt.Sprintf("Denied by a rule of this machine's operator (%s).%s Go on without it, or ask the user.", name, said(out.Reason))
			if reason, denied := s.builtIn(who, command, "hook", text, reason); denied {
				return reason
			}
		}
	}
	return ""
}

// broken judges a hook that did not answer as it should.
func (s *Server) broken(who Asker, command, name string, err error) string {
	s.logger.WithError(err).WithField("hook", name).Warn("a hook is broken")
	if len(who.Container.Taint) == 0 && who.Mode != "seal" {
		return ""
	}
	reason, denied := s.builtIn(who, command, "hook_failed", "the hook "+name+" is broken: "+err.Error(),
		"Denied: a check of this machine's operator ("+name+") does not work, and without it nothing is allowed here that leaves the container. Tell the user.")
	if !denied {
		return ""
	}
	return reason
}

// hookFiles lists the executables of a folder in the order of their names.
func hookFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list hooks: %s does not exist: make it, or take hooks out of the policy", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("list hooks: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode()&0o022 != 0 {
		return nil, errors.Join(err, fmt.Errorf("%s may be written by others than its owner: run chmod go-w on it", dir))
	}
	var list []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("look at hook %s: %w", e.Name(), err)
		}
		if info.Mode().IsRegular() && info.Mode()&0o111 != 0 && !strings.HasPrefix(e.Name(), ".") {
			if info.Mode()&0o022 != 0 {
				return nil, fmt.Errorf("hook %s may be written by others than its owner: run chmod go-w on it", e.Name())
			}
			list = append(list, path)
		}
	}
	if len(list) > maxHooks {
		return nil, fmt.Errorf("%s has %d hooks: %d are the most", dir, len(list), maxHooks)
	}
	return list, nil
}

// runHook asks one hook when there is room for it. All that it started is killed when its time is over.
func (s *Server) runHook(ctx context.Context, path string, question []byte) (hookOutput, error) {
	select {
	case s.runs <- struct{}{}:
	case <-ctx.Done():
		return hookOutput{}, ctx.Err()
	}
	defer func() { <-s.runs }()
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	out := &limited{most: hookMost, full: cancel}
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + hookPath, "LANG=C.UTF-8"}
	cmd.Stdin, cmd.Stdout = bytes.NewReader(question), out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case out.over:
		return hookOutput{}, fmt.Errorf("it printed more than %d bytes", hookMost)
	case ctx.Err() != nil:
		return hookOutput{}, fmt.Errorf("it did not answer within %v", hookTime)
	case err != nil:
		return hookOutput{}, fmt.Errorf("run it: %w", err)
	}
	dec := json.NewDecoder(&out.data)
	dec.DisallowUnknownFields()
	var answer hookOutput
	if err := dec.Decode(&answer); err != nil {
		return hookOutput{}, fmt.Errorf(`read its answer: %w: print {} or {"decision":"deny","reason":"…"}`, err)
	}
	if !strict.Ended(dec) {
		return hookOutput{}, errors.New("it printed more than one answer")
	}
	switch answer.Decision {
	case "", "allow", "deny":
		return answer, nil
	}
	return hookOutput{}, fmt.Errorf(`its decision is %q: print "deny", or {}`, answer.Decision)
}

// limited keeps what is printed up to a bound.
type limited struct {
	data bytes.Buffer
	most int
	full func()
	over bool
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.over = l.over || l.data.Len()+len(p) > l.most; l.over {
		l.full()
		return 0, errors.New("too much")
	}
	return l.data.Write(p)
}
