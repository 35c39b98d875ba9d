package prompt

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"weir/internal/event"
	"weir/internal/gate"

	"weir/internal/show"
)

func asked(id string, argv ...string) gate.Question {
	return gate.Question{
		ID: id, Container: event.Container{ID: "c1", Name: "web\x1b[2J\u202e", Taint: []string{"secret"}},
		Process:     event.Process{PID: 7, Comm: "curl", Argv: append([]string{"curl"}, argv...)},
		Destination: event.Destination{Address: "192.0.2.1", Port: 443, Protocol: "tcp"},
		State:       gate.StatePending, Deadline: time.Unix(1300, 0),
	}
}

func start(list ...gate.Question) *model {
	m := &model{width: 80, height: 24, now: time.Unix(1000, 0)}
	m.take(update{list: list})
	m.draw()
	return m
}

// draw is what the terminal does.
func (m *model) draw() []string {
	lines := m.view()
	m.saw()
	return lines
}

// press presses keys and returns the last answer.
func (m *model) press(keys ...string) *order {
	var last *order
	for _, k := range keys {
		if o, _ := m.key(k); o != nil {
			last = o
		}
		m.draw()
	}
	return last
}

func (m *model) shows(t *testing.T, want string) {
	t.Helper()
	if text := strings.Join(m.draw(), "\n"); !strings.Contains(text, want) {
		t.Errorf("no %q on the screen:\n%s", want, text)
	}
}

func TestAnswerNeedsTwoKeys(t *testing.T) {
	m := start(asked("aaaaaa"), asked("bbbbbb", "https://example.org/"))
	if o := m.press("a", "n", "d", "x", "a", "\r", "y", "j", "d", "\x1b"); o != nil {
		t.Errorf("answered: %+v", o)
	}
	m.shows(t, "nothing was answered")
	o := m.press("a")
	m.shows(t, "approve bbbbbb?  y: yes")
	if o != nil {
		t.Error("answered with one key")
	}
	o = m.press("y")
	if o == nil || o.id != "bbbbbb" || !o.reply.Allow || o.reply.Why != "" || o.reply.Shown != show.Question(m.list[1]) {
		t.Errorf("order: %+v", o)
	}
	o = m.press("k", "d", "r", "n", "o", "\x1b[A", "\x01", "é", "x", "\x7f", " ", "1")
	if o != nil {
		t.Errorf("answered while typing: %+v", o)
	}
	m.shows(t, "deny aaaaaa, reason (enter: deny, escape: no): noé 1")
	if o = m.press("\r"); o == nil || o.id != "aaaaaa" || o.reply.Allow || o.reply.Why != "noé 1" {
		t.Errorf("order: %+v", o)
	}
	if o = m.press("a", "r", "x", "\x1b"); o != nil {
		t.Errorf("answered: %+v", o)
	}
	if _, quit := m.key("q"); !quit {
		t.Error("q does not quit")
	}
	m.press("a", "r")
	if _, quit := m.key("q"); quit {
		t.Error("a letter of the reason quits")
	}
	if _, quit := m.key("\x03"); !quit {
		t.Error("ctrl-C does not quit")
	}
	m.press(strings.Split(strings.Repeat("x", 2*maxReason), "")...)
	if len(m.typed) > maxReason {
		t.Errorf("%d bytes were typed", len(m.typed))
	}
}

