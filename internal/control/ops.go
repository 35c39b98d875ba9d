package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
)

const (
	maxRequest = 1 << 20          // bytes
	maxWhy     = 4096             // bytes of a reason
	answerTime = 10 * time.Second // for an answer to be taken
)

// Requests of more than a few operations.
type (
	reasoned struct {
		Why string `json:"why,omitempty"`
		By  string `json:"by,omitempty"` // who the client says asks

		Login string `json:"login,omitempty"` // of an answer or a revocation: who logged in to the client, a console, as it says
	}
	taintRequest struct {
		Name string   `json:"name"`
		Bits []string `json:"bits"`
		reasoned
	}
	movedRequest struct {
		Told []Elsewhere `json:"told,omitempty"`
	}
	pathRequest struct {
		Path string   `json:"path"`
		Bits []string `json:"bits"`
		reasoned
	}
	answerRequest struct {
		ID     string `json:"id"`
		Scope  int    `json:"scope,omitempty"`  // of an approval: the place in the question's chain of who is let out; 0 is 1
		For    string `json:"for,omitempty"`    // of an approval: session, key (of a tool's call) or a time (of a connection); empty: once
		Narrow bool   `json:"narrow,omitempty"` // with For: for the same request alone, where the question lists that
		Shown  string `json:"shown,omitempty"`  // the text that the operator had before them
		reasoned

		// With For, of a connection: see gate.Reply.
		Who   string `json:"who,omitempty"`
		Bytes int64  `json:"bytes,omitempty"`
		Keeps bool   `json:"keeps,omitempty"`
		Adds  string `json:"adds,omitempty"`
	}
	revokeRequest struct {
		ID string `json:"id"`
		reasoned
	}
	whyRequest struct {
		Name string `json:"name"`
	}
	historyRequest struct {
		Most int `json:"most,omitempty"` // 0: 100
	}
	eventsRequest struct {
		Kinds     []event.Kind `json:"kinds,omitempty"`
		Container string       `json:"container,omitempty"`
		Since     time.Time    `json:"since,omitzero"`
		Text      string       `json:"text,omitempty"`
		Follow    bool         `json:"follow,omitempty"`
	}
	sessionRequest struct {
		ID  string `json:"id"`
		PID int    `json:"pid,omitempty"` // of its agent
	}
	modeRequest struct {
		Mode string `json:"mode"`
		reasoned
	}
)

// eventsLine is one line of the answer to events.
type eventsLine struct {
	Event   *event.Event `json:"event,omitempty"`
	Failure *Error       `json:"failure,omitempty"`
}

// operations has each by the name that is its path.
type operations map[string]http.HandlerFunc

// operation adds one that has a request and an answer.
func operation[Q, A any](all operations, name string, do func(context.Context, peer, Q) (A, error)) {
	all[name] = func(w http.ResponseWriter, r *http.Request) {
		var q Q
		var a A
		err := decode(w, r, &q)
		if why, ok := any(&q).(interface{ bound(op string) error }); ok && err == nil {
			err = why.bound(name)
		}
		if err == nil {
			a, err = do(r.Context(), peerOf(r), q)
		}
		reply(w, a, err)
	}
}

type nothing struct{}

