package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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

var errSilent = fmt.Errorf("the sensor does not answer for %v: look at its log, or restart it", callTime)

// Client calls a running sensor. Its methods are those of Backend; an error from
// the sensor is an *Error. by is who the caller works for, and may be empty.
type Client struct {
	dial func(context.Context) (net.Conn, error)
	http http.Client
}

// NewClient returns a client of the sensor that serves dir. It connects for each
// call anew.
func NewClient(dir string) *Client {
	path := filepath.Join(dir, socketName)
	c := &Client{dial: func(ctx context.Context) (net.Conn, error) { return connect(ctx, path) }}
	c.http.Transport = &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		DisableKeepAlives: true,
	}
	return c
}

func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.call(ctx, "status", nothing{}, &s)
}

func (c *Client) Containers(ctx context.Context) (list []Container, err error) {
	return list, c.call(ctx, "containers", nothing{}, &list)
}

func (c *Client) Why(ctx context.Context, name string) (y Why, err error) {
	return y, c.call(ctx, "why", whyRequest{name}, &y)
}

func (c *Client) Metrics(ctx context.Context) (text string, err error) {
	return text, c.call(ctx, "metrics", nothing{}, &text)
}

func (c *Client) Peer(ctx context.Context, p Peer) error { return c.call(ctx, "peer", p, nil) }

func (c *Client) Taint(ctx context.Context, name string, bits []string, by, why string) (k Container, err error) {
	return k, c.call(ctx, "taint", taintRequest{name, bits, reasoned{Why: why, By: by}}, &k)
}

func (c *Client) Untaint(ctx context.Context, name string, bits []string, by, why string) (k Container, err error) {
	return k, c.call(ctx, "untaint", taintRequest{name, bits, reasoned{Why: why, By: by}}, &k)
}

func (c *Client) Moved(ctx context.Context, told []Elsewhere) (wanted []Wanted, err error) {
	return wanted, c.call(ctx, "moved", movedRequest{told}, &wanted)
}

func (c *Client) TaintPath(ctx context.Context, path string, bits []string, by, why string) (v Volume, err error) {
	return v, c.call(ctx, "taint-path", pathRequest{path, bits, reasoned{Why: why, By: by}}, &v)
}

func (c *Client) UntaintPath(ctx context.Context, path string, bits []string, by, why string) (v Volume, err error) {
	return v, c.call(ctx, "untaint-path", pathRequest{path, bits, reasoned{Why: why, By: by}}, &v)
}

func (c *Client) Pending(ctx context.Context) (list []gate.Question, err error) {
	return list, c.call(ctx, "pending", nothing{}, &list)
}

func (c *Client) History(ctx context.Context, most int) (list []gate.Question, err error) {
	return list, c.call(ctx, "history", historyRequest{most}, &list)
}

// Answer calls Backend.Answer. From is the server's to fill.
func (c *Client) Answer(ctx context.Context, id string, r gate.Reply) (q gate.Question, err error) {
	op := "deny"
	if r.Allow {
		op = "approve"
	}
	return q, c.call(ctx, op, answerRequest{id, r.Scope, r.For, r.Narrow, r.Shown, reasoned{r.Why, r.By, LoginOf(ctx)}, r.Who, r.Bytes, r.Keeps, r.Adds}, &q)
}

func (c *Client) Approvals(ctx context.Context) (list []gate.StandingApproval, err error) {
	return list, c.call(ctx, "approvals", nothing{}, &list)
}

func (c *Client) Revoke(ctx context.Context, id, by, why string) (s gate.StandingApproval, err error) {
	return s, c.call(ctx, "revoke", revokeRequest{id, reasoned{why, by, LoginOf(ctx)}}, &s)
}

func (c *Client) Signed(ctx context.Context, s Signed) (text string, err error) {
	return text, c.call(ctx, "signed", s, &text)
}

func (c *Client) Guard(ctx context.Context, r GuardRequest) (reply GuardReply, err error) {
	return reply, c.call(ctx, "guard", r, &reply)
}

func (c *Client) GuardCgroup(ctx context.Context, r CgroupRequest) (k Container, err error) {
	return k, c.call(ctx, "guard-cgroup", r, &k)
}

func (c *Client) GuardAgent(ctx context.Context, id string, pid int) error {
	return c.call(ctx, "guard-agent", sessionRequest{id, pid}, nil)
}

func (c *Client) GuardEnd(ctx context.Context, id string) (s Summary, err error) {
	return s, c.call(ctx, "guard-end", sessionRequest{ID: id}, &s)
}

func (c *Client) Mode(ctx context.Context, mode, by, why string) error {
	return c.call(ctx, "mode", modeRequest{mode, reasoned{Why: why, By: by}}, nil)
}

func (c *Client) ModelRefused(ctx context.Context, r ModelRefusal) error {
	return c.call(ctx, "model-refused", r, nil)
}

func (c *Client) Reload(ctx context.Context) error {
	return c.call(ctx, "reload", nothing{}, nil)
}

func (c *Client) Events(ctx context.Context, f event.Filter, follow bool, fn func(event.Event) error) error {
	body, err := c.post(ctx, "events", eventsRequest{f.Kinds, f.Container, f.Since, f.Text, follow})
	if err != nil {
		return err
	}
	defer body.Close()
	for d := json.NewDecoder(body); ; {
		var line eventsLine
		err := d.Decode(&line)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unread(err)
		case line.Failure != nil:
			return line.Failure
		case line.Event != nil:
			if err := fn(*line.Event); err != nil {
				return err
			}
		}
	}
}

// call sends request and stores the result, unless result is nil.
func (c *Client) call(ctx context.Context, op string, request, result any) error {
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	body, err := c.post(limited, op, request)
	if err == nil {
		defer body.Close()
		if result != nil {
			err = unread(json.NewDecoder(body).Decode(result))
		}
	}
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return errSilent
	}
	return err
}

// post sends a request and returns the body of a good answer, which the caller closes.
func (c *Client) post(ctx context.Context, op string, request any) (io.ReadCloser, error) {
	data, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://weir/"+op, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		if coded := new(Error); err == ErrNotRunning || errors.As(err, &coded) {
			return nil, err
		}
		return nil, unread(err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	return nil, failed(answer)
}

// failed is the error that an answer is.
func failed(answer *http.Response) error {
	e := new(Error)
	if err := json.NewDecoder(answer.Body).Decode(e); err != nil {
		return unread(err)
	}
	return e
}

// unread is the error of an answer that could not be read; nil for nil.
func unread(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the sensor stopped in the middle of its answer")
	}
	return fmt.Errorf("ask the sensor: %w", err)
}

func connect(ctx context.Context, path string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOTDIR):
		return nil, ErrNotRunning
	case errors.Is(err, unix.EACCES):
		return nil, Errorf(Failed, "needs root%s: run it with sudo", orGroup(path))
	case errors.Is(err, unix.EPERM):
		return nil, Errorf(Denied, "refused: a guarded process may not use the control socket")
	}
	return nil, err
}
