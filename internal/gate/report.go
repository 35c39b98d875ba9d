package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"weir/internal/event"
	"weir/internal/policy"
	"weir/internal/redact"
)

// Log reads a log from its start: it calls fn for each event, and returns its error. It may return a *event.BadLines after all else was read.
type Log func(fn func(event.Event) error) error

// ErrNoEvents is returned where a log has no event.
var ErrNoEvents = errors.New("there is no event in it")

// ReplayReport is what another policy would change of a log.
type ReplayReport struct {
	Changes []*CountedChange `json:"changes"`          // in the order of the first
	Left    uint64           `json:"changes_left_out"` // how many more there are
	Totals  ReplayTotals     `json:"totals"`
}

// CountedChange is the same change, of as many events as there were.
type CountedChange struct {
	ReplayChange
	Count uint64 `json:"count"`
}

// maxChanges bounds how many different changes are told.
const maxChanges = 10_000

// ReplayLog decides a log under a policy. With a *event.BadLines the report is about the other lines.
func ReplayLog(ctx context.Context, log Log, p policy.Policy) (ReplayReport, error) {
	report := ReplayReport{Changes: []*CountedChange{}}
	same := map[string]*CountedChange{}
	var err error
	report.Totals, err = decideAll(ctx, log, p, func(_ event.Event, c ReplayChange, changed bool) {
		if !changed {
			return
		}
		key := changeKey(c)
		switch known := same[key]; {
		case known != nil:
			known.Count++
		case len(report.Changes) == maxChanges:
			report.Left++
		default:
			same[key] = &CountedChange{c, 1}
			report.Changes = append(report.Changes, same[key])
		}
	})
	return report, err
}

// changeKey is what makes two changes the same for who reads them.
func changeKey(c ReplayChange) string {
	parts := []string{string(c.Was), c.WasBy, string(c.Now), c.NowBy, c.Event.Container.ID, c.Event.Command}
	if d := c.Event.Destination; d != nil {
		parts = append(parts, d.String())
	}
	return strings.Join(append(parts, c.Event.Process.Argv...), "\x00")
}

// decideAll decides a log under a policy, and hands on its events.
func decideAll(ctx context.Context, log Log, p policy.Policy, also func(e event.Event, c ReplayChange, changed bool)) (ReplayTotals, error) {
	r, err := NewReplay(p)
	if err != nil {
		return ReplayTotals{}, err
	}
	err = log(func(e event.Event) error {
		c, changed := r.Event(ctx, e)
		also(e, c, changed)
		return ctx.Err()
	})
	if r.Totals.Events == 0 {
		err = cmp.Or(err, ErrNoEvents)
	}
	return r.Totals, err
}

// Suggestion is what a policy could let through by itself.
type Suggestion struct {
	Lessons []Lesson     `json:"lessons"`
	ByHand  []Lesson     `json:"by_hand,omitempty"`  // the file is written in a way that cannot be edited
	LeftOut int          `json:"left_out,omitempty"` // lines that a person denied as well, or whose taint is not cleared
	Diff    string       `json:"diff,omitempty"`
	Before  ReplayTotals `json:"before"`
	After   ReplayTotals `json:"after"`
}

// Suggest learns from a log what the policy in data, a file called name, could let through, of what was let through at least so often. With a
// *event.BadLines the suggestion is from the other lines.
func Suggest(ctx context.Context, log Log, name string, data []byte, least uint64) (Suggestion, error) {
	s := Suggestion{Lessons: []Lesson{}}
	p, err := policy.Parse(name, data)
	if err != nil {
		return s, err
	}
	learning, err := NewLearning(p)
	if err != nil {
		return s, err
	}
	s.Before, err = decideAll(ctx, log, p, func(e event.Event, _ ReplayChange, _ bool) { learning.Event(e) })
	if _, bad := errors.AsType[*event.BadLines](err); err != nil && !bad {
		return s, err
	}
	if s.Before.Events == 0 {
		return s, ErrNoEvents
	}
	text := data
	all, left := learning.Lessons(least)
	s.LeftOut = left
	for _, lesson := range all {
		lesson.Edit.Comment = lesson.Evidence()
		next, err := policy.Apply(name, text, []policy.Edit{lesson.Edit})
		if err != nil {
			s.ByHand = append(s.ByHand, lesson)
			continue
		}
		text, s.Lessons = next, append(s.Lessons, lesson)
	}
	s.Diff = policy.Diff(name, data, text)
	if p, err = policy.Parse(name, text); err != nil {
		return s, err
	}
	s.After, err = decideAll(ctx, log, p, func(event.Event, ReplayChange, bool) {})
	return s, err
}

// Evidence is what speaks for a line, on one line.
func (l Lesson) Evidence() string {
	times := func(n uint64) string {
		if n == 1 {
			return "1 time"
		}
		return fmt.Sprint(n, " times")
	}
	var parts []string
	if l.Approved > 0 {
		word := "approved"
		if l.Edit.Key != "allow" {
			word = "taint cleared"
		}
		parts = append(parts, fmt.Sprintf("%s %s by %s", word, times(l.Approved), event.Command(l.By, 60, 200)))
	}
	if l.Observed > 0 {
		parts = append(parts, fmt.Sprintf("seen %s in mode observe, approved by nobody there", times(l.Observed)))
	}
	parts = append(parts, l.First.UTC().Format("2006-01-02")+" to "+l.Last.UTC().Format("2006-01-02"))
	if len(l.Commands) > 0 {
		parts = append(parts, "such as: "+event.Visible(redact.Likely(strings.Join(l.Commands, " | "))))
	}
	return strings.Join(parts, "; ")
}