// F01, F02: digits choose a wider scope before it is confirmed; only those that the question lists, and what is chosen is shown.
func TestF01ScopeIsChosen(t *testing.T) {
	q := asked("aaaaaa", "x")
	q.Chain = []event.Member{q.Process.Member(), {PID: 276, Argv: []string{"bash", "fetch.sh"}}, {PID: 270, Argv: []string{"make", "a\x1b[2J" + strings.Repeat("é", 200)}}}
	alone := asked("bbbbbb", "y")
	hook := asked("cccccc")
	hook.Text, hook.Destination = "npm install", event.Destination{}
	m := start(q, alone, hook)
	m.height = 40
	m.draw()
	if o := m.press("a", "y"); o == nil || o.reply.Scope != 0 {
		t.Errorf("order: %+v", o)
	}
	m.press("a")
	m.shows(t, "approve aaaaaa?  y: yes  2-3: wider scope  r: with a reason  any other key: no")
	if o := m.press("2"); o != nil {
		t.Errorf("answered with a digit: %+v", o)
	}
	m.shows(t, "approve aaaaaa for bash fetch.sh and everything it starts?  y: yes  r: reason")
	if o := m.press("y"); o == nil || o.id != "aaaaaa" || o.reply.Scope != 2 || !o.reply.Allow || o.reply.Shown != show.Question(q) {
		t.Errorf("order: %+v", o)
	}
	m.press("a", "2", "3") // what is long is cut in the line, and the rest of the line stays
	m.shows(t, `approve aaaaaa for make $'a\x1b[2… and everything it starts?  y: yes  r: reason`)
	m.press("r")
	m.shows(t, "approve aaaaaa with scope 3, reason (enter: approve, escape: no): ")
	if o := m.press("2", "\r"); o == nil || o.reply.Scope != 3 || o.reply.Why != "2" {
		t.Errorf("order: %+v", o)
	}
	// The next answer begins anew; what is not listed, and on a denial every digit, is no answer.
	for _, keys := range [][]string{{"a", ""}, {"a", "4", "y"}, {"a", "0", "y"}, {"a", "2", "n", "y"}, {"d", "2", "y"}, {"j", "a", "2", "y"}, {"j", "a", "1", "y"}} {
		if o := m.press(keys...); o != nil {
			t.Errorf("%q: %+v", keys, o)
		}
		m.shows(t, "nothing was answered")
	}
	m.press("k", "a", "9")
	m.shows(t, "no scope 9: nothing was answered")
	m.press("j")
	if o := m.press("k", "a", "y"); o == nil || o.id != "bbbbbb" || o.reply.Scope != 0 {
		t.Errorf("order: %+v", o)
	}
	if o := m.press("k", "a", "2", "1", "y"); o == nil || o.id != "aaaaaa" || o.reply.Scope != 1 {
		t.Errorf("order: %+v", o)
	}
}

// F09: the list has the command that a hook asks about, not the hook.
func TestF09List(t *testing.T) {
	hook := asked("aaaaaa")
	hook.Text, hook.Destination, hook.Process.Argv = "npm install left-pad", event.Destination{}, []string{"weir-hook", "generic"}
	begins := asked("bbbbbb", "deps")
	begins.Destination = event.Destination{}
	m := start(hook, begins)
	m.width = 120
	list := strings.Join(m.questions(), "\n")
	if !strings.Contains(list, "  'npm install left-pad'") || !strings.Contains(list, "  curl deps") || strings.Contains(list, "weir-hook") || strings.Contains(list, "protocol") {
		t.Error(list)
	}
}

// What is confirmed is what was selected, whatever comes and goes meanwhile.
func TestEndedMeanwhile(t *testing.T) {
	a, b, c := asked("aaaaaa"), asked("bbbbbb"), asked("cccccc")
	m := start(a, b)
	m.press("j", "a")
	gone := a
	gone.State, gone.Outcome, gone.By = gate.StateApproved, gate.Approved, "root (bob)"
	m.take(update{list: []gate.Question{b, c}, ended: []gate.Question{gone}})
	m.shows(t, "aaaaaa: approved by root (bob)")
	if o := m.press("y"); o == nil || o.id != "bbbbbb" {
		t.Errorf("order: %+v", o)
	}
	m.press("a")
	over := b
	over.State, over.Outcome = gate.StateExpired, gate.Timeout
	m.take(update{list: []gate.Question{c}, ended: []gate.Question{over}})
	m.shows(t, "bbbbbb: denied: nobody answered in time")
	m.shows(t, "bbbbbb has ended meanwhile: nothing was answered")
	if o := m.press("y"); o != nil {
		t.Errorf("answered %+v", o)
	}
	if m.selected != "cccccc" {
		t.Errorf("selected: %q", m.selected)
	}
	m.take(update{ended: []gate.Question{c}})
	m.shows(t, "weir: 0 questions wait")
	m.take(update{list: []gate.Question{a}})
	m.shows(t, "weir: 1 question waits")
	m.take(update{})
	m.press("a", "d", "j", "k", " ", "b")
	m.shows(t, "no question is selected")
	m.take(update{err: fmt.Errorf("no sensor\x1b[2J is running")})
	m.shows(t, `weir: no sensor\x1b[2J is running`)
}