func operationsOf(b Backend) operations {
	all := operations{
		"events": func(w http.ResponseWriter, r *http.Request) { events(w, r, b) },
		"log":    func(w http.ResponseWriter, r *http.Request) { handLog(w, r, b) },
	}
	operation(all, "status", func(ctx context.Context, _ peer, _ nothing) (Status, error) { return b.Status(ctx) })
	operation(all, "containers", func(ctx context.Context, _ peer, _ nothing) ([]Container, error) { return b.Containers(ctx) })
	operation(all, "why", func(ctx context.Context, _ peer, q whyRequest) (Why, error) {
		if err := need("why", "name", q.Name); err != nil {
			return Why{}, err
		}
		return b.Why(ctx, q.Name)
	})
	operation(all, "peer", func(ctx context.Context, _ peer, q Peer) (nothing, error) {
		if q.PID <= 0 && !(q.Local.IsValid() && q.Remote.IsValid()) {
			return nothing{}, Errorf(Usage, "peer: give a pid, or both local and remote")
		}
		return nothing{}, b.Peer(ctx, q)
	})
	operation(all, "metrics", func(ctx context.Context, _ peer, _ nothing) (string, error) { return b.Metrics(ctx) })
	operation(all, "pending", func(ctx context.Context, _ peer, _ nothing) ([]gate.Question, error) { return b.Pending(ctx) })
	operation(all, "history", func(ctx context.Context, _ peer, q historyRequest) ([]gate.Question, error) {
		if q.Most < 0 {
			return nil, Errorf(Usage, "history: most is %d: give how many, from 1", q.Most)
		}
		return b.History(ctx, cmp.Or(q.Most, 100))
	})
	operation(all, "reload", func(ctx context.Context, _ peer, _ nothing) (nothing, error) { return nothing{}, b.Reload(ctx) })
	operation(all, "taint", func(ctx context.Context, p peer, q taintRequest) (Container, error) {
		if err := need("taint", "name", q.Name, "bits", strings.Join(q.Bits, "")); err != nil {
			return Container{}, err
		}
		return b.Taint(ctx, q.Name, q.Bits, p.by(q.By), q.Why)
	})
	operation(all, "untaint", func(ctx context.Context, p peer, q taintRequest) (Container, error) {
		if err := need("untaint", "name", q.Name, "bits", strings.Join(q.Bits, ""), "why", strings.TrimSpace(q.Why)); err != nil {
			return Container{}, err
		}
		return b.Untaint(ctx, q.Name, q.Bits, p.by(q.By), q.Why)
	})
	operation(all, "moved", func(ctx context.Context, _ peer, q movedRequest) ([]Wanted, error) { return b.Moved(ctx, q.Told) })
	operation(all, "taint-path", func(ctx context.Context, p peer, q pathRequest) (Volume, error) {
		if err := need("taint-path", "path", q.Path, "bits", strings.Join(q.Bits, "")); err != nil {
			return Volume{}, err
		}
		return b.TaintPath(ctx, q.Path, q.Bits, p.by(q.By), q.Why)
	})
	operation(all, "untaint-path", func(ctx context.Context, p peer, q pathRequest) (Volume, error) {
		if err := need("untaint-path", "path", q.Path, "bits", strings.Join(q.Bits, ""), "why", strings.TrimSpace(q.Why)); err != nil {
			return Volume{}, err
		}
		return b.UntaintPath(ctx, q.Path, q.Bits, p.by(q.By), q.Why)
	})
	for name, allow := range map[string]bool{"approve": true, "deny": false} {
		operation(all, name, func(ctx context.Context, p peer, q answerRequest) (gate.Question, error) {
			if err := need(name, "id", q.ID); err != nil {
				return gate.Question{}, err
			}
			if q.For == gate.ForKey && p.uid != 0 {
				return gate.Question{}, Errorf(Denied, "refused: an answer with --for key writes a permission rule for every container, which is root's")
			}
			by, err := p.answers(q.reasoned)
			if err != nil {
				return gate.Question{}, err
			}
			return b.Answer(ctx, q.ID, gate.Reply{
				Allow: allow, By: by, Why: q.Why, Scope: q.Scope, For: q.For, Narrow: q.Narrow, From: p.origin(), Shown: q.Shown,
				Who: q.Who, Bytes: q.Bytes, Keeps: q.Keeps, Adds: q.Adds,
			})
		})
	}
	operation(all, "approvals", func(ctx context.Context, _ peer, _ nothing) ([]gate.StandingApproval, error) { return b.Approvals(ctx) })
	operation(all, "revoke", func(ctx context.Context, p peer, q revokeRequest) (gate.StandingApproval, error) {
		if err := need("revoke", "id", q.ID); err != nil {
			return gate.StandingApproval{}, err
		}
		by, err := p.answers(q.reasoned)
		if err != nil {
			return gate.StandingApproval{}, err
		}
		return b.Revoke(ctx, q.ID, by, q.Why)
	})
	operation(all, "signed", func(ctx context.Context, _ peer, q Signed) (string, error) {
		if err := need("signed", "key", q.Key, "statement", q.Statement, "signature", q.Signature); err != nil {
			return "", err
		}
		return b.Signed(ctx, q)
	})
	operation(all, "guard", func(ctx context.Context, p peer, q GuardRequest) (GuardReply, error) {
		q.By = p.by(q.By)
		return b.Guard(ctx, q)
	})
	operation(all, "guard-cgroup", func(ctx context.Context, p peer, q CgroupRequest) (Container, error) {
		if err := need("guard-cgroup", "cgroup", q.Cgroup); err != nil {
			return Container{}, err
		}
		q.By = p.by(q.By)
		return b.GuardCgroup(ctx, q)
	})
	operation(all, "guard-agent", func(ctx context.Context, _ peer, q sessionRequest) (nothing, error) {
		if err := need("guard-agent", "id", q.ID); err != nil {
			return nothing{}, err
		}
		if q.PID <= 0 {
			return nothing{}, Errorf(Usage, "guard-agent: the pid %d is none", q.PID)
		}
		return nothing{}, b.GuardAgent(ctx, q.ID, q.PID)
	})
	operation(all, "guard-end", func(ctx context.Context, _ peer, q sessionRequest) (Summary, error) {
		if err := need("guard-end", "id", q.ID); err != nil {
			return Summary{}, err
		}
		return b.GuardEnd(ctx, q.ID)
	})
	operation(all, "model-refused", func(ctx context.Context, _ peer, q ModelRefusal) (nothing, error) {
		if err := need("model-refused", "code", q.Code); err != nil {
			return nothing{}, err
		}
		return nothing{}, b.ModelRefused(ctx, q)
	})
	operation(all, "mode", func(ctx context.Context, p peer, q modeRequest) (nothing, error) {
		if err := need("mode", "mode", q.Mode, "why", strings.TrimSpace(q.Why)); err != nil {
			return nothing{}, err
		}
		return nothing{}, b.Mode(ctx, q.Mode, p.by(q.By), q.Why)
	})
	return all
}

