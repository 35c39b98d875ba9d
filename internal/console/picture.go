package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/event"
)

const (
	mostMarks  = 240  // of a lane: what is closer is one mark
	mostLanes  = 2000 // destinations that are counted apart
	shownLanes = 60   // of them, that are told
	mostTaint  = 500  // changes of taint
	mostTexts  = 3    // of a mark
)

// outcome is what came of what a mark is about.
type outcome int

const (
	good    outcome = iota
	waiting         // for a person
	bad
)

// picture counts events over time in at most mostMarks marks a lane, whatever time they span: when there are more, two become one. It takes
// events in any order, and its size is bounded.
type picture struct {
	width       time.Duration // of a mark
	first, last int64         // marks, in widths since 1970
	read        int
	texts       bool // marks have some
	lanes       map[string]*lane
	grants      map[uint64]int64 // bytes that are left of it at its end
}

type lane struct {
	marks      map[int64]*mark
	counts     [3]int // by outcome
	bytes      int64
	last       time.Time
	containers map[string]bool
}

// mark is what happened in one width.
type mark struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	Good  int       `json:"good"`
	Asked int       `json:"asked"`
	Bad   int       `json:"bad"`
	Bytes int64     `json:"bytes,omitempty"`
	Texts []string  `json:"texts,omitempty"` // of the first that were read
}

func newPicture(texts bool) *picture {
	return &picture{texts: texts, width: 100 * time.Millisecond, lanes: map[string]*lane{}, grants: map[uint64]int64{}}
}

// add counts an event, or only bytes where out is negative.
func (p *picture) add(name string, e event.Event, out outcome, bytes int64) {
	if !drawable(e.Time) {
		return
	}
	l := p.lanes[name]
	if l == nil && len(p.lanes) >= mostLanes {
		name = others
		l = p.lanes[name]
	}
	if l == nil {
		l = &lane{marks: map[int64]*mark{}, containers: map[string]bool{}}
		p.lanes[name] = l
	}
	if out >= 0 {
		l.counts[out]++
	}
	l.bytes += bytes
	if e.Time.After(l.last) {
		l.last = e.Time
	}
	if name := nameOf(e.Container); name != "" && len(l.containers) < 20 {
		l.containers[name] = true
	}
	at := p.place(e.Time)
	m := l.marks[at]
	if m == nil {
		m = &mark{}
		l.marks[at] = m
	}
	if out >= 0 {
		*[]*int{&m.Good, &m.Asked, &m.Bad}[out]++
	}
	m.Bytes += bytes
	if p.texts && len(m.Texts) < mostTexts {
		m.Texts = append(m.Texts, cutAt(rowText(e), 300))
	}
}

// drawable says whether nanoseconds since 1970 can tell a time.
func drawable(t time.Time) bool { return t.Year() > 1970 && t.Year() < 2200 }

// place is the mark that a time is in, after the picture was made to hold it.
func (p *picture) place(t time.Time) int64 {
	at := t.UnixNano() / int64(p.width)
	if p.read == 0 {
		p.first, p.last = at, at
	}
	p.read++
	p.first, p.last = min(p.first, at), max(p.last, at)
	for p.last-p.first >= mostMarks {
		p.width *= 2
		p.first, p.last, at = p.first>>1, p.last>>1, at>>1
		for _, l := range p.lanes {
			marks := map[int64]*mark{}
			for _, i := range slices.Sorted(maps.Keys(l.marks)) {
				m := l.marks[i]
				if into := marks[i>>1]; into != nil {
					into.Good, into.Asked, into.Bad, into.Bytes = into.Good+m.Good, into.Asked+m.Asked, into.Bad+m.Bad, into.Bytes+m.Bytes
					into.Texts = append(into.Texts, m.Texts[:min(len(m.Texts), mostTexts-len(into.Texts))]...)
				} else {
					marks[i>>1] = m
				}
			}
			l.marks = marks
		}
	}
	return at
}

// grant is how many bytes of a grant were used, told at its end: what it had from the start is seen after that, since the newest is read first.
func (p *picture) grant(g *event.GrantInfo) int64 {
	switch g.State {
	case "made", "extended":
		left, ended := p.grants[g.ID]
		delete(p.grants, g.ID)
		if ended {
			return max(g.Bytes-left, 0)
		}
	case "spent", "expired", "revoked", "ended":
		if len(p.grants) < mostLanes {
			p.grants[g.ID] = g.Bytes
		}
	}
	return 0
}

// drawn is a lane as the page draws it.
type drawn struct {
	Name       string    `json:"name"`
	Marks      []*mark   `json:"marks"`
	Good       int       `json:"good"`
	Asked      int       `json:"asked"`
	Bad        int       `json:"bad"`
	Bytes      int64     `json:"bytes,omitempty"`
	Last       time.Time `json:"last"`
	Containers []string  `json:"containers,omitempty"`
}

func (p *picture) drawn(name string) drawn {
	l := p.lanes[name]
	d := drawn{Name: name, Marks: []*mark{}}
	if l == nil {
		return d
	}
	d.Good, d.Asked, d.Bad, d.Bytes, d.Last = l.counts[good], l.counts[waiting], l.counts[bad], l.bytes, l.last
	d.Containers = slices.Sorted(maps.Keys(l.containers))
	for _, i := range slices.Sorted(maps.Keys(l.marks)) {
		m := l.marks[i]
		m.At, m.Until = p.moment(i), p.moment(i+1)
		d.Marks = append(d.Marks, m)
	}
	return d
}

func (p *picture) moment(i int64) time.Time { return time.Unix(0, i*int64(p.width)).UTC() }

