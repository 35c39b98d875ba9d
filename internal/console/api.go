package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/policy"
	"weir/internal/show"
)

// handler serves the page's files to everybody who may connect, and all else to the browser that was let in.
func (c *Console) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	for _, file := range []string{"/{$}", "/app.js", "/app.css"} {
		mux.Handle("GET "+file, c.pages)
	}
	mux.HandleFunc("POST /enter", c.enter)
	kick := make(chan struct{}, 1) // something was changed here
	for path, do := range map[string]func(*http.Request, request) (any, error){
		"why": c.why, "preview": c.preview, "answer": c.answer, "revoke": c.revoke,
	} {
		mux.HandleFunc("POST /"+path, c.member(func(w http.ResponseWriter, r *http.Request) {
			if path != "why" && !c.mayAnswer(r) {
				fail(w, errLooks)
				return
			}
			var q request
			if err := read(w, r, &q); err != nil {
				fail(w, err)
				return
			}
			result, err := do(r, q)
			if err != nil {
				fail(w, err)
				return
			}
			select {
			case kick <- struct{}{}:
			default:
			}
			write(w, result)
		}))
	}
	mux.HandleFunc("POST /live", c.member(func(w http.ResponseWriter, r *http.Request) { c.live(ctx, w, r, kick) }))
	c.history(mux)
	return c.guard(mux)
}

// request is what the page asks for.
type request struct {
	ID    string `json:"id"`    // of a question, an approval or a container
	Shown string `json:"shown"` // of an answer: the digest of the text that the person had before them
	Allow bool   `json:"allow"`
	Why   string `json:"why"`
	Scope int    `json:"scope"`
	For   string `json:"for"` // empty: once
	Who   string `json:"who"`
	Bytes string `json:"bytes"`
	Keeps bool   `json:"keeps"`
	Adds  string `json:"adds"` // with For: the text of what it adds that the person was shown
}

var errChanged = refusal{http.StatusConflict, "nothing was answered: the question is not the one that was shown any more: look again"}

// question finds what an answer is for, and the reply that it would be. What was shown has to be what the question says now.
func (c *Console) question(ctx context.Context, q request) (gate.Question, gate.Reply, error) {
	list, err := c.o.Sensor.Pending(ctx)
	if err != nil {
		return gate.Question{}, gate.Reply{}, err
	}
	i := slices.IndexFunc(list, func(o gate.Question) bool { return o.ID == q.ID })
	if i < 0 {
		return gate.Question{}, gate.Reply{}, refusal{http.StatusConflict, "nothing was answered: the question has ended"}
	}
	text := show.Question(list[i])
	if gate.Digest(text) != q.Shown {
		return gate.Question{}, gate.Reply{}, errChanged
	}
	r := gate.Reply{Allow: q.Allow, By: c.o.By, Why: q.Why, Scope: q.Scope, For: q.For, Who: q.Who, Keeps: q.Keeps, Shown: text}
	if q.Bytes != "" {
		n, ok := policy.ParseBytes(q.Bytes)
		if !ok || n < 1 {
			return gate.Question{}, gate.Reply{}, refusal{http.StatusBadRequest, "the size is none: give a number of bytes, also as 64KiB, 64MiB or 1GiB"}
		}
		r.Bytes = n
	}
	return list[i], r, nil
}

// lasting is the approval that a reply would give, with the lines that say what it adds.
func (c *Console) lasting(ctx context.Context, q gate.Question, r gate.Reply) (given gate.StandingApproval, text string, err error) {
	if given, err = q.StandingBy(r); err != nil {
		return given, "", refusal{http.StatusBadRequest, told(err)}
	}
	before, err := c.o.Sensor.Approvals(ctx)
	return given, show.Adds(given, before), err
}

func (c *Console) preview(r *http.Request, q request) (any, error) {
	asked, reply, err := c.question(r.Context(), q)
	if err != nil {
		return nil, err
	}
	_, text, err := c.lasting(r.Context(), asked, reply)
	if err != nil {
		return nil, err
	}
	return map[string]string{"text": text}, nil
}

func (c *Console) answer(r *http.Request, q request) (any, error) {
	asked, reply, err := c.question(r.Context(), q)
	if err != nil {
		return nil, err
	}
	if reply.For != "" {
		given, text, err := c.lasting(r.Context(), asked, reply)
		if err != nil {
			return nil, err
		}
		if text != q.Adds {
			return nil, errChanged
		}
		reply.Adds, reply.Shown = given.Adds, reply.Shown+text
	}
	ended, err := c.o.Sensor.Answer(control.WithLogin(r.Context(), c.login(r)), q.ID, reply)
	if err != nil {
		return nil, err
	}
	return map[string]string{"note": show.Subject(ended) + ": " + show.Outcome(ended) + show.Again(ended)}, nil
}

func (c *Console) revoke(r *http.Request, q request) (any, error) {
	a, err := c.o.Sensor.Revoke(control.WithLogin(r.Context(), c.login(r)), q.ID, c.o.By, q.Why)
	if err != nil {
		return nil, err
	}
	return map[string]string{"note": "revoked: " + show.Covered(a)}, nil
}

func (c *Console) why(r *http.Request, q request) (any, error) {
	y, err := c.o.Sensor.Why(r.Context(), q.ID)
	if err != nil {
		return nil, err
	}
	return map[string]string{"text": c.o.Why(y)}, nil
}

// live sends what there is, and again whenever it has changed, until the browser goes or the sensor cannot be asked.
func (c *Console) live(ctx context.Context, w http.ResponseWriter, r *http.Request, kick <-chan struct{}) {
	out := http.NewResponseController(w)
	out.SetReadDeadline(time.Time{}) // of a connection that is there: it cannot fail
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(c.o.Every)
	defer tick.Stop()
	_, err := c.o.Sensor.Answer(r.Context(), "", gate.Reply{}) // who may not answer is told so before it is seen that this is no question
	looks := !c.mayAnswer(r) || control.Code(err) == control.Denied
	var before []byte
	for idle := 0; c.known(r); idle++ {
		now, err := c.look(r.Context())
		if err != nil {
			now = state{Error: told(err)}
		} else {
			if name := c.login(r); name != "" {
				now.Status += ", " + event.Visible(name)
			}
			if now.Looks = looks; looks {
				now.Status += " (may look)"
			}
		}
		data := []byte(mustJSON(now))
		const quiet = 15 // rounds: who has gone is noticed when something is sent
		if !bytes.Equal(data, before) || idle%quiet == 0 {
			out.SetWriteDeadline(time.Now().Add(10 * time.Second))
			if _, werr := fmt.Fprintf(w, "data: %s\n\n", data); werr != nil || out.Flush() != nil {
				return
			}
			before = data
		}
		if err != nil {
			return // the next connection's peer is checked anew
		}
		select {
		case <-tick.C:
		case <-kick:
		case <-r.Context().Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// look asks the sensor for all that the page shows.
func (c *Console) look(ctx context.Context) (state, error) {
	st, err := c.o.Sensor.Status(ctx)
	if err != nil {
		return state{}, err
	}
	var list []control.Container
	var asked []gate.Question
	var lasting []gate.StandingApproval
	if list, err = c.o.Sensor.Containers(ctx); err == nil {
		if asked, err = c.o.Sensor.Pending(ctx); err == nil {
			lasting, err = c.o.Sensor.Approvals(ctx)
		}
	}
	if err != nil {
		return state{}, err
	}
	return c.view(st, list, asked, lasting), nil
}
