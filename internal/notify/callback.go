package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/control"
	"weir/internal/gate"
	"weir/internal/show"
)

// Bounds of the callback.
const (
	maxBody    = 64 << 10
	maxConns   = 64
	maxUsed    = 8192 // signatures that are remembered
	tellEvery  = time.Minute
	maxReason  = 1024 // bytes of why
	pathAnswer = "/v1/answer"
	pathSlack  = "/v1/slack"
)

// Answerer takes answers; the gate is one.
type Answerer interface {
	Question(id string) (gate.Question, error)
	Answer(id string, r gate.Reply) (gate.Question, error)
}

// CallbackOptions are what a Callback needs.
type CallbackOptions struct {
	Listen   string            // address and port, or the absolute path of a Unix socket
	Key      string            // signs answers in JSON; empty: they are not taken
	SlackKey string            // Slack's signing secret; empty: it is not heard
	Users    []string          // who may answer
	Window   time.Duration     // that a signature's time may differ from now
	Gate     Answerer          // whom answers go to
	Peers    control.PeerRules // who is refused; Told is the callback's own

	Tell func(text string) // called when somebody without the key calls, once a minute at most
	Now  func() time.Time  // nil is time.Now
}

// Callback takes signed answers over HTTP (B50). Who has not the key learns
// nothing from it, not even which questions there are.
type Callback struct {
	o        CallbackOptions
	listener net.Listener
	started  int64 // a signature from before is refused: what was used before a restart is not known

	answered, refused, unsigned atomic.Uint64

	mu     sync.Mutex
	used   map[string]int64 // signatures, with the second when they are too old anyway
	told   time.Time
	untold int
}

