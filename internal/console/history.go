package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/policy"
)

// Bounds of what one request costs. A log is as long as its policy says, and whoever is guarded chooses what is in it.
const (
	historyTime  = 60 * time.Second // for a whole answer
	searchTime   = 20 * time.Second // for going through the log, where the rest of an answer can do without the older part
	mostFound    = 200              // events of one answer
	mostRead     = 300_000          // events that a picture is of
	mostRow      = 4 << 10          // bytes of an event's line
	mostStored   = 16 << 10         // bytes of an event as it is stored
	mostMachines = 2                // answers that are made at once
)

// historyRequest is what the page asks about the log.
type historyRequest struct {
	Text      string       `json:"text"`
	Kinds     []event.Kind `json:"kinds"`
	Container string       `json:"container"` // id, name or cgroup, as weir events takes it
	Since     time.Time    `json:"since"`
	Before    time.Time    `json:"before"`
	Policy    string       `json:"policy"` // the text of a policy file
	Least     uint64       `json:"least"`
}

// history serves what the log tells.
func (c *Console) history(mux *http.ServeMux) {
	for _, file := range []string{"/history.js", "/history.css"} {
		mux.Handle("GET "+file, c.pages)
	}
	machines := make(chan struct{}, mostMachines)
	for path, do := range map[string]func(context.Context, *event.Stored, historyRequest) (any, error){
		"search": search, "life": life, "egress": egress, "replay": replay, "suggest": c.suggest,
	} {
		mux.HandleFunc("POST /"+path, c.member(func(w http.ResponseWriter, r *http.Request) {
			answer, err := c.answerFromLog(w, r, machines, do)
			if err != nil {
				fail(w, err)
				return
			}
			write(w, answer)
		}))
	}
}

func (c *Console) answerFromLog(w http.ResponseWriter, r *http.Request, machines chan struct{}, do func(context.Context, *event.Stored, historyRequest) (any, error)) (any, error) {
	var q historyRequest
	if err := readMost(w, r, &q, 2*policy.MaxFile); err != nil {
		return nil, err
	}
	for _, k := range q.Kinds {
		if !slices.Contains(event.Kinds(), k) {
			return nil, refusal{http.StatusBadRequest, "there is no such kind of event"}
		}
	}
	out := http.NewResponseController(w)
	out.SetReadDeadline(time.Time{}) // of a connection that is there: neither can fail
	out.SetWriteDeadline(time.Now().Add(historyTime + 10*time.Second))
	ctx, cancel := context.WithTimeout(r.Context(), historyTime)
	defer cancel()
	select {
	case machines <- struct{}{}:
		defer func() { <-machines }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	log, err := c.o.Sensor.Log(ctx)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	answer, err := do(ctx, log, q)
	if errors.Is(err, context.DeadlineExceeded) {
		err = refusal{http.StatusServiceUnavailable, "the log is too long for this: use weir policy replay or weir policy suggest"}
	}
	return answer, err
}

// newest goes through what the log has, newest first, until fn has enough of it or the time for that is over, and says what is missing.
func newest(ctx context.Context, log *event.Stored, q historyRequest, kinds []event.Kind, fn func(event.Event) error) (missing string, err error) {
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	f := event.Filter{Text: q.Text, Kinds: kinds, Container: q.Container, Since: q.Since, Before: q.Before}
	bad, err := log.Newest(limited, f, fn)
	switch {
	case errors.Is(err, errEnough):
		return "older ones are not shown", nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Sprintf("older ones are not shown: they were not reached in %v", searchTime), nil
	case err == nil && bad > 0:
		return fmt.Sprintf("%d lines of the log are no events", bad), nil
	}
	return "", err
}

var errEnough = errors.New("enough")

type (
	found struct {
		Events  []row  `json:"events"` // newest first
		Missing string `json:"missing,omitempty"`
		More    bool   `json:"more"` // there are older ones
	}
	row struct {
		Time   time.Time  `json:"time"`
		Kind   event.Kind `json:"kind"`
		Text   string     `json:"text"`
		Stored string     `json:"stored"` // JSON in which all that is not visible is escaped
	}
)

// search finds events. An answer never ends between two of the same time, so that the next page begins before that.
func search(ctx context.Context, log *event.Stored, q historyRequest) (any, error) {
	answer := found{Events: []row{}}
	missing, err := newest(ctx, log, q, q.Kinds, func(e event.Event) error {
		if n := len(answer.Events); n >= mostFound && (!e.Time.Equal(answer.Events[n-1].Time) || n >= 2*mostFound) {
			answer.More = true
			return errEnough
		}
		answer.Events = append(answer.Events, rowOf(e))
		return nil
	})
	answer.Missing = missing
	return answer, err
}

func rowOf(e event.Event) row {
	var stored bytes.Buffer
	data, err := event.Marshal(e)
	if err != nil || json.Indent(&stored, data, "", "  ") != nil {
		stored.Reset()
	}
	var lines []string
	for line := range strings.Lines(cutAt(stored.String(), mostStored)) {
		lines = append(lines, event.Visible(strings.TrimSuffix(line, "\n")))
	}
	return row{e.Time, e.Kind, rowText(e), strings.Join(lines, "\n")}
}

// rowText is an event's line without its time and kind, which stand apart.
func rowText(e event.Event) string {
	var line bytes.Buffer
	event.Print(&line, e) // to memory: it cannot fail
	_, text, _ := strings.Cut(line.String(), string(e.Kind))
	return cutAt(strings.TrimSpace(text), mostRow)
}

// cutAt is text up to so many bytes, and says how much is missing. The text is visible already.
func cutAt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head := strings.ToValidUTF8(text[:most], "")
	return fmt.Sprintf("%s… (%d more bytes)", head, len(text)-len(head))
}

