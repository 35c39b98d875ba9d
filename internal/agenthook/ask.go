package agenthook

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
	"weir/internal/classify"
	"weir/internal/gitguard"
	"weir/internal/linux"
)

const (
	dialTime = 5 * time.Second
	// A policy lets a person answer for an hour at most.
	askTime = 3630 * time.Second
)

// localTime is how long the host is waited for where its answer is not needed: for a local command, and for what is refused anyway.
var localTime = 10 * time.Second

// asker decides on calls. Nothing but where to ask is taken from the environment.
type asker struct {
	socket string
	killed string                    // the kill switch's file
	trust  func(*net.UnixConn) error // says whether the sensor listens there
	folder folder                    // asked where no socket is
}

func (w World) asker() asker {
	a := asker{wire.Default, cmp.Or(w.killSwitch, wire.KillSwitch), w.trust, w.folder()}
	if path := env(w.Environ, wire.Variable); path != "" {
		a.socket = path
	}
	if a.trust == nil {
		a.trust = outside
	}
	return a
}

// env is the last value of a variable.
func env(environ []string, name string) (value string) {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// check says why a call is denied; empty lets it pass.
func (a asker) check(ctx context.Context, c call) string {
	text, shell := wire.ShellText(c.ToolName, c.Input)
	r := wire.Request{
		Type: wire.ToolCheck, ToolName: c.ToolName, ToolInput: c.Input, Dir: c.Dir, SessionID: c.Session, PromptID: c.Prompt, ToolUseID: c.ToolUse, AgentID: c.Agent, PermissionMode: c.Mode,
	}
	what, local := "The tool "+strconv.Quote(c.ToolName), wire.IsLocal(c.ToolName) // it cannot reach the network by itself
	if shell {
		if strings.TrimSpace(text) == "" {
			return "Denied: the call has no command in its input, so there is nothing to check. Give the shell command as a text."
		}
		dir := wire.Dir("self", wire.ShellDir(c.ToolName, c.Input, c.Dir))
		if wire.IsShell(c.ToolName) {
			r = wire.Request{Type: wire.BashCheck, Command: text, Dir: dir, PermissionMode: c.Mode}
		}
		_, guarded := gitguard.Check(text, dir)
		what, local = "This command", !guarded && !wire.IsServed(c.ToolName) && classify.Shell(text, dir).Class == classify.Local
	}
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	if shell && local {
		defer time.AfterFunc(localTime, enough).Stop()
	}
	stands := make(chan string, 1)
	go func() { // while the host is asked, which is told of what is refused here and may say more
		refused := a.standing(c)
		if refused != "" {
			time.AfterFunc(localTime, enough)
		}
		stands <- refused
	}()
	answer, err := a.ask(ctx, r)
	refused := <-stands
	switch {
	case err == nil && answer.Decision != wire.Allow:
		return reasonOf(answer)
	case refused != "":
		return refused
	case err == nil || local:
		return ""
	}
	return unreachable(what, err)
}

func reasonOf(denial wire.Answer) string {
	return cmp.Or(denial.Reason, "Denied by the command gate, without a reason.")
}

func unreachable(what string, err error) string {
	return fmt.Sprintf("Denied: the command gate cannot be asked (%v). %s is not plainly local, and what cannot be checked is not run. "+
		"Commands that only read and write local files still work. Tell the user that the command gate does not answer: the agent has to be started with weir guard, or its hook taken out with weir-hook uninstall.", err, what)
}

// ask puts one question to the host.
func (a asker) ask(ctx context.Context, r wire.Request) (wire.Answer, error) {
	r.RequestID = rand.Text()
	line, err := json.Marshal(r)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("encode the question: %w", err)
	}
	if len(line) >= wire.MaxLine {
		if r.Type != wire.ToolCheck || !wire.IsLocal(r.ToolName) {
			return wire.Answer{}, errors.New("it is longer than 2 MiB")
		}
		r.ToolInput = brief(r.ToolInput) // a long file that is written
		return a.ask(ctx, r)
	}
	conn, err := a.put(ctx, line)
	if _, ok := errors.AsType[noSocket](err); ok {
		if data, other := a.folder.ask(ctx, r.RequestID, line); !errors.Is(other, errNoFolder) {
			if other != nil {
				return wire.Answer{}, other
			}
			return answerTo(r.RequestID, data)
		}
		return wire.Answer{}, err
	}
	if err != nil {
		return wire.Answer{}, err
	}
	defer conn.Close()
	data, err := bufio.NewReader(io.LimitReader(conn, 64<<10)).ReadBytes('\n')
	if err != nil {
		return wire.Answer{}, plain(err)
	}
	return answerTo(r.RequestID, data)
}