// What was not on the screen in full is not approved; a denial needs no more.
func TestAllMustBeSeen(t *testing.T) {
	long := asked("aaaaaa", strings.Repeat("x", 3000))
	m := start(long, asked("bbbbbb"))
	if o := m.press("a", "y"); o != nil {
		t.Errorf("approved unseen: %+v", o)
	}
	m.shows(t, "there is more of aaaaaa: see all of it first (space)")
	m.shows(t, "more lines: space")
	if o := m.press("d", "y"); o == nil || o.reply.Allow {
		t.Errorf("denied: %+v", o)
	}
	for range 10 {
		m.press(" ")
	}
	m.shows(t, "state        refused with EPERM")
	m.press("j", "k")
	if o := m.press("a", "y"); o == nil || o.id != "aaaaaa" || !o.reply.Allow {
		t.Errorf("order: %+v", o)
	}
	m.press("b", "b", keyPageUp, keyPageUp, keyPageDown, keyUp, keyDown)
	// Another question under the same id would have to be seen again.
	m.take(update{ended: []gate.Question{long}})
	m.take(update{list: []gate.Question{long}})
	m.draw()
	if o := m.press("a", "y"); o != nil {
		t.Errorf("approved unseen: %+v", o)
	}
}

// F08: pages count as seen without a gap between them only, whatever became of the screen meanwhile.
func TestF08NoGaps(t *testing.T) {
	m := start(asked("aaaaaa", strings.Repeat("x", 6000)))
	m.width, m.height = 40, 24
	m.draw()
	m.press(" ", " ", " ")
	m.width = 200 // the text has fewer lines now: the next ones are far behind what was shown
	m.draw()
	for range 10 {
		m.press(" ")
	}
	if o := m.press("a", "y"); o != nil {
		t.Errorf("approved with a gap: %+v", o)
	}
	for range 20 {
		m.press("b")
	}
	for range 20 {
		m.press(" ")
	}
	m.width = 20
	if o := m.press("a", "y"); o != nil {
		t.Errorf("approved unseen: %+v", o)
	}
	m.width = 30
	if o := m.press("a", "y"); o == nil {
		t.Error("not approved")
	}
}

// F08: on the smallest screen all can be seen, among however many questions, and what is asked for confirmation is there as a whole.
func TestF08SmallScreens(t *testing.T) {
	for height := leastHeight; height < 30; height += 4 {
		for width := leastWidth; width < 100; width += 9 {
			q := asked("aaaaaa", strings.Repeat("漢字🙂e\u0301", 40))
			q.Chain = []event.Member{q.Process.Member(), {PID: 276, Argv: append([]string{"bash"}, q.Process.Argv...)}}
			m := start(q, asked("bbbbbb"), asked("cccccc"), asked("dddddd"), asked("eeeeee"))
			m.width, m.height = width, height
			m.draw()
			for range 100 {
				m.press(" ")
			}
			m.press("a", "2")
			lines := m.draw()
			asks := strings.Join(lines[height-m.asking():], "")
			if !strings.HasPrefix(asks, "approve aaaaaa for bash ") && width > 40 || !strings.HasPrefix(asks, "approve aaaaaa for ") || !strings.HasSuffix(asks, " and everything it starts?  y: yes  r: reason") {
				t.Errorf("%dx%d: %q", width, height, asks)
			}
			if o := m.press("y"); o == nil || o.reply.Scope != 2 {
				t.Errorf("%dx%d: %+v", width, height, o)
			}
		}
	}
}

// An approval is for what was on the screen: that nobody waits any more, too.
func TestGoneMeanwhile(t *testing.T) {
	q := asked("aaaaaa")
	q.Held, q.Askers = true, 3
	m := start(q)
	m.shows(t, "state        held: it waits for the answer")
	m.shows(t, "askers       3 processes: an approval lets one go on; the others ask again")
	q.Gone = true
	m.take(update{list: []gate.Question{q}})
	if o := m.press("a"); o != nil || m.step != browse {
		t.Errorf("approved unseen: %+v", o)
	}
	m.shows(t, "state        nobody waits any more; if you approve, the same command goes throug")
	if o := m.press("a", "y"); o == nil || o.reply.Shown != show.Question(q) {
		t.Errorf("order: %+v", o)
	}
	q.Outcome, q.By = gate.Approved, "root"
	m.take(update{ended: []gate.Question{q}})
	m.shows(t, "aaaaaa: approved by root; run it again")
}