// replay says what another policy would change, and which diff of decisions that is.
func replay(ctx context.Context, log *event.Stored, q historyRequest) (any, error) {
	p, err := policy.Parse("the policy", []byte(q.Policy))
	if err != nil {
		return nil, mistakes(err)
	}
	report, err := gate.ReplayLog(ctx, reader(log, q), p)
	if report.Totals.Events == 0 && err != nil && ctx.Err() == nil {
		err = gate.ErrNoEvents
	}
	passed, err := passedOver(err)
	if err != nil {
		return nil, err
	}
	answer := replayed{Passed: passed, Left: report.Left, Changes: []changed{}, Events: report.Totals.Events, Decisions: report.Totals.Decisions,
		Changed: report.Totals.Changed, Now: report.Totals.Now}
	slices.SortStableFunc(report.Changes, func(a, b *gate.CountedChange) int { return int(b.Count) - int(a.Count) })
	for i, change := range report.Changes {
		if i == mostFound {
			answer.Left += uint64(len(report.Changes) - i)
			break
		}
		e := change.Event
		row := changed{
			Count: change.Count, Was: fmt.Sprintf("%s (%s)", change.Was, event.Visible(change.WasBy)), Now: fmt.Sprintf("%s (%s)", change.Now, event.Visible(change.NowBy)),
			Opens: change.Now == gate.ReplayAllow, Container: nameOf(e.Container), Why: event.Visible(change.Reason),
			Command: event.Command(e.Process.Argv, 160, 480),
		}
		if e.Command != "" {
			row.Command = event.Command([]string{e.Command}, 480, 480)
		}
		if e.Destination != nil {
			row.To = e.Destination.String()
		}
		answer.Changes = append(answer.Changes, row)
	}
	return answer, nil
}

type (
	replayed struct {
		Events    uint64                        `json:"events"`
		Decisions uint64                        `json:"decisions"`
		Changed   uint64                        `json:"changed"`
		Now       map[gate.ReplayOutcome]uint64 `json:"now"`
		Changes   []changed                     `json:"changes"` // most first
		Left      uint64                        `json:"left"`    // that are not shown
		Passed    string                        `json:"passed,omitempty"`
	}
	changed struct {
		Count     uint64 `json:"count"`
		Was       string `json:"was"`
		Now       string `json:"now"`
		Opens     bool   `json:"opens"`
		Container string `json:"container"`
		To        string `json:"to"`
		Command   string `json:"command"`
		Why       string `json:"why"`
	}
)

// suggest says, as weir policy suggest does, what the policy could let through by itself.
func (c *Console) suggest(ctx context.Context, log *event.Stored, q historyRequest) (any, error) {
	text := q.Policy
	if strings.TrimSpace(text) == "" {
		text = "version: 1\n"
	}
	if _, err := policy.Parse("policy.yaml", []byte(text)); err != nil {
		return nil, mistakes(err)
	}
	s, err := gate.Suggest(ctx, reader(log, q), "policy.yaml", []byte(text), max(q.Least, 1))
	passed, err := passedOver(err)
	if err != nil {
		return nil, err
	}
	return map[string]string{"text": c.o.Suggestion(s), "passed": passed}, nil
}

// mistakes are those of a policy, on one line.
func mistakes(err error) error {
	return refusal{http.StatusBadRequest, strings.ReplaceAll(err.Error(), "\n", "; ")}
}

// reader reads a log from its start.
func reader(log *event.Stored, q historyRequest) gate.Log {
	return func(fn func(event.Event) error) error { return log.Read(event.Filter{Since: q.Since}, fn) }
}

// passedOver takes an error about lines that are no events for what it is: all else was read.
func passedOver(err error) (string, error) {
	bad, isBad := errors.AsType[*event.BadLines](err)
	switch {
	case errors.Is(err, gate.ErrNoEvents):
		return "", refusal{http.StatusConflict, "the log has no event of that time"}
	case isBad:
		return fmt.Sprintf("%d lines of the log are no events, and are passed over", bad.Count), nil
	}
	return "", err
}

// nameOf is a container's name, of a length that fits beside others.
func nameOf(c *event.Container) string {
	if c == nil {
		return ""
	}
	return event.Command([]string{cmp.Or(c.Name, c.ID)}, 160, 0)
}