// noSocket is that nobody listens.
type noSocket struct{ error }

// dial connects to the sensor, and to nobody else.
func (a asker) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "unix", a.socket)
	if err != nil {
		return nil, noSocket{plain(err)}
	}
	if err := a.trust(conn.(*net.UnixConn)); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// put connects and asks; reading the answer ends with ctx.
func (a asker) put(ctx context.Context, line []byte) (net.Conn, error) {
	conn, err := a.dial(ctx)
	if err != nil {
		return nil, err
	}
	err = conn.SetDeadline(time.Now().Add(askTime))
	context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // what fails then has failed already
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	if err != nil {
		conn.Close()
		return nil, plain(err)
	}
	return conn, nil
}

// brief keeps the short texts of a tool's input, its path among them.
func brief(input json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(input, &all) != nil {
		return nil
	}
	for name, value := range all {
		if len(value) > 8<<10 || len(name) > 128 {
			delete(all, name)
		}
	}
	data, err := json.Marshal(all)
	if err != nil || len(data) > wire.MaxLine/2 {
		return nil
	}
	return data
}

// plain is an error in plain words, without the path of the socket.
func plain(err error) error {
	var number unix.Errno
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it closed the connection")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("it did not answer in time")
	case errors.Is(err, unix.ENOENT):
		return errors.New("it is not there")
	case errors.Is(err, unix.ECONNREFUSED):
		return errors.New("nobody listens there")
	case errors.Is(err, os.ErrPermission):
		return errors.New("it is not permitted")
	case errors.As(err, &number):
		return number
	}
	return errors.New("it does not answer")
}

// outside checks that who listens is root, and not of this very container: WEIR_BRIDGE can be set by who starts the agent's tools, and a
// socket of its own would say yes to everything. A process of another pid namespace has the id 0 here, and its root may have no name.
func outside(conn *net.UnixConn) error {
	var cred *unix.Ucred
	err := linux.OnFD(conn, func(fd int) (err error) {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil {
		return errors.New("the hook cannot tell who listens there")
	}
	const nobody = 65534 // a user that this user namespace has no name for
	if cred.Uid != 0 && !(cred.Uid == nobody && cred.Pid == 0) {
		return errors.New("the listener there is not the sensor")
	}
	if cred.Pid == 0 {
		return nil
	}
	theirs, err := linux.CgroupOf(int(cred.Pid))
	if err != nil {
		return errors.New("the hook cannot tell who listens there")
	}
	own, err := linux.CgroupOf(os.Getpid())
	if err != nil || within(theirs, container(own)) {
		return errors.New("the listener there is not the sensor")
	}
	return nil
}

// container is the cgroup that all of this container is in, as far as that can be told from inside: a session's, or the own.
func container(own string) string {
	parts := strings.SplitN(own, "/", 4) // "", weir, g-…, rest
	if len(parts) >= 3 && parts[1] == "weir" {
		return strings.Join(parts[:3], "/")
	}
	return own
}

func within(path, parent string) bool {
	if parent == "/" { // a cgroup namespace: what is outside begins with ..
		return !strings.HasPrefix(path, "/..")
	}
	return linux.PathWithin(path, parent)
}