// ServeHTTP implements http.Handler.
func (all operations) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	do, ok := all[strings.TrimPrefix(r.URL.Path, "/")]
	switch {
	case !ok:
		reply(w, nil, Errorf(Usage, "unknown operation %q: the operations are %s", r.URL.Path, strings.Join(slices.Sorted(maps.Keys(all)), ", ")))
	case r.Method != http.MethodPost:
		reply(w, nil, Errorf(Usage, "the method %q is not taken: use POST", r.Method))
	default:
		do(w, r)
	}
}

// bound refuses a person's reason that is too long.
func (r *reasoned) bound(op string) error {
	if r.Why = strings.ToValidUTF8(r.Why, "?"); len(r.Why) > maxWhy {
		return Errorf(Usage, "%s: why has more than %d bytes", op, maxWhy)
	}
	return nil
}

// need refuses a request with an empty field.
func need(op string, fields ...string) error {
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] == "" {
			return Errorf(Usage, "%s: no %s given", op, fields[i])
		}
	}
	return nil
}

// decode reads one JSON object. Keys that it does not know, and what follows it, are refused.
func decode(w http.ResponseWriter, r *http.Request, request any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	d.DisallowUnknownFields()
	err := d.Decode(request)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = cmp.Or(err, errors.New("more than one JSON object"))
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Errorf(Usage, "read request: longer than %d bytes", maxRequest)
	}
	return Errorf(Usage, "read request: %w", err)
}

// reply writes the one answer.
func reply(w http.ResponseWriter, result any, err error) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // of a connection that is there: it cannot fail
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		result = failure(err)
		status := map[int]int{Usage: http.StatusBadRequest, Denied: http.StatusForbidden}
		w.WriteHeader(cmp.Or(status[Code(err)], http.StatusInternalServerError))
	}
	json.NewEncoder(w).Encode(result) // a client that has gone needs none
}

func failure(err error) *Error { return &Error{Code(err), event.Plain(err)} }

func events(w http.ResponseWriter, r *http.Request, b Backend) {
	var q eventsRequest
	if err := decode(w, r, &q); err != nil {
		reply(w, nil, err)
		return
	}
	for _, k := range q.Kinds {
		if !slices.Contains(event.Kinds(), k) {
			reply(w, nil, Errorf(Usage, "events: unknown kind %q: the kinds are %s", k, event.KindNames()))
			return
		}
	}
	lines, out := json.NewEncoder(w), http.NewResponseController(w)
	begun := false
	f := event.Filter{Kinds: q.Kinds, Container: q.Container, Since: q.Since, Text: q.Text}
	err := b.Events(r.Context(), f, q.Follow, func(e event.Event) error {
		begun = true
		if err := lines.Encode(eventsLine{Event: &e}); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		if q.Follow {
			return out.Flush()
		}
		return nil
	})
	switch {
	case err == nil, q.Follow && errors.Is(err, context.Canceled): // how following ends
	case begun:
		lines.Encode(eventsLine{Failure: failure(err)})
	default:
		reply(w, nil, err)
	}
}
