package prompt

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

// least is the smallest screen that shows anything.
const (
	leastWidth  = 30
	leastHeight = 12
)

const (
	longest = 80 // columns of what says what keys do
	indent  = 13 // blanks before what goes on in the next line
)

func (m *model) tooSmall() bool { return m.width < leastWidth || m.height < leastHeight }

func (m *model) clamp() {
	m.text()
	m.top = max(min(m.top, len(m.wrapped.lines)-m.room()), 0)
}

// view is the screen: height lines of at most width columns.
func (m *model) view() []string {
	if m.tooSmall() {
		lines := make([]string, max(m.height, 0))
		copy(lines, show.Wrap(fmt.Sprintf("too small: %d columns and %d lines are needed", leastWidth, leastHeight), m.width, 0))
		return lines
	}
	m.clamp()
	lines := []string{show.Shorten(m.head(), m.width)}
	lines = append(lines, m.listed()...)
	lines = append(lines, strings.Repeat("-", m.width))
	text := m.wrapped.lines
	end := min(m.top+m.room(), len(text))
	if m.top < len(text) {
		lines = append(lines, text[m.top:end]...)
	}
	for len(lines) < m.height-maxNotes-m.asking()-1 {
		lines = append(lines, "")
	}
	more := strings.Repeat("-", m.width)
	if end < len(text) {
		more = show.Cut(fmt.Sprintf("-- %d more lines: space --%s", len(text)-end, more), m.width)
	}
	lines = append(lines, more)
	for _, n := range m.notes {
		lines = append(lines, show.Shorten(n, m.width))
	}
	for len(lines) < m.height-m.asking() {
		lines = append(lines, "")
	}
	asks := show.Wrap(m.prompt(), m.width, 0)
	lines = append(lines, asks[max(len(asks)-m.asking(), 0):]...) // of a long reason, its end
	for len(lines) < m.height {
		lines = append(lines, "")
	}
	return lines
}

// saw notes that the view was on the screen. What of the text was there counts only without a gap before it.
func (m *model) saw() {
	if m.tooSmall() || m.trouble != "" {
		return
	}
	m.text()
	w := &m.wrapped
	if m.top <= w.shown {
		w.shown = max(w.shown, min(m.top+m.room(), len(w.lines)))
	}
	if w.shown == len(w.lines) {
		if m.seen == nil {
			m.seen = map[string]string{}
		}
		for id, text := range w.has {
			m.seen[id] = text
		}
	}
}

func (m *model) head() string {
	if m.trouble != "" {
		return "weir: " + event.Visible(m.trouble)
	}
	head := fmt.Sprintf("weir: %d %s", len(m.list), show.Plural(len(m.list), "question waits", "questions wait"))
	if m.find != "" || m.step == search {
		all, _ := m.lines()
		head += fmt.Sprintf("; %d %s %s", len(all), show.Plural(len(all), "line has", "lines have"), event.Command([]string{m.find}, 40, 40))
	}
	if m.last.status.Mode == "" {
		return head
	}
	tainted := 0
	for _, c := range m.last.containers {
		if len(c.Taint) > 0 {
			tainted++
		}
	}
	return fmt.Sprintf("%s  %s  %d of %d tainted%s", head, event.Visible(m.last.status.Mode), tainted, len(m.last.containers), m.rates)
}

// count makes rates of the kernel's counters.
func (m *model) count(u update) {
	span := u.at.Sub(m.counted.at).Seconds()
	if span < every.Seconds()/2 {
		return // an answer had the sensor asked at once
	}
	refused, dropped := 0.0, 0.0
	for name, n := range u.status.Counters {
		d := float64(n) - float64(m.counted.status.Counters[name])
		switch {
		case strings.HasPrefix(name, "denied_"):
			refused += d
		case name == "dropped_packet":
			dropped += d
		}
	}
	if !m.counted.at.IsZero() {
		per := func(n float64) float64 { return math.Round(10*max(n, 0)/span) / 10 }
		m.rates = fmt.Sprintf("  %g refused/s  %g dropped/s", per(refused), per(dropped))
	}
	m.counted = u
}

// listed is the part of the list around what is selected.
func (m *model) listed() []string {
	all, selected := m.lines()
	at, n := max(slices.Index(all, *selected), 0), m.rows()
	first := max(min(at-n/2, len(all)-n), 0)
	var lines []string
	for i := first; i < first+n; i++ {
		mark, line := "  ", ""
		if i == at {
			mark = "> "
		}
		if m.page == containers {
			line = m.containerLine(m.containers[i])
		} else {
			line = m.questionLine(m.groups[i])
		}
		lines = append(lines, show.Shorten(mark+line, m.width))
	}
	return lines
}

func (m *model) questionLine(group []gate.Question) string {
	q := group[0]
	left := max(q.Deadline.Sub(m.now), 0).Round(time.Second)
	what := event.Command(q.Process.Argv, 80, 160)
	switch {
	case q.Text != "":
		what = event.Command([]string{q.Text}, 80, 160)
	case q.Destination != event.Destination{}:
		what = q.Destination.String() + "  " + what
	}
	if len(group) > 1 {
		what = fmt.Sprintf("%d alike  %s", len(group), what)
	}
	return fmt.Sprintf("%s  %6s  %s  %s", event.Visible(q.ID), left, name(q.Container.Name, q.Container.ID), what)
}

func (m *model) containerLine(c control.Container) string {
	waits := 0
	for _, q := range m.list {
		if q.Container.ID == c.ID {
			waits++
		}
	}
	called := show.Shorten(name(c.Name, c.ID), m.width/3) // its name hides nothing of the rest
	line := fmt.Sprintf("%s  %s  %s  %d %s  %d %s", called, taint(c), event.Visible(c.Mode), len(c.Grants), show.Plural(len(c.Grants), "grant", "grants"), waits, show.Plural(waits, "question", "questions"))
	if !c.Live {
		line += "  ended"
	}
	return line
}