type (
	pictured struct {
		From    time.Time `json:"from"`
		To      time.Time `json:"to"`
		Events  int       `json:"events"`
		Missing string    `json:"missing,omitempty"`
		Lanes   []drawn   `json:"lanes"`
		Left    int       `json:"left,omitempty"` // lanes that are not told

		Taint   []stretch `json:"taint,omitempty"` // of a container's life
		Changes []row     `json:"changes,omitempty"`
	}
	// stretch is how long a container had a bit of taint.
	stretch struct {
		Bit  string    `json:"bit"`
		From time.Time `json:"from"`
		To   time.Time `json:"to"`
		Why  string    `json:"why"`
		Open bool      `json:"open"` // it has it still, or the log does not say when it was cleared
	}
)

func (p *picture) pictured(missing string) pictured {
	if p.read == 0 {
		return pictured{Missing: missing, Lanes: []drawn{}}
	}
	return pictured{From: p.moment(p.first), To: p.moment(p.last + 1), Events: p.read, Missing: missing, Lanes: []drawn{}}
}

// The lanes of a container's life, in their order.
const (
	commands    = "commands"
	connections = "connections"
	questions   = "questions and verdicts"
	grants      = "bytes let out"
	tools       = "tools"
	trouble     = "findings and refusals"
	others      = "other destinations"
)

// life is what a container did, and what became of it.
func life(ctx context.Context, log *event.Stored, q historyRequest) (any, error) {
	if q.Container == "" {
		return nil, refusal{http.StatusBadRequest, "name a container"}
	}
	q.Text = ""
	p := newPicture(true)
	var taints []event.Event
	missing, err := newest(ctx, log, q, nil, func(e event.Event) error {
		if p.read >= mostRead {
			return errEnough
		}
		name, out, n := p.happened(e)
		if e.Change != nil && len(taints) < mostTaint {
			taints = append(taints, e)
		}
		if name == "" && drawable(e.Time) {
			p.place(e.Time) // it counts for how long it lived
		}
		if name == "" {
			return nil
		}
		p.add(name, e, out, n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.read == 0 {
		return nil, refusal{http.StatusNotFound, "the log has no event of this container in that time"}
	}
	a := p.pictured(missing)
	for _, name := range []string{commands, connections, questions, grants, tools, trouble} {
		a.Lanes = append(a.Lanes, p.drawn(name))
	}
	slices.Reverse(taints)
	slices.SortStableFunc(taints, func(a, b event.Event) int { return a.Time.Compare(b.Time) })
	a.Taint = stretches(taints, a.From, a.To)
	for _, e := range taints {
		a.Changes = append(a.Changes, rowOf(e))
	}
	return a, nil
}

// happened says in which lane an event stands, what came of it, and how many bytes it is about.
func (p *picture) happened(e event.Event) (lane string, out outcome, bytes int64) {
	denied := e.Verdict != nil && e.Verdict.Decision != "allow"
	if denied {
		out = bad
	}
	switch e.Kind {
	case event.Exec:
		return commands, out, 0
	case event.Connect, event.Drop:
		return connections, out, 0
	case event.Hold:
		return questions, waiting, 0
	case event.Verdict, event.Approval:
		return questions, out, 0
	case event.Tool:
		if e.Use != nil {
			bytes = e.Use.Bytes
		}
		return tools, out, bytes
	case event.Grant:
		if e.Grant != nil {
			if n := p.grant(e.Grant); n > 0 {
				return grants, good, n
			}
		}
	case event.Deny, event.Found, event.Escape, event.Error, event.Lost, event.Model:
		return trouble, bad, 0
	}
	return "", 0, 0
}

// stretches are how long each bit was set, oldest first, from changes in the order of their times.
func stretches(changes []event.Event, from, to time.Time) []stretch {
	var all []stretch
	open := map[string]int{} // bit to its place in all
	for _, e := range changes {
		for _, bit := range e.Change.Set {
			if _, is := open[bit]; !is {
				open[bit] = len(all)
				all = append(all, stretch{Bit: event.Visible(bit), From: e.Time, To: to, Why: cutAt(rowText(e), 300), Open: true})
			}
		}
		for _, bit := range e.Change.Cleared {
			i, is := open[bit]
			if !is { // it was set before the log begins
				i = len(all)
				all = append(all, stretch{Bit: event.Visible(bit), From: from, Why: "it was set before"})
			}
			all[i].To, all[i].Open = e.Time, false
			delete(open, bit)
		}
	}
	return all
}

// egress is where all of them, or one, connected to, over time: most first.
func egress(ctx context.Context, log *event.Stored, q historyRequest) (any, error) {
	p := newPicture(false)
	kinds := []event.Kind{event.Connect, event.Drop, event.Hold, event.Grant}
	missing, err := newest(ctx, log, q, kinds, func(e event.Event) error {
		if p.read >= mostRead {
			return errEnough
		}
		_, out, n := p.happened(e)
		switch {
		case e.Grant != nil && n > 0 && len(e.Grant.To) == 1:
			p.add(e.Grant.To[0].String(), e, -1, n)
		case e.Destination != nil && e.Grant == nil:
			p.add(e.Destination.String(), e, out, 0)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a := p.pictured(missing)
	for name := range p.lanes {
		a.Lanes = append(a.Lanes, p.drawn(name))
	}
	slices.SortFunc(a.Lanes, func(a, b drawn) int {
		return cmp.Or(cmp.Compare(b.Good+b.Asked+b.Bad, a.Good+a.Asked+a.Bad), strings.Compare(a.Name, b.Name))
	})
	if n := len(a.Lanes) - shownLanes; n > 0 {
		a.Left, a.Lanes = n, a.Lanes[:shownLanes]
	}
	return a, nil
}
