package notify

import (
	"encoding/json"
	"fmt"
	"time"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

// The forms of notifications.
const (
	JSON  = "json"
	Slack = "slack"
)

// What a notification says of a question.
const (
	asked = "question.asked"
	ended = "question.ended"
)

// Message is a notification in JSON. Nothing in it is markup; all text is visible
// (B51), and without what looks like a secret (B50).
type Message struct {
	Version  int       `json:"version"` // 1
	Type     string    `json:"type"`    // question.asked or question.ended
	Time     time.Time `json:"time"`    // of the notification, UTC
	Host     string    `json:"host"`
	Question body      `json:"question"`
	Shown    shown     `json:"shown"`
	Hidden   bool      `json:"hidden,omitempty"` // something looked like a secret, and is not told
	Answer   *answer   `json:"answer,omitempty"` // of a question that ended
}

type body struct {
	ID          string             `json:"id"`
	Container   string             `json:"container"`
	Name        string             `json:"name,omitempty"`
	Taint       []string           `json:"taint"`
	Causes      []string           `json:"causes,omitempty"` // why it is tainted
	Program     string             `json:"program,omitempty"`
	Command     string             `json:"command"`
	Asks        string             `json:"asks,omitempty"` // the text that a bridge asks to run; program and command are of who asks
	UID         uint32             `json:"uid"`
	Destination *event.Destination `json:"destination,omitempty"` // absent: not known yet
	Chain       []link             `json:"chain,omitempty"`       // who can be let out: the first has scope 1
	Held        bool               `json:"held"`
	Half        []string           `json:"half,omitempty"` // who has approved it, where two people have to
	Asked       time.Time          `json:"asked"`
	Deadline    time.Time          `json:"deadline"`
}

// link is a process that an approval can let out, with what it starts.
type link struct {
	PID     int    `json:"pid"`
	Program string `json:"program,omitempty"`
	Command string `json:"command"`
}

// shown is the text to show to who answers; an approval returns its hash.
type shown struct {
	Text   string `json:"text"`
	SHA256 string `json:"sha256"`
}

type answer struct {
	State   string    `json:"state"`   // approved, denied, expired or used
	Outcome string    `json:"outcome"` // a reason, such as approved or timeout
	By      string    `json:"by,omitempty"`
	Scope   int       `json:"scope,omitempty"` // of an approval: the place in the question's chain, from 1
	Why     string    `json:"why,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// shownText is what a form shows of q; whole says that all is there that an
// approval depends on: nothing was left out for its length, and nothing that looked
// like a secret where q's own words alone say what it will do.
func shownText(form string, q gate.Question) (text string, whole bool) {
	q.Gone = false // what was posted stays what an approval returns
	safe, _ := show.Redact(q)
	text, whole = show.Question(safe), true
	q.Causes = nil // what tainted it does not say what it will do
	_, hidden := show.Redact(q)
	if form == Slack {
		text, whole = slackText(text)
	}
	return text, whole && !(hidden && q.Destination == event.Destination{})
}

// Shown is the text of q for who answers elsewhere, and whether an approval of it counts.
func Shown(q gate.Question) (text string, whole bool) { return shownText(JSON, q) }

// MessageOf is the notification in JSON of q as it is.
func MessageOf(host string, q gate.Question, now time.Time) Message {
	if q.State == gate.StatePending {
		return jsonMessage(asked, host, q, now)
	}
	return jsonMessage(ended, host, q, now)
}

// encode words a notification of q.
func encode(form, kind, host string, q gate.Question, now time.Time) ([]byte, error) {
	var v any
	if form == Slack {
		v = slackMessage(kind, host, q)
	} else {
		v = jsonMessage(kind, host, q, now)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode notification: %w", err)
	}
	return data, nil
}

func jsonMessage(kind, host string, q gate.Question, now time.Time) Message {
	safe, hidden := show.Redact(q)
	text, _ := shownText(JSON, q)
	m := Message{
		Version: 1, Type: kind, Time: now.UTC(), Host: host, Hidden: hidden,
		Question: body{
			ID: q.ID, Container: event.Visible(q.Container.ID), Name: event.Visible(q.Container.Name), Taint: append([]string{}, q.Container.Taint...),
			Command: show.Command(safe.Process), UID: q.Process.UID,
			Asks: event.Visible(safe.Text),
			Held: q.Held, Half: q.Half, Asked: q.Asked.UTC(), Deadline: q.Deadline.UTC(),
		},
		Shown: shown{text, gate.Digest(text)},
	}
	if d := q.Destination; d != (event.Destination{}) {
		d.Address, d.Protocol = event.Visible(d.Address), event.Visible(d.Protocol)
		m.Question.Destination = &d
	}
	if safe.Process.Exe != nil {
		m.Question.Program = event.Visible(safe.Process.Exe.Path)
	}
	for _, c := range safe.Causes {
		m.Question.Causes = append(m.Question.Causes, show.Cause(c))
	}
	for _, c := range safe.Chain {
		m.Question.Chain = append(m.Question.Chain, link{c.PID, event.Visible(c.Exe), c.Command(0, 0)})
	}
	if kind == ended {
		m.Answer = &answer{State: q.State, Outcome: string(q.Outcome), By: event.Visible(q.By), Scope: q.Scope, Why: event.Visible(q.Why), At: q.Answered.UTC()}
	}
	return m
}
