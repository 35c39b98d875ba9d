package prompt

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

// The steps of an answer.
type step int

const (
	browse  step = iota
	confirm      // a second key is needed
	reason       // the reason is typed
)

const (
	maxReason = 200 // bytes that can be typed
	maxNotes  = 2   // lines of what happened meanwhile
)

// model is what is on the screen, without a terminal.
type model struct {
	list     []gate.Question
	selected string          // id; that, not a place in the list, is what is answered
	moved    bool            // by itself, since what was selected has ended: the next key that answers may be meant for that
	answered string          // id that was answered here last
	top      int             // first line of its text that is shown
	seen     map[string]bool // ids whose whole text was on the screen
	step     step
	allow    bool   // what is being confirmed,
	about    string // for this id
	scope    int    // that was chosen; 0: none
	typed    string // reason so far
	notes    []string
	trouble  string // the sensor cannot be asked
	width    int
	height   int
	now      time.Time
	wrapped  struct { // the selected question's text
		id    string // empty: to be made anew
		width int
		lines []string
		from  string // id that lines are of
		shown int    // that many of the first lines were on the screen, as they are
	}
}

// order is an answer that was confirmed.
type order struct {
	id    string
	reply gate.Reply
}

// take shows an update.
func (m *model) take(u update) {
	m.trouble = ""
	if u.err != nil {
		m.trouble = u.err.Error()
	}
	for _, q := range u.list {
		if slices.ContainsFunc(m.list, func(o gate.Question) bool { return o.ID == q.ID && o.Gone != q.Gone }) {
			delete(m.seen, q.ID) // its last line is another
		}
	}
	before, at := m.list, m.index()
	m.list, m.wrapped.id = u.list, ""
	for _, q := range u.ended {
		m.note("%s: %s%s", q.ID, show.Outcome(q), show.Again(q))
		delete(m.seen, q.ID)
		if m.step != browse && m.about == q.ID {
			m.step = browse
			m.note("%s has ended meanwhile: nothing was answered", q.ID)
		}
	}
	if m.index() < 0 {
		m.moved = at >= 0 && m.selected != m.answered
		m.selected, m.top = m.nearest(before, at), 0
	}
}

// nearest is the id of what stands now where before[at] stood, which has ended: the next that still waits, else the last one.
func (m *model) nearest(before []gate.Question, at int) string {
	if len(m.list) == 0 {
		return ""
	}
	n := 0 // that stood before it and still wait: new ones come last
	for _, q := range before[:max(at, 0)] {
		if slices.ContainsFunc(m.list, func(o gate.Question) bool { return o.ID == q.ID }) {
			n++
		}
	}
	return m.list[min(n, len(m.list)-1)].ID
}

func (m *model) note(format string, args ...any) {
	m.notes = append(m.notes, event.Visible(fmt.Sprintf(format, args...)))
	m.notes = m.notes[max(len(m.notes)-maxNotes, 0):]
}

func (m *model) index() int {
	return slices.IndexFunc(m.list, func(q gate.Question) bool { return q.ID == m.selected })
}

// key handles one key. It returns an answer to give, or that it is the end.
func (m *model) key(k string) (answer *order, quit bool) {
	if k == "\x03" { // ctrl-C
		return nil, true
	}
	if m.tooSmall() { // what is answered is not on the screen
		return nil, k == "q"
	}
	switch m.step {
	case confirm:
		return m.confirmed(k), false
	case reason:
		return m.reasoned(k), false
	}
	switch k {
	case "q":
		return nil, true
	case "k", keyUp:
		m.move(-1)
	case "j", keyDown:
		m.move(1)
	case " ", keyPageDown:
		m.top += max(m.room(), 1)
	case "b", keyPageUp:
		m.top -= max(m.room(), 1)
	case "a", "d":
		m.begin(k == "a")
	}
	m.clamp()
	return nil, false
}

