package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/event"
	"weir/internal/gate"
)

// callTime bounds a call other than following events: a stopped sensor takes
// connections and never answers.
const callTime = 30 * time.Second

// Client calls a running sensor. Its methods are those of Backend; an error from
// the sensor is an *Error. by is who the caller works for, and may be empty.
type Client struct {
	path string
}

// NewClient returns a client of the sensor that serves dir. It connects for each
// call anew.
func NewClient(dir string) *Client { return &Client{path: filepath.Join(dir, socketName)} }

// Status calls Backend.Status.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.call(ctx, plainRequest{head{Op: "status"}}, &s)
}

// Containers calls Backend.Containers.
func (c *Client) Containers(ctx context.Context) (list []Container, err error) {
	return list, c.call(ctx, plainRequest{head{Op: "containers"}}, &list)
}

// Taint calls Backend.Taint.
func (c *Client) Taint(ctx context.Context, name string, bits []string, by, why string) (k Container, err error) {
	return k, c.call(ctx, taintRequest{head{"taint", by}, name, bits, why}, &k)
}

// Untaint calls Backend.Untaint.
func (c *Client) Untaint(ctx context.Context, name string, bits []string, by, why string) (k Container, err error) {
	return k, c.call(ctx, taintRequest{head{"untaint", by}, name, bits, why}, &k)
}

// Pending calls Backend.Pending.
func (c *Client) Pending(ctx context.Context) (list []gate.Question, err error) {
	return list, c.call(ctx, plainRequest{head{Op: "pending"}}, &list)
}

// History calls Backend.History.
func (c *Client) History(ctx context.Context, most int) (list []gate.Question, err error) {
	return list, c.call(ctx, historyRequest{head{Op: "history"}, most}, &list)
}

// Answer calls Backend.Answer. From is the server's to fill.
func (c *Client) Answer(ctx context.Context, id string, r gate.Reply) (q gate.Question, err error) {
	op := "deny"
	if r.Allow {
		op = "approve"
	}
	return q, c.call(ctx, answerRequest{head{op, r.By}, id, r.Why, r.Scope, r.For, r.Narrow, r.Shown}, &q)
}

// Guard calls Backend.Guard.
func (c *Client) Guard(ctx context.Context, r GuardRequest) (reply GuardReply, err error) {
	return reply, c.call(ctx, guardRequest{head{"guard", r.By}, r.Name, r.Taint, r.Policy, r.PolicyName}, &reply)
}

// GuardCgroup calls Backend.GuardCgroup.
func (c *Client) GuardCgroup(ctx context.Context, r CgroupRequest) (k Container, err error) {
	return k, c.call(ctx, cgroupRequest{head{"guard-cgroup", r.By}, r.Cgroup, r.Name, r.Taint}, &k)
}

// GuardAgent calls Backend.GuardAgent.
func (c *Client) GuardAgent(ctx context.Context, id string, pid int) error {
	return c.call(ctx, agentRequest{head{Op: "guard-agent"}, id, pid}, nil)
}

// GuardEnd calls Backend.GuardEnd.
func (c *Client) GuardEnd(ctx context.Context, id string) (s Summary, err error) {
	return s, c.call(ctx, sessionRequest{head{Op: "guard-end"}, id}, &s)
}

// Mode calls Backend.Mode.
func (c *Client) Mode(ctx context.Context, mode, by, why string) error {
	return c.call(ctx, modeRequest{head{"mode", by}, mode, why}, nil)
}

// Reload calls Backend.Reload.
func (c *Client) Reload(ctx context.Context) error {
	return c.call(ctx, plainRequest{head{Op: "reload"}}, nil)
}

// Events calls Backend.Events.
func (c *Client) Events(ctx context.Context, f event.Filter, follow bool, fn func(event.Event) error) error {
	r := eventsRequest{head{Op: "events"}, f.Kinds, f.Container, f.Since, f.Text, follow}
	return c.stream(ctx, r, func(result json.RawMessage) error {
		var e event.Event
		if err := json.Unmarshal(result, &e); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		return fn(e)
	})
}

// call sends request and stores the result, unless result is nil.
func (c *Client) call(ctx context.Context, request, result any) error {
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := c.exchange(limited, request, func(a answer) error {
		if result == nil || a.Result == nil {
			return nil
		}
		if err := json.Unmarshal(a.Result, result); err != nil {
			return fmt.Errorf("read the sensor's answer: %w", err)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("the sensor does not answer for %v: look at its log, or restart it", callTime)
	}
	return err
}

// stream sends request and calls fn for each line of the answer but the last.
func (c *Client) stream(ctx context.Context, request any, fn func(json.RawMessage) error) error {
	return c.exchange(ctx, request, func(a answer) error {
		if !a.More {
			return nil
		}
		return fn(a.Result)
	})
}

// exchange sends one request and calls fn for each good line of the answer.
func (c *Client) exchange(ctx context.Context, request any, fn func(answer) error) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	defer stop()

	line, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	// A refused peer's request is not read: its answer is there all the same.
	_, writeErr := conn.Write(append(line, '\n'))
	r := bufio.NewReader(conn)
	for {
		line, err := readLine(r, maxAnswer)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && writeErr != nil:
			return fmt.Errorf("ask the sensor: %w", writeErr)
		case errors.Is(err, io.EOF):
			return errors.New("the sensor stopped in the middle of its answer")
		case err != nil:
			return fmt.Errorf("read the sensor's answer: %w", err)
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return fmt.Errorf("read the sensor's answer: %w", err)
		}
		if !a.OK {
			return &Error{Code: a.Code, Text: a.Error}
		}
		if err := fn(a); err != nil {
			return err
		}
		if !a.More {
			return nil
		}
	}
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.path)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOTDIR):
		return nil, ErrNotRunning
	case errors.Is(err, unix.EACCES):
		return nil, errors.New("needs root: run it with sudo")
	case errors.Is(err, unix.EPERM):
		return nil, Errorf(Denied, "refused: a guarded process may not use the control socket")
	}
	return nil, fmt.Errorf("reach the sensor: %w", err)
}
