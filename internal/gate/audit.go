package gate

import (
	"cmp"
	"slices"
	"strings"

	"weir/internal/event"
)

// Reply is a person's answer to a question: what, who, why, from where, and upon
// which text (G17).
type Reply struct {
	Allow bool
	By    string // names the operator; must not be empty
	Why   string // as the operator put it; may be empty
	Scope int    // of an approval: the place in the question's chain of who is let out; 0 is 1, who asked
	For   string // of an approval of a tool's call: empty is once
	// With For: of the covers that the question lists, the one for this very request alone.
	Narrow bool

	// With For, of an approval of a connection: for whom, for how many bytes in all (0: as the policy's grants suggest), whether it goes on
	// when the container is tainted more, and what it adds, as the person was shown it.
	Who   string
	Bytes int64
	Keeps bool
	Adds  string

	Two   bool          // two people of a fleet approve
	From  *event.Origin // nil: not known
	Shown string        // the exact text that the operator had before them; empty: not known
}

// alone says that an approval is one person's, who is not root on the host.
func (r Reply) alone() bool {
	return r.Allow && !r.Two && !(r.From != nil && r.From.UID != nil && *r.From.UID == 0)
}

// For how long an approval of a tool's call can go on, beyond the call itself. Whoever asked carries it out.
const (
	ForSession = "session" // until the container ends or the sensor does
	ForKey     = "key"     // from now on, in every container: a rule is written
)

// Cover is what an approval of a tool's call can cover beyond that call (V2).
type Cover struct {
	For    string `json:"for"`              // ForSession or ForKey
	Narrow bool   `json:"narrow,omitempty"` // there is a wider one with the same For
	Rule   string `json:"rule"`             // the permission rule that allows as much
	Text   string `json:"text"`             // which calls those are, for people
}

// cover finds what a reply wants to cover; false: q does not offer it.
func (q *Question) cover(r Reply) (Cover, bool) {
	if r.For == "" || !q.Tool && r.For != ForKey { // what goes on is not of a call
		return Cover{}, !r.Narrow
	}
	i := slices.IndexFunc(q.Covers, func(c Cover) bool { return r.Allow && c.For == r.For && c.Narrow == r.Narrow })
	if i < 0 {
		return Cover{}, false
	}
	return q.Covers[i], true
}

// maxShown is how much of the text that was shown is kept, in bytes; its hash is of all.
const maxShown = 48 << 10

// shown is a text as it is kept; nil for none.
func shown(text string) *event.Shown {
	if text == "" {
		return nil
	}
	s := &event.Shown{Text: text, SHA256: Digest(text)}
	if len(text) > maxShown {
		s.Text, s.Cut = strings.ToValidUTF8(text[:maxShown], ""), true
	}
	return s
}

// Ended gives the questions that take no answer any more, newest end first: at
// most most of them, and no more than some megabytes. Those that a person answered
// are kept for 30 days, others for one.
func (d *queue) Ended(most int) ([]Question, error) {
	d.mu.Lock()
	d.sweep()
	d.schedule()
	d.mu.Unlock()
	all, _, err := d.store.load()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r record) bool { return r.State == StatePending })
	slices.SortFunc(all, func(a, b record) int {
		return cmp.Or(b.Answered.Compare(a.Answered), cmp.Compare(a.ID, b.ID))
	})
	var list []Question
	room := maxEndedBytes
	for _, r := range all {
		if len(list) >= most || room < 0 {
			break
		}
		room -= 2048
		room -= length(r.Process.Argv)
		for _, m := range r.Chain {
			room -= length(m.Argv)
		}
		if r.Shown != nil {
			room -= len(r.Shown.Text)
		}
		list = append(list, r.Question)
	}
	return list, nil
}

func length(argv []string) int {
	n := 0
	for _, s := range argv {
		n += len(s)
	}
	return n
}

// maxEndedBytes bounds what Ended gives, about.
const maxEndedBytes = 4 << 20

// Question gives the question with this id, also when it has ended.
func (d *queue) Question(id string) (Question, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return Question{}, errClosed
	}
	d.sweep()
	d.schedule()
	if q := d.find(id); q != nil {
		return q.told(), nil
	}
	r, err := d.past(id)
	if err == nil && r.State == StatePending { // over: its end could not be stored
		r.State, r.Outcome = StateDenied, StoreFailed
	}
	return r.Question, err
}