func (m *model) move(by int) {
	m.moved = false
	if i := m.index(); i >= 0 {
		m.selected = m.list[min(max(i+by, 0), len(m.list)-1)].ID
		m.top = 0
	}
}

// begin asks for the second key. What was not shown in full is not approved.
func (m *model) begin(allow bool) {
	switch {
	case m.index() < 0:
		m.note("no question is selected")
	case allow && !m.seen[m.selected]:
		m.note("there is more of %s: see all of it first (space)", m.selected)
	case allow && m.moved:
		m.moved = false
		m.note("%s is selected now, since the one before has ended: look, and press a again", m.selected)
	default:
		m.step, m.allow, m.about, m.scope, m.typed = confirm, allow, m.selected, 0, ""
	}
}

func (m *model) confirmed(k string) *order {
	if n := strings.Index("0123456789", k); len(k) == 1 && m.allow && n >= 1 && n <= len(m.chain()) {
		m.scope = n
		return nil
	}
	m.step = browse
	switch {
	case k == "y":
		return m.order()
	case k == "r":
		m.step = reason
	case m.allow && len(k) == 1 && k >= "0" && k <= "9":
		m.note("no scope %s: nothing was answered", k)
	default:
		m.note("nothing was answered")
	}
	return nil
}

// chain is of the question that is being answered, as far as keys reach; nil where there is no choice.
func (m *model) chain() []event.Member {
	i := slices.IndexFunc(m.list, func(q gate.Question) bool { return q.ID == m.about })
	if i < 0 || len(m.list[i].Chain) < 2 {
		return nil
	}
	return m.list[i].Chain[:min(len(m.list[i].Chain), 9)]
}

func (m *model) reasoned(k string) *order {
	switch {
	case k == "\r" || k == "\n":
		m.step = browse
		return m.order()
	case k == "\x1b":
		m.step = browse
		m.note("nothing was answered")
	case k == "\x7f" || k == "\b":
		_, n := utf8.DecodeLastRuneInString(m.typed)
		m.typed = m.typed[:len(m.typed)-n]
	case len(k) > 1 && k[0] == '\x1b':
	case len(m.typed)+len(k) <= maxReason && !strings.ContainsFunc(k, unicode.IsControl):
		m.typed += k
	}
	return nil
}

// order is the answer to what was confirmed, if it still waits.
func (m *model) order() *order {
	i := slices.IndexFunc(m.list, func(q gate.Question) bool { return q.ID == m.about })
	if i < 0 {
		m.note("%s has ended meanwhile: nothing was answered", m.about)
		return nil
	}
	m.answered = m.about
	return &order{m.about, gate.Reply{Allow: m.allow, Scope: m.scope, Why: strings.TrimSpace(m.typed), Shown: show.Question(m.list[i])}}
}

// rows is how many questions the list shows, room how many lines of one there are.
func (m *model) rows() int { return min(len(m.list), max(min(m.height/3, m.height-leastHeight+1), 1)) }

func (m *model) room() int { return m.height - m.rows() - maxNotes - m.asking() - 3 }

// asking is how many lines the last part has, which says what keys do.
func (m *model) asking() int { return (longest + m.width - 1) / m.width }

// text is the selected question as lines of the screen.
func (m *model) text() []string {
	i := m.index()
	if i < 0 {
		return nil
	}
	if w := m.wrapped; w.id == m.selected && w.width == m.width {
		return w.lines
	}
	var lines []string
	for line := range strings.Lines(show.Question(m.list[i]) + show.Askers(m.list[i])) {
		lines = append(lines, show.Wrap(strings.TrimSuffix(line, "\n"), m.width, indent)...)
	}
	w := &m.wrapped
	if w.from != m.selected || w.width != m.width {
		w.shown = 0
	}
	for i := range min(w.shown, len(lines)) {
		if lines[i] != w.lines[i] {
			w.shown = i
			break
		}
	}
	w.id, w.from, w.width, w.lines, w.shown = m.selected, m.selected, m.width, lines, min(w.shown, len(lines))
	return lines
}

