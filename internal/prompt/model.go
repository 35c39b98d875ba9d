package prompt

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/show"
)

// The steps of an answer.
type step int

const (
	browse  step = iota
	confirm      // a second key is needed
	lasting      // what an approval that goes on adds is shown, and can be changed
	reason       // the reason is typed
	search       // what is looked for is typed
)

// The pages.
type page int

const (
	questions page = iota
	containers
)

const (
	maxReason = 200 // bytes that can be typed
	maxNotes  = 2   // lines of what happened meanwhile
)

// model is what is on the screen, without a terminal.
type model struct {
	last       update // without an error
	counted    update // from which on rates are counted
	rates      string
	list       []gate.Question
	groups     [][]gate.Question   // of those that are looked for: a line of the screen each
	containers []control.Container // that are looked for
	page       page
	each       bool   // alike questions have a line each
	looks      bool   // the person may not answer
	find       string // what is looked for
	grant      func(event.GrantInfo) string
	words      func(gate.Question) string // of questions of other machines; nil: they are of this one

	selected  string            // first id of a group; that, not a place in the list, is what is answered
	container string            // that is selected on its page
	moved     bool              // by itself, since what was selected has ended: the next key that answers may be meant for that
	answered  string            // id that was answered here last
	top       int               // first line of its text that is shown
	seen      map[string]string // id → its text, which was on the screen as a whole
	step      step
	allow     bool     // what is being confirmed,
	about     []string // for these ids
	scope     int      // that was chosen; 0: none
	long      *long    // the approval is to go on; nil: once
	typed     string   // reason so far
	notes     []string
	trouble   string // the sensor cannot be asked
	width     int
	height    int
	now       time.Time
	wrapped   struct { // the text of what is selected
		ready bool // else it is to be made anew
		text
		width int
		lines []string
		from  string // what lines are of
		shown int    // that many of the first lines were on the screen, as they are
	}
}

// text is all about what is selected.
type text struct {
	all  string
	adds string            // of an approval that goes on,
	err  error             // or why it cannot be had
	has  map[string]string // id → its text, for each question that all has as a whole; adding → all
}

// order is an answer that was confirmed.
type order struct {
	id    string
	reply gate.Reply
}

// take shows an update.
func (m *model) take(u update) {
	var before map[string]string
	if m.about != nil {
		before = m.text().has
	}
	m.trouble = ""
	if u.err != nil {
		m.trouble = u.err.Error()
	} else {
		m.last = u
		m.count(u)
	}
	m.list = u.list
	for _, q := range u.ended {
		m.note("%s: %s%s", q.ID, show.Outcome(q), show.Again(q))
		delete(m.seen, q.ID)
		if i := slices.Index(m.about, q.ID); i >= 0 {
			m.about = slices.Delete(m.about, i, i+1)
			m.note("%s has ended meanwhile: nothing was answered", q.ID)
			if i == 0 { // the others were shown below it
				m.lost()
			}
		}
	}
	m.arrange(true)
	if m.about != nil && m.allow && slices.ContainsFunc(m.about, func(id string) bool { return before[id] != m.text().has[id] }) {
		m.note("%s has changed meanwhile: look, and answer again", m.about[0])
		m.lost()
	}
}

// arrange makes the lines of both pages anew. byItself: no key asked for it.
func (m *model) arrange(byItself bool) {
	before, boxes := heads(m.groups), ids(m.containers)
	m.groups, m.containers = nil, nil
	var found []gate.Question
	for _, q := range m.list {
		if m.find == "" || m.finds(q.ID+" "+m.question(q)) {
			found = append(found, q)
		}
	}
	if m.groups = gate.Groups(found); m.each {
		m.groups = slices.Collect(slices.Chunk(found, 1))
	}
	for _, c := range m.last.containers {
		if m.find == "" || m.finds(m.aboutContainer(c)) {
			m.containers = append(m.containers, c)
		}
	}
	m.wrapped.ready = false
	for _, g := range m.groups {
		if slices.ContainsFunc(g, func(q gate.Question) bool { return q.ID == m.selected }) {
			m.selected = g[0].ID
		}
	}
	if next := heir(before, heads(m.groups), m.selected); next != m.selected {
		if m.selected != "" { // else what ended before may still be meant
			m.moved = byItself && m.selected != m.answered
		}
		m.selected = next
		if m.page == questions {
			m.top = 0
		}
		if m.about != nil { // what is asked about is not on the screen any more
			m.note("nothing was answered")
			m.lost()
		}
	}
	if next := heir(boxes, ids(m.containers), m.container); next != m.container {
		m.container = next
		if m.page == containers {
			m.top = 0
		}
	}
}

func heads(groups [][]gate.Question) []string {
	var all []string
	for _, g := range groups {
		all = append(all, g[0].ID)
	}
	return all
}