// B51: whatever is shown, at whatever size, fits and holds nothing that a terminal
// obeys.
func TestEverySize(t *testing.T) {
	var list []gate.Question
	for i := range 40 {
		q := asked(fmt.Sprintf("id%04d", i), strings.Repeat("x\x1b[2J\n\u202e界é", i*20))
		q.Chain = []event.Member{q.Process.Member(), q.Process.Member()}
		list = append(list, q)
	}
	m := start(list...)
	m.note("note \x1b[2J")
	for width := 1; width < 140; width += 7 {
		for height := 1; height < 60; height += 5 {
			m.width, m.height = width, height
			for _, k := range []string{"j", " ", "a", "2", "r", "\x1b", "a", "y", "d", "r", "x\u202e", "\x1b", keyDown} {
				m.key(k)
				lines := m.draw()
				if len(lines) != height {
					t.Fatalf("%dx%d: %d lines", width, height, len(lines))
				}
				for _, line := range lines {
					columns := show.Columns(line)
					for _, r := range line {
						if unicode.IsControl(r) || r == '\u202e' {
							t.Fatalf("%dx%d: %q", width, height, line)
						}
					}
					if columns > width {
						t.Fatalf("%dx%d: %d columns: %q", width, height, columns, line)
					}
				}
			}
		}
	}
}

// B51: a wrapped line cannot pose as another row.
func TestWrap(t *testing.T) {
	lines := show.Wrap("command      "+strings.Repeat("a", 60)+"destination  192.0.2.9:443/tcp", 73, indent)
	if len(lines) != 2 || lines[1] != "             destination  192.0.2.9:443/tcp" {
		t.Errorf("%q", lines)
	}
	if got := strings.Join(show.Wrap("", 40, indent), "|"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestSplit(t *testing.T) {
	for in, want := range map[string]string{
		"ay": "a y", "\x1b[Aj": keyUp + " j", "\x1bOB": keyDown, "\x1b[5~\x1b[6~": keyPageUp + " " + keyPageDown, "\x1b": "\x1b", "é\xffy": "é y", "\x1b[": "\x1b [",
		"\x1b[200~y": "\x1b[200~ y",
	} {
		if got := strings.Join(split([]byte(in)), " "); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// F44: when a question has ended, the next one is selected, and the result is told once.
func TestF44Next(t *testing.T) {
	a, b, c, d, e := asked("aaaaaa"), asked("bbbbbb"), asked("cccccc"), asked("dddddd"), asked("eeeeee")
	m := start(a, b, c, d)
	m.press("j", "j") // c
	ends := func(list []gate.Question, want string, ended ...gate.Question) {
		t.Helper()
		for i := range ended {
			ended[i].State, ended[i].Outcome, ended[i].By = gate.StateDenied, gate.Denied, "root"
		}
		m.take(update{list: list, ended: ended})
		if m.draw(); m.selected != want {
			t.Errorf("selected is %q, want %q", m.selected, want)
		}
	}
	ends([]gate.Question{b, d, e}, "dddddd", a, c)
	ends([]gate.Question{b, d, e}, "dddddd")
	if text := strings.Join(m.draw(), "\n"); strings.Count(text, "cccccc: denied by root") != 1 {
		t.Error("the result is not told once:\n" + text)
	}
	ends([]gate.Question{b, d}, "dddddd", e)
	ends([]gate.Question{b}, "bbbbbb", d)
	ends(nil, "", b)
	ends([]gate.Question{a}, "aaaaaa")
}

// F08: who looks at one question does not approve another that took its place by itself just before the keys.
func TestF08TakesItsPlace(t *testing.T) {
	q1, q2, q3 := asked("aaaaaa"), asked("bbbbbb"), asked("cccccc")
	m := start(q1, q2, q3)
	q1.Outcome, q1.State = gate.Timeout, "denied"
	m.take(update{list: []gate.Question{q2, q3}, ended: []gate.Question{q1}})
	m.draw()
	if o := m.press("a", "y"); o != nil {
		t.Errorf("the key that was meant for aaaaaa answers %s", o.id)
	}
	m.shows(t, "bbbbbb is selected now, since the one before has ended: look, and press a again")
	if o := m.press("a", "y"); o == nil || o.id != "bbbbbb" {
		t.Errorf("looked at and pressed again: %+v", o)
	}
	q2.Outcome, q2.State, q2.By = gate.Approved, "approved", "root"
	m.take(update{list: []gate.Question{q3}, ended: []gate.Question{q2}})
	m.draw()
	if o := m.press("a", "y"); o == nil || o.id != "cccccc" {
		t.Errorf("the next after an answer from here: %+v", o)
	}
}