func (m *model) clamp() {
	m.top = max(min(m.top, len(m.text())-m.room()), 0)
}

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

// view is the screen: height lines of at most width columns.
func (m *model) view() []string {
	if m.tooSmall() {
		lines := make([]string, max(m.height, 0))
		copy(lines, show.Wrap(fmt.Sprintf("too small: %d columns and %d lines are needed", leastWidth, leastHeight), m.width, 0))
		return lines
	}
	m.clamp()
	head := fmt.Sprintf("weir: %d questions wait", len(m.list))
	if len(m.list) == 1 {
		head = "weir: 1 question waits"
	}
	if m.trouble != "" {
		head = "weir: " + event.Visible(m.trouble)
	}
	lines := []string{show.Shorten(head, m.width)}
	lines = append(lines, m.questions()...)
	lines = append(lines, strings.Repeat("-", m.width))
	text := m.text()
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
	if m.tooSmall() || m.selected == "" || m.trouble != "" {
		return
	}
	text := m.text()
	if m.top <= m.wrapped.shown {
		m.wrapped.shown = max(m.wrapped.shown, min(m.top+m.room(), len(text)))
	}
	if m.wrapped.shown == len(text) {
		if m.seen == nil {
			m.seen = map[string]bool{}
		}
		m.seen[m.selected] = true
	}
}

// questions is the part of the list around what is selected.
func (m *model) questions() []string {
	n, at := m.rows(), max(m.index(), 0)
	first := max(min(at-n/2, len(m.list)-n), 0)
	var lines []string
	for i, q := range m.list[first : first+n] {
		mark := "  "
		if first+i == at {
			mark = "> "
		}
		left := max(q.Deadline.Sub(m.now), 0).Round(time.Second)
		what := event.Command(q.Process.Argv, 80, 160)
		switch {
		case q.Text != "":
			what = event.Command([]string{q.Text}, 80, 160)
		case q.Destination != event.Destination{}:
			what = q.Destination.String() + "  " + what
		}
		line := fmt.Sprintf("%s%s  %6s  %s  %s", mark, event.Visible(q.ID), left, name(q), what)
		lines = append(lines, show.Shorten(line, m.width))
	}
	return lines
}

func name(q gate.Question) string {
	if q.Container.Name != "" {
		return event.Command([]string{q.Container.Name}, 24, 24)
	}
	return event.Command([]string{q.Container.ID}, 24, 24)
}

func (m *model) prompt() string {
	verb := "deny"
	if m.allow {
		verb = "approve"
	}
	switch chain := m.chain(); {
	case m.step == confirm && m.scope > 1 && m.scope <= len(chain):
		return m.wider(chain[m.scope-1])
	case m.step == confirm && m.allow && len(chain) > 0:
		return fmt.Sprintf("approve %s?  y: yes  2-%d: wider scope  r: with a reason  any other key: no", m.about, len(chain))
	case m.step == confirm:
		return fmt.Sprintf("%s %s?  y: yes  r: yes, with a reason  any other key: no", verb, m.about)
	case m.step == reason:
		scope := ""
		if m.scope > 1 {
			scope = fmt.Sprintf(" with scope %d", m.scope)
		}
		return fmt.Sprintf("%s %s%s, reason (enter: %s, escape: no): %s", verb, m.about, scope, verb, event.Visible(m.typed))
	}
	return "a approve  d deny  j k select  space b page  q quit"
}

// wider asks whether the scope that was chosen is meant. The whole command was on the screen: here it is cut, and the rest of the line is not.
func (m *model) wider(root event.Member) string {
	before, after := fmt.Sprintf("approve %s for ", m.about), " and everything it starts?  y: yes  r: reason"
	const spare = 8 // columns that may stay empty at the end of a line, before a letter and its marks
	return before + show.Shorten(root.Command(0, 0), m.asking()*m.width-(m.asking()-1)*spare-len(before)-len(after)) + after
}