func ids(list []control.Container) []string {
	var all []string
	for _, c := range list {
		all = append(all, c.ID)
	}
	return all
}

// heir is id if it is still there; else what stands where it stood: the next that is still there, else the last one.
func heir(before, now []string, id string) string {
	switch {
	case len(now) == 0:
		return ""
	case slices.Contains(now, id):
		return id
	}
	n := 0 // that stood before it and are still there: new ones come last
	for _, b := range before[:max(slices.Index(before, id), 0)] {
		if slices.Contains(now, b) {
			n++
		}
	}
	return now[min(n, len(now)-1)]
}

func (m *model) finds(text string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(m.find))
}

func (m *model) note(format string, args ...any) {
	m.notes = append(m.notes, event.Visible(fmt.Sprintf(format, args...)))
	m.notes = m.notes[max(len(m.notes)-maxNotes, 0):]
}

// lines are the names of this page's lines, and which of them is selected.
func (m *model) lines() (all []string, selected *string) {
	if m.page == containers {
		return ids(m.containers), &m.container
	}
	return heads(m.groups), &m.selected
}

// group is the questions that are selected.
func (m *model) group() []gate.Question {
	for _, g := range m.groups {
		if g[0].ID == m.selected && m.page == questions {
			return g
		}
	}
	return nil
}

// key handles one key, by the name that bubbletea gives it. It returns answers to give, or that it is the end.
func (m *model) key(k string) (answers []order, quit bool) {
	if k == "ctrl+c" {
		return nil, true
	}
	if m.tooSmall() { // what is answered is not on the screen
		return nil, k == "q"
	}
	defer m.clamp()
	switch m.step {
	case confirm:
		return m.confirmed(k), false
	case lasting:
		return m.chosen(k), false
	case reason:
		return m.reasoned(k), false
	case search:
		m.searched(k)
		return nil, false
	}
	switch k {
	case "q":
		return nil, true
	case "k", "up":
		m.move(-1)
	case "j", "down":
		m.move(1)
	case "space", "pgdown", "b", "pgup":
		m.turn(k)
	case "a", "d", "l":
		m.begin(k)
	case "e":
		m.each = !m.each
		m.arrange(false)
	case "/":
		m.step, m.find = search, ""
		m.arrange(false)
	case "esc":
		m.find = ""
		m.arrange(false)
	case "tab":
		if m.words != nil {
			m.note("containers are seen on their machine")
			break
		}
		m.page, m.top, m.wrapped.ready = containers-m.page, 0, false
	}
	return nil, false
}

// paste takes what was pasted: never as keys.
func (m *model) paste(s string) {
	if m.step != reason && m.step != search {
		m.note("what was pasted is no key: type it")
		return
	}
	for _, r := range s {
		m.key(string(r))
	}
}

func (m *model) turn(k string) {
	if k == "space" || k == "pgdown" {
		m.top += max(m.room(), 1)
	} else {
		m.top -= max(m.room(), 1)
	}
}

func (m *model) move(by int) {
	m.moved = false
	all, selected := m.lines()
	if i := slices.Index(all, *selected); i >= 0 {
		*selected = all[min(max(i+by, 0), len(all)-1)]
		m.top, m.wrapped.ready = 0, false
	}
}

// browse ends an answer, given or not.
func (m *model) browse() {
	m.step, m.about, m.long, m.wrapped.ready = browse, nil, nil, false
}

// lost ends an answer by itself. What is still typed of its reason is not taken for keys.
func (m *model) lost() {
	typing := m.step == reason
	if m.browse(); typing {
		m.step = reason
	}
}

func (m *model) nothing() {
	m.browse()
	m.note("nothing was answered")
}

// begin asks for the second key. What was not shown in full is not approved.
func (m *model) begin(k string) {
	group := m.group()
	switch allow := k != "d"; {
	case m.looks:
		m.note("you may look, and not answer")
	case group == nil && m.page == containers:
		m.note("questions are answered on their page (tab)")
	case group == nil:
		m.note("no question is selected")
	case k == "l" && m.words != nil:
		m.note("an approval from elsewhere is for once: one that goes on is given on the machine that asks")
	case allow && !m.shown(group):
		m.note("there is more of %s: see all of it first (space)", m.selected)
	case m.moved:
		m.moved = false
		m.note("%s is selected now, since the one before has ended: look, and press %s again", m.selected, k)
	default:
		if k == "l" && !m.choose(group) {
			return
		}
		m.step, m.allow, m.about, m.scope, m.typed = confirm, allow, heads(slices.Collect(slices.Chunk(group, 1))), 0, ""
		if k == "l" {
			m.step, m.about = lasting, m.about[:1]
			m.wrapped.ready = false
			m.text()
			m.top = m.wrapped.shown
		}
	}
}