// Listen checks o and listens; it serves nothing yet. The caller calls Serve,
// which closes it.
func Listen(o CallbackOptions) (*Callback, error) {
	for _, key := range []string{o.Key, o.SlackKey} {
		if key != "" && len(key) < minKey {
			return nil, fmt.Errorf("callback: a key has %d bytes: make one of at least %d", len(key), minKey)
		}
	}
	if o.Key == "" && o.SlackKey == "" {
		return nil, errors.New("callback: no key is given")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	c := &Callback{o: o, used: map[string]int64{}, started: o.Now().Unix()}
	var err error
	// a socket is for root and its group, which is the directory's if that has the set-group-ID bit
	if c.listener, err = control.ListenUnix(o.Listen, 0o660); err != nil {
		return nil, fmt.Errorf("listen for answers: %w", err)
	}
	return c, nil
}

// Addr is where it listens.
func (c *Callback) Addr() net.Addr { return c.listener.Addr() }

// Counters gives how many answers were carried out and refused, and how many
// requests had no right signature.
func (c *Callback) Counters() map[string]uint64 {
	return map[string]uint64{"callback_answered": c.answered.Load(), "callback_refused": c.refused.Load(), "callback_unsigned": c.unsigned.Load()}
}

// Serve takes answers until ctx ends.
func (c *Callback) Serve(ctx context.Context) error {
	rules := c.o.Peers
	rules.Told = func() { c.stranger("a guarded process") }
	l := control.LimitListener(c.listener, maxConns, rules)
	// A stranger holds a connection for seconds, not for ever.
	if err := control.ServeHTTP(ctx, l, c, 0); err != nil {
		return fmt.Errorf("serve answers: %w", err)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (c *Callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	code, text := c.serve(r)
	w.WriteHeader(code)
	io.WriteString(w, text+"\n") // who has gone needs no answer
}

// unsignedText is the one answer to whoever has not the key.
const unsignedText = "refused: the request is not signed with the key"

func (c *Callback) serve(r *http.Request) (int, string) {
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, "refused: answers are posted"
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("refused: the request cannot be read, or has more than %d bytes", maxBody)
	}
	var key, purpose, prefix, at, sign string
	switch r.URL.Path {
	case pathAnswer:
		key, purpose, prefix = c.o.Key, purposeAnswer, "v1="
		at, sign = r.Header.Get(headerTime), r.Header.Get(headerSign)
	case pathSlack:
		key, purpose, prefix = c.o.SlackKey, purposeSlack, "v0="
		at, sign = r.Header.Get("X-Slack-Request-Timestamp"), r.Header.Get("X-Slack-Signature")
	}
	if key == "" {
		return http.StatusNotFound, "nothing is here"
	}
	signed, ok := signedAt([]byte(key), purpose, prefix, at, sign, body)
	if !ok {
		return c.stranger(r.RemoteAddr)
	}
	if code, text := c.fresh(signed, sign); code != 0 {
		c.refused.Add(1)
		return code, text
	}
	var a order
	if r.URL.Path == pathSlack {
		a, err = readSlack(body)
	} else {
		a, err = readAnswer(body)
	}
	if err != nil {
		c.refused.Add(1)
		return http.StatusBadRequest, "refused: " + err.Error()
	}
	a.from.Address = cmp.Or(strings.TrimPrefix(r.RemoteAddr, "@"), c.o.Listen) // a Unix peer has none
	code, text := c.carryOut(a)
	if code == http.StatusOK {
		c.answered.Add(1)
	} else {
		c.refused.Add(1)
	}
	return code, text
}

// stranger refuses who has not the key, and tells people now and then.
func (c *Callback) stranger(from string) (int, string) {
	c.unsigned.Add(1)
	c.mu.Lock()
	c.untold++
	n, now := c.untold, c.o.Now()
	tell := now.Sub(c.told) >= tellEvery || now.Before(c.told)
	if tell {
		c.told, c.untold = now, 0
	}
	c.mu.Unlock()
	if tell {
		c.o.Tell(fmt.Sprintf("callback: %d requests without a right signature, the last from %s", n, from))
	}
	return http.StatusUnauthorized, unsignedText
}

// fresh takes a signature, once, and only while its time is near; the code is 0
// then.
func (c *Callback) fresh(at int64, sign string) (int, string) {
	now, window := c.o.Now().Unix(), int64(c.o.Window/time.Second)
	switch {
	case at < now-window || at > now+window:
		return http.StatusUnauthorized, fmt.Sprintf("refused: it was signed for another time, more than %d s from now: compare the clocks", window)
	case at < c.started:
		return http.StatusUnauthorized, "refused: it was signed before the sensor started: sign it again"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, used := c.used[sign]; used {
		return http.StatusConflict, "refused: this request was used already"
	}
	if len(c.used) >= maxUsed {
		for s, over := range c.used {
			if over < now {
				delete(c.used, s)
			}
		}
		if len(c.used) >= maxUsed {
			return http.StatusServiceUnavailable, "refused: too many answers at once: try again later"
		}
	}
	c.used[sign] = at + 2*window // also if the clock is set back by less than the window
	return 0, ""
}

// carryOut answers the question for a user who may.
func (c *Callback) carryOut(a order) (int, string) {
	if !slices.Contains(c.o.Users, a.user) {
		return http.StatusForbidden, "refused: this user may not answer: notify.callback.users names who may"
	}
	q, err := Answer(c.o.Gate, a.form, a.id, a.shown, gate.Reply{Allow: a.allow, Scope: a.scope, By: a.by(), Why: a.why, From: a.from})
	if err != nil {
		return status(err), "refused: " + err.Error()
	}
	return http.StatusOK, fmt.Sprintf("question %s: %s", q.ID, show.Outcome(q))
}

// Why an approval does not count that was given elsewhere.
var (
	errNotShown = errors.New("an approval needs the sha256 of the text that was shown for this question")
	errNotWhole = errors.New("not all of the question was shown: answer it on the host")
)

// Answer gives a question the answer of somebody who saw it elsewhere, in a form; shown is the hash of the text that they had before them.
// An approval counts for that text alone.
func Answer(g Answerer, form, id, shown string, r gate.Reply) (gate.Question, error) {
	q, err := g.Question(id)
	if err != nil {
		return q, err
	}
	text, whole := shownText(form, q)
	same := shown == gate.Digest(text)
	switch {
	case r.Allow && !same:
		return q, errNotShown
	case r.Allow && !whole:
		return q, errNotWhole
	case same:
		r.Shown = text
	}
	return g.Answer(id, r)
}

func status(err error) int {
	switch {
	case errors.Is(err, errNotShown), errors.Is(err, errNotWhole), errors.Is(err, gate.ErrTwo):
		return http.StatusConflict
	case errors.Is(err, gate.ErrScope):
		return http.StatusBadRequest
	case errors.Is(err, gate.ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, gate.ErrAnswered), errors.Is(err, gate.ErrUsed):
		return http.StatusConflict
	case errors.Is(err, gate.ErrExpired):
		return http.StatusGone
	}
	return http.StatusInternalServerError
}