// aboutContainer is all about c, as lines like those of a question.
func (m *model) aboutContainer(c control.Container) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("container", "%s, id %s", event.Command([]string{cmp.Or(c.Name, c.ID)}, 0, 0), event.Command([]string{c.ID}, 0, 0))
	row("cgroup", "%s", event.Command([]string{c.Cgroup}, 0, 0))
	if of := cmp.Or(c.Pod, c.Image); of != "" {
		row("runs", "%s", event.Command([]string{of}, 0, 0))
	}
	row("taint", "%s", taint(c))
	if !c.Since.IsZero() {
		row("", "since %s, by %s: %s", show.Time(c.Since), event.Command([]string{c.By}, 0, 0), event.Command([]string{c.Why}, 0, 0))
		row("", "weir why %s tells the rest", event.Command([]string{c.ID}, 0, 0))
	}
	row("mode", "%s", event.Visible(c.Mode))
	for _, g := range c.Grants {
		row("open", "%s", event.Visible(m.grant(g)))
	}
	for _, a := range m.last.approvals {
		if a.Container.ID == c.ID {
			row("goes on", "%s: %s", event.Visible(a.ID), show.Covered(a))
		}
	}
	for _, q := range m.list {
		if q.Container.ID == c.ID {
			row("waits", "%s: %s", event.Visible(q.ID), event.Visible(show.Subject(q)))
		}
	}
	return b.String()
}

func taint(c control.Container) string {
	return event.Visible(cmp.Or(strings.Join(c.Taint, ","), "clean"))
}

func name(name, id string) string { return event.Command([]string{cmp.Or(name, id)}, 24, 24) }

// details are what the screen has of what is selected.
func (m *model) details() text {
	if m.page == containers {
		for _, c := range m.containers {
			if c.ID == m.container {
				return text{all: m.aboutContainer(c)}
			}
		}
		return text{}
	}
	group := m.group()
	if group == nil {
		return text{}
	}
	t := text{all: m.question(group[0])}
	t.has = map[string]string{group[0].ID: t.all}
	if m.long != nil {
		given, err := group[0].StandingBy(m.long.reply())
		if t.adds, t.err = given.Adds, err; err != nil {
			t.all += fmt.Sprintf("%-12s nothing: %s\n", "adds", event.Plain(err))
		} else {
			t.all += show.Adds(given, m.last.approvals)
		}
		t.has[adding] = t.all
		return t
	}
	t.all += show.Askers(group[0])
	for _, q := range group[1:] {
		t.has[q.ID] = m.told(group[0], q)
		t.all += show.Besides(q, group[0]) + show.Askers(q)
	}
	return t
}

func (m *model) prompt() string {
	verb := "deny"
	if m.allow {
		verb = "approve"
	}
	what, reasoned := strings.Join(m.about[:min(len(m.about), 1)], ""), "yes, with a reason"
	if n := len(m.about); n > 1 {
		what, reasoned = fmt.Sprintf("%s and %d alike", what, n-1), "reason"
	}
	switch chain := m.chain(); {
	case m.step == search:
		return fmt.Sprintf("find (enter: keep, escape: all): %s", event.Visible(m.find))
	case m.step == lasting:
		return "t time  w who  2-9 scope  n new taint  space page  y: yes  r: reason  other: no"
	case m.step == confirm && m.scope > 1 && m.words != nil: // its own text alone says who that is
		return fmt.Sprintf("approve %s with scope %d, as it is listed there?  y: yes  r: reason  any other key: no", what, m.scope)
	case m.step == confirm && m.scope > 1 && m.scope <= len(chain):
		return m.wider(chain[m.scope-1])
	case m.step == confirm && m.allow && len(chain) > 0:
		return fmt.Sprintf("approve %s?  y: yes  2-%d: wider scope  r: with a reason  any other key: no", what, len(chain))
	case m.step == confirm:
		return fmt.Sprintf("%s %s?  y: yes  r: %s  any other key: no", verb, what, reasoned)
	case m.step == reason && m.about == nil:
		return "there is nothing to answer any more  enter or escape: go on"
	case m.step == reason:
		scope := ""
		if m.scope > 1 {
			scope = fmt.Sprintf(" with scope %d", m.scope)
		}
		return fmt.Sprintf("%s %s%s, reason (enter: %s, escape: no): %s", verb, what, scope, verb, event.Visible(m.typed))
	case m.looks && m.words != nil:
		return "you may look, not answer  j k select  space b page  / find  q quit"
	case m.looks:
		return "you may look, not answer  j k select  space b page  / find  tab page  q quit"
	case m.page == containers:
		return "tab questions  j k select  space b page  / find  q quit"
	}
	if m.words != nil {
		return "a approve  d deny  j k select  space b page  / find  q quit"
	}
	return "a approve  d deny  l longer  j k select  e each  / find  tab containers  q quit"
}

// wider asks whether the scope that was chosen is meant. The whole command was on the screen: here it is cut, and the rest of the line is not.
func (m *model) wider(root event.Member) string {
	before, after := fmt.Sprintf("approve %s for ", m.about[0]), " and everything it starts?  y: yes  r: reason"
	const spare = 8 // columns that may stay empty at the end of a line, before a letter and its marks
	return before + show.Shorten(root.Command(0, 0), m.asking()*m.width-(m.asking()-1)*spare-len(before)-len(after)) + after
}