// shown says whether each of these questions was on the screen as it is now.
func (m *model) shown(group []gate.Question) bool {
	return !slices.ContainsFunc(group, func(q gate.Question) bool { return m.seen[q.ID] != m.told(group[0], q) })
}

// question is the text of q.
func (m *model) question(q gate.Question) string {
	if m.words != nil {
		return m.words(q)
	}
	return show.Question(q)
}

// told is the text of q where it stands below first.
func (m *model) told(first, q gate.Question) string {
	if q.ID == first.ID {
		return m.question(q)
	}
	return m.question(first) + show.Besides(q, first)
}

func (m *model) confirmed(k string) []order {
	if n := strings.Index("0123456789", k); len(k) == 1 && m.allow && n >= 1 && n <= len(m.chain()) {
		m.scope = n
		return nil
	}
	switch {
	case k == "y":
		return m.orders()
	case k == "r":
		m.step = reason
	case m.allow && len(k) == 1 && k >= "0" && k <= "9":
		m.browse()
		m.note("no scope %s: nothing was answered", k)
	default:
		m.nothing()
	}
	return nil
}

// chain is of the question that is being answered, as far as keys reach; nil where there is no choice.
func (m *model) chain() []event.Member {
	group := m.group()
	if len(m.about) != 1 || group == nil || len(group[0].Chain) < 2 {
		return nil
	}
	return group[0].Chain[:min(len(group[0].Chain), 9)]
}

func (m *model) reasoned(k string) []order {
	switch k {
	case "enter":
		return m.orders()
	case "esc":
		m.nothing()
	default:
		m.typed = longer(m.typed, k)
	}
	return nil
}

func (m *model) searched(k string) {
	switch k {
	case "enter":
		m.step = browse
		return
	case "esc":
		m.step, m.find = browse, ""
	default:
		m.find = longer(m.find, k)
	}
	m.moved = false
	m.arrange(false)
}

// longer is a line that is typed after one more key.
func longer(s, k string) string {
	switch {
	case k == "backspace":
		_, n := utf8.DecodeLastRuneInString(s)
		return s[:len(s)-n]
	case k == "space":
		k = " "
	case len(k) > 1 && !strings.ContainsFunc(k, func(r rune) bool { return r >= utf8.RuneSelf }): // a key's name
		return s
	}
	if len(s)+len(k) > maxReason || strings.ContainsFunc(k, unicode.IsControl) || !utf8.ValidString(k) {
		return s
	}
	return s + k
}

// orders are the answers to what was confirmed, of what still waits and was shown as it is.
func (m *model) orders() []order {
	group := m.group()
	var all []order
	for _, id := range m.about {
		i := slices.IndexFunc(group, func(q gate.Question) bool { return q.ID == id })
		if i < 0 {
			continue
		}
		r := gate.Reply{Allow: m.allow, Scope: m.scope, Why: strings.TrimSpace(m.typed), Shown: m.told(group[0], group[i])}
		switch {
		case m.long != nil:
			why := r.Why
			if r = m.long.reply(); m.text().err != nil || m.seen[adding] != m.text().all {
				m.step = lasting
				m.note("there is more of what it adds: see all of it first (space)")
				return nil
			}
			r.Why, r.Adds, r.Shown = why, m.text().adds, m.text().all
		case m.allow && m.seen[id] != r.Shown:
			m.browse()
			m.note("%s is not what it was: look, and answer again", id)
			return nil
		}
		all = append(all, order{id, r})
	}
	if len(all) == 0 {
		m.nothing()
		return nil
	}
	m.answered = m.selected
	m.browse()
	return all
}

// rows is how many lines the list has, room how many the text of one of them.
func (m *model) rows() int {
	all, _ := m.lines()
	return min(len(all), max(min(m.height/4, m.height-leastHeight+1), 1))
}

func (m *model) room() int { return m.height - m.rows() - maxNotes - m.asking() - 3 }

// asking is how many lines the last part has, which says what keys do.
func (m *model) asking() int { return (longest + m.width - 1) / m.width }

// text is what is to be shown of what is selected. It makes lines of the screen of it.
func (m *model) text() text {
	w := &m.wrapped
	if w.ready && w.width == m.width {
		return w.text
	}
	_, selected := m.lines()
	from := fmt.Sprint(m.page, *selected)
	w.text = m.details()
	var lines []string
	for line := range strings.Lines(w.all) {
		lines = append(lines, show.Wrap(strings.TrimSuffix(line, "\n"), m.width, indent)...)
	}
	if w.from != from || w.width != m.width {
		w.shown = 0
	}
	for i := range min(w.shown, len(lines)) {
		if lines[i] != w.lines[i] {
			w.shown = i
			break
		}
	}
	w.ready, w.from, w.width, w.lines, w.shown = true, from, m.width, lines, min(w.shown, len(lines))
	return w.text
}
