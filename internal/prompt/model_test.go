package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"weir/internal/control"
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
	for _, o := range m.all(keys...) {
		last = &o
	}
	return last
}

// all presses keys and returns all answers.
func (m *model) all(keys ...string) (all []order) {
	for _, k := range keys {
		orders, _ := m.key(k)
		all = append(all, orders...)
		m.draw()
	}
	return all
}

func (m *model) shows(t *testing.T, want string) {
	t.Helper()
	if text := strings.Join(m.draw(), "\n"); !strings.Contains(text, want) {
		t.Errorf("no %q on the screen:\n%s", want, text)
	}
}

func TestAnswerNeedsTwoKeys(t *testing.T) {
	m := start(asked("aaaaaa"), asked("bbbbbb", "https://example.org/"))
	if o := m.press("a", "n", "d", "x", "a", "enter", "y", "j", "d", "esc"); o != nil {
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
	o = m.press("k", "d", "r", "n", "o", "up", "ctrl+a", "é", "x", "backspace", "space", "1")
	if o != nil {
		t.Errorf("answered while typing: %+v", o)
	}
	m.shows(t, "deny aaaaaa, reason (enter: deny, escape: no): noé 1")
	if o = m.press("enter"); o == nil || o.id != "aaaaaa" || o.reply.Allow || o.reply.Why != "noé 1" {
		t.Errorf("order: %+v", o)
	}
	if o = m.press("a", "r", "x", "esc"); o != nil {
		t.Errorf("answered: %+v", o)
	}
	if _, quit := m.key("q"); !quit {
		t.Error("q does not quit")
	}
	m.press("a", "r")
	if _, quit := m.key("q"); quit {
		t.Error("a letter of the reason quits")
	}
	if _, quit := m.key("ctrl+c"); !quit {
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
	if o := m.press("2", "enter"); o == nil || o.reply.Scope != 3 || o.reply.Why != "2" {
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
	list := strings.Join(m.listed(), "\n")
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
	m.press("a", "d", "j", "k", "space", "b")
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
		m.press("space")
	}
	m.shows(t, "state        refused with EPERM")
	m.press("j", "k")
	if o := m.press("a", "y"); o == nil || o.id != "aaaaaa" || !o.reply.Allow {
		t.Errorf("order: %+v", o)
	}
	m.press("b", "b", "pgup", "pgup", "pgdown", "up", "down")
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
	m.press("space", "space", "space")
	m.width = 200 // the text has fewer lines now: the next ones are far behind what was shown
	m.draw()
	for range 10 {
		m.press("space")
	}
	if o := m.press("a", "y"); o != nil {
		t.Errorf("approved with a gap: %+v", o)
	}
	for range 20 {
		m.press("b")
	}
	for range 20 {
		m.press("space")
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
				m.press("space")
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

// F08: what is typed of a reason is never taken for keys, though its question ends or changes meanwhile.
func TestF08TypedOn(t *testing.T) {
	q1, q2 := asked("aaaaaa"), asked("bbbbbb")
	typed := strings.Split("may not say why: day by day", "")
	for name, keys := range map[string][]string{"approve": {"a", "r"}, "deny": {"d", "r"}} {
		m := start(q1, q2)
		m.press(keys...)
		over := q1
		over.Outcome, over.State = gate.Timeout, "denied"
		m.take(update{list: []gate.Question{q2}, ended: []gate.Question{over}})
		m.draw()
		if got := m.all(typed...); len(got) > 0 {
			t.Errorf("%s: the reason was taken for keys: %+v", name, got)
		}
		m.shows(t, "there is nothing to answer any more  enter or escape: go on")
		if got := m.all("enter", "y"); len(got) > 0 || m.step != browse {
			t.Errorf("%s: answered: %+v", name, got)
		}
		m.shows(t, "nothing was answered")
	}
	m := start(q1)
	m.press("a", "r")
	q1.Gone = true
	m.take(update{list: []gate.Question{q1}})
	m.draw()
	if got := m.all(append(typed, "enter")...); len(got) > 0 || m.step != browse {
		t.Errorf("the reason was taken for keys: %+v", got)
	}
}

// F08: a text that changes between the two keys is not approved, also where all of the new one was on the screen at once.
func TestF08ChangedMeanwhile(t *testing.T) {
	list := alike("aaaaaa", "bbbbbb")
	for _, key := range []string{"a", "l"} {
		m := start(list...)
		m.height = 60
		m.draw()
		m.press(key)
		gone := slices.Clone(list)
		gone[0].Gone = true
		m.take(update{list: gone})
		m.draw()
		if got := m.all("y"); len(got) > 0 {
			t.Errorf("%s: what has changed was approved: %+v", key, got)
		}
		m.shows(t, "aaaaaa has changed meanwhile: look, and answer again")
		if got := m.all("d"); len(got) > 0 || m.step != confirm {
			t.Errorf("%s: %+v", key, got)
		}
		m.take(update{list: list})
		m.draw()
		if got := m.all("y"); len(got) != 2 {
			t.Errorf("%s: a denial needs no text: %+v", key, got)
		}
	}
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
	everySize(t, m, "j", "space", "a", "2", "r", "esc", "a", "y", "d", "r", "x\u202e", "esc", "down")
}

// B51: the same for groups, approvals that go on, containers, and what is looked for.
func TestEverySizeOfTheRest(t *testing.T) {
	q := asked("id0001", strings.Repeat("x\x1b[2J\n\u202e界é", 60))
	list := []gate.Question{q}
	for i := range 3 { // that are alike, and can be approved for longer
		q := alike(fmt.Sprintf("alike%d", i))[0]
		q.Process.Argv = append(q.Process.Argv, list[0].Process.Argv...)
		list = append([]gate.Question{q}, list...)
	}
	m := start(list...)
	m.grant = func(event.GrantInfo) string { return "to x\x1b[2J\n\u202e界" }
	m.take(update{list: list, at: time.Unix(1000, 0), status: control.Status{Mode: "x\x1b[2J"}, containers: []control.Container{
		{ID: "c1", Name: strings.Repeat("x\x1b[2J\n\u202e界é", 20), Cgroup: "/\x1b\n", Mode: "\x1b", Since: time.Unix(1, 0), By: "\x1b\n", Why: "\x1b\u202e", Image: "\x1b", Taint: []string{"\x1b"}, Grants: []event.GrantInfo{{}}},
	}, approvals: []gate.StandingApproval{{ID: "\x1b", Container: list[0].Container, Destination: list[0].Destination, Adds: "\x1b[2J\u202e\n"}}})
	everySize(t, m, "e", "k", "j", "e", "space", "space", "l", "t", "w", "w", "r", "x\u202e", "esc", "a", "r", "esc", "/", "x\u202e", "tab", "esc", "tab", "a", "space", "tab", "k")
}

func everySize(t *testing.T, m *model, keys ...string) {
	t.Helper()
	for width := 1; width < 140; width += 7 {
		for height := 1; height < 60; height += 5 {
			m.width, m.height = width, height
			for _, k := range keys {
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

// F08: who looks at one question does not answer another that took its place by itself just before the keys.
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
	m.moved = true
	if o := m.press("d", "y"); o != nil {
		t.Errorf("the key that was meant for aaaaaa denies %s", o.id)
	}
	m.shows(t, "bbbbbb is selected now, since the one before has ended: look, and press d again")
	if o := m.press("a", "y"); o == nil || o.id != "bbbbbb" {
		t.Errorf("looked at and pressed again: %+v", o)
	}
	q2.Outcome, q2.State, q2.By = gate.Approved, "approved", "root"
	m.take(update{list: []gate.Question{q3}, ended: []gate.Question{q2}})
	m.draw()
	if o := m.press("a", "y"); o == nil || o.id != "cccccc" {
		t.Errorf("the next after an answer from here: %+v", o)
	}
	q3.Outcome, q3.State = gate.Timeout, "denied"
	m.answered = ""
	m.take(update{ended: []gate.Question{q3}}) // for a while there is none
	m.draw()
	m.take(update{list: []gate.Question{q1}})
	m.draw()
	if o := m.press("a", "y"); o != nil {
		t.Errorf("the key that was meant for cccccc answers %s", o.id)
	}
}

// alike are questions of one program to one destination; each has another command.
func alike(ids ...string) []gate.Question {
	var list []gate.Question
	for i, id := range ids {
		q := asked(id, fmt.Sprintf("file-%d", i))
		q.Process.PID, q.Process.Exe = 7+i, &event.File{Path: "/usr/bin/curl", Device: 254, Inode: 9}
		q.Held, q.GrantSeconds, q.GrantBytes = true, 60, 64<<20
		q.Chain = []event.Member{q.Process.Member(), {PID: 200, Argv: []string{"make", "all"}}}
		list = append(list, q)
	}
	return list
}

// Questions that are alike are one line, and one answer, after all that tells them apart was on the screen.
func TestGroup(t *testing.T) {
	list := append(alike("aaaaaa", "bbbbbb", "cccccc"), asked("dddddd"))
	list[1].Process.Env, list[2].Note = []string{"LD_PRELOAD"}, "for this one alone"
	m := start(list...)
	if got := strings.Join(m.listed(), "\n"); !strings.Contains(got, "> aaaaaa") || !strings.Contains(got, "3 alike") || strings.Contains(got, "bbbbbb") || !strings.Contains(got, "dddddd") {
		t.Error(got)
	}
	if o := m.all("a", "y"); o != nil {
		t.Errorf("approved unseen: %+v", o)
	}
	m.shows(t, "there is more of aaaaaa: see all of it first (space)")
	screen := ""
	for range 10 {
		screen += strings.Join(m.draw(), "\n")
		m.press("space")
	}
	for _, q := range list[:3] { // every line of each question was there
		for line := range strings.Lines(show.Question(q)) {
			if !strings.Contains(screen, strings.TrimSpace(line)) && len(line) < 80 {
				t.Errorf("%s: no %q was shown", q.ID, line)
			}
		}
	}
	m.press("a")
	m.shows(t, "approve aaaaaa and 2 alike?  y: yes  r: reason  any other key: no")
	if o := m.all("2"); o != nil || m.step != browse {
		t.Errorf("a group has a scope: %+v", o)
	}
	got := m.all("a", "r", "o", "k", "enter")
	if len(got) != 3 {
		t.Fatalf("answers: %+v", got)
	}
	for i, o := range got {
		want := gate.Reply{Allow: true, Why: "ok", Shown: show.Question(list[0])}
		if i > 0 {
			want.Shown += show.Besides(list[i], list[0])
		}
		if o.id != list[i].ID || o.reply != want {
			t.Errorf("order: %+v", o)
		}
	}
	// One that joins has to be seen, too; one that ends is not answered; when the first ends, nothing is.
	m.press("a")
	m.take(update{list: append(alike("aaaaaa", "bbbbbb", "cccccc", "eeeeee"), list[3])})
	m.draw()
	if got := m.all("y"); len(got) != 0 {
		t.Errorf("what has changed was approved: %+v", got)
	}
	for range 10 {
		m.press("space")
	}
	m.press("a")
	list = alike("aaaaaa", "bbbbbb", "cccccc", "eeeeee")
	gone := list[1]
	gone.Outcome = gate.Timeout
	m.take(update{list: []gate.Question{list[0], list[2], list[3]}, ended: []gate.Question{gone}})
	m.draw()
	if got := m.all("y"); len(got) != 3 || got[1].id != "cccccc" {
		t.Errorf("answers: %+v", got)
	}
	m.press("a")
	gone = list[0]
	gone.Outcome = gate.Timeout
	m.take(update{list: []gate.Question{list[2], list[3]}, ended: []gate.Question{gone}})
	m.draw()
	if got := m.all("y"); len(got) != 0 {
		t.Errorf("the first has ended: %+v", got)
	}
	m.shows(t, "aaaaaa has ended meanwhile: nothing was answered")
}

// e has a line for each question, and back.
func TestEach(t *testing.T) {
	m := start(alike("aaaaaa", "bbbbbb")...)
	m.press("e", "j")
	if m.selected != "bbbbbb" {
		t.Errorf("selected is %q", m.selected)
	}
	m.shows(t, "> bbbbbb")
	for range 3 {
		m.press("space")
	}
	if got := m.all("a", "2", "y"); len(got) != 1 || got[0].id != "bbbbbb" || got[0].reply.Scope != 2 {
		t.Errorf("answers: %+v", got)
	}
	m.press("e")
	if m.selected != "aaaaaa" {
		t.Errorf("selected is %q", m.selected)
	}
	m.press("d")
	m.shows(t, "deny aaaaaa and 1 alike?  y: yes")
	if got := m.all("y"); len(got) != 2 || got[1].reply.Allow {
		t.Errorf("a denial needs no look: %+v", got)
	}
}

// An approval that goes on is given by key, for exactly what was shown that it adds.
func TestLonger(t *testing.T) {
	q := alike("aaaaaa")[0]
	tool := asked("bbbbbb")
	tool.Text, tool.Tool = "fetch", true
	has := gate.StandingApproval{ID: "zzz222", Container: q.Container, Destination: q.Destination, Adds: "something that is there"}
	m := start(q, tool)
	m.height = 40
	m.take(update{list: []gate.Question{q, tool}, approvals: []gate.StandingApproval{has}})
	m.draw()
	m.press("l")
	m.shows(t, "adds         curl file-0 (pid 7) and everything it starts -> 192.0.2.1:443/tcp, ")
	m.shows(t, "             for 30m, 64 MiB in all; new taint ends it")
	m.shows(t, "so far       something that is there")
	m.shows(t, "t time  w who  2-9 scope  n new taint  space page  y: yes  r: reason  other: no")
	if o := m.all("x"); o != nil || m.step != browse {
		t.Errorf("answered: %+v", o)
	}
	m.press("l", "t", "w", "n")
	m.shows(t, "runs /usr/bin/curl")
	got := m.all("y")
	r := gate.Reply{Allow: true, For: "2h", Who: gate.WhoProgram, Keeps: true}
	given, err := q.StandingBy(r)
	if err != nil {
		t.Fatal(err)
	}
	r.Adds, r.Shown = given.Adds, show.Question(q)+show.Adds(given, []gate.StandingApproval{has})
	if len(got) != 1 || got[0].id != "aaaaaa" || got[0].reply != r {
		t.Errorf("got %+v, want %+v", got, r)
	}
	got = m.all("l", "2", "t", "t", "t", "t", "r", "o", "k", "space", "1", "enter")
	if len(got) != 1 || got[0].reply.For != gate.ForSession || got[0].reply.Scope != 2 || got[0].reply.Who != gate.WhoProcess || got[0].reply.Why != "ok 1" || !strings.Contains(got[0].reply.Adds, "make all (pid 200)") {
		t.Errorf("answers: %+v", got)
	}
	// What it adds to has changed under the keys: the new text has to be seen.
	m.height = 16
	m.draw()
	for range 3 {
		m.press("space")
	}
	m.press("l")
	for range 3 {
		m.press("space")
	}
	m.press("r")
	has.Adds = strings.Repeat("much more that is there ", 60)
	m.take(update{list: []gate.Question{q, tool}, approvals: []gate.StandingApproval{has}})
	m.draw()
	if o := m.all("enter"); len(o) != 0 {
		t.Errorf("approved unseen: %+v", o)
	}
	m.shows(t, "there is more of what it adds: see all of it first (space)")
	for range 9 {
		m.press("space")
	}
	if o := m.all("y"); len(o) != 1 || !strings.Contains(o[0].reply.Shown, has.Adds[:200]) {
		t.Errorf("answers: %+v", o)
	}
	m.press("j", "l")
	m.shows(t, "only a question about a connection can be approved for longer")
	if m.step != browse || m.long != nil {
		t.Error("a tool's call is approved for longer")
	}
}

// What cannot be had is said before it is answered: who does not wait cannot be let out for longer.
func TestCannotBeHad(t *testing.T) {
	q := alike("aaaaaa")[0]
	q.Held = false
	m := start(q)
	m.height = 40
	m.draw()
	m.press("l")
	m.shows(t, "every process of") // the program: it can be had
	m.press("1")
	m.shows(t, "adds         nothing: the process that asked does not wait")
	if o := m.all("y"); len(o) != 0 || m.step != lasting {
		t.Errorf("answers: %+v", o)
	}
	if o := m.all("2", "y"); len(o) != 1 || o[0].reply.Scope != 2 {
		t.Errorf("answers: %+v", o)
	}
}

// F08: what an approval adds is seen as a whole, however little room there is.
func TestF08LongerPages(t *testing.T) {
	q := alike("aaaaaa")[0]
	q.Process.Argv = []string{"curl", strings.Repeat("x", 2000)}
	q.Chain[0] = q.Process.Member()
	m := start(q)
	m.width, m.height = 40, 14
	m.draw()
	for range 100 {
		m.press("space")
	}
	m.press("l")
	if o := m.all("y"); len(o) != 0 || m.step != lasting {
		t.Fatalf("approved unseen: %+v", o)
	}
	for range 100 {
		m.press("space")
	}
	if o := m.all("y"); len(o) != 1 {
		t.Errorf("answers: %+v", o)
	}
}

// What is looked for is found by what is on the screen, and answers are for what is shown alone.
func TestSearch(t *testing.T) {
	list := append(alike("aaaaaa", "bbbbbb"), asked("cccccc", "https://Example.org/"))
	m := start(list...)
	m.press("/", "E", "x", "a", "m", "p", "l", "e", ".", "space", "backspace")
	m.shows(t, "weir: 3 questions wait; 1 line has Example.")
	m.shows(t, "> cccccc")
	m.press("enter")
	if o := m.all("a", "y"); len(o) != 1 || o[0].id != "cccccc" {
		t.Errorf("answers: %+v", o)
	}
	m.press("/", "f", "i", "l", "e", "-", "1", "enter")
	m.shows(t, "> bbbbbb")
	if o := m.all("d", "y"); len(o) != 1 || o[0].id != "bbbbbb" {
		t.Errorf("answers: %+v", o)
	}
	m.press("esc")
	m.shows(t, "weir: 3 questions wait")
	m.shows(t, "2 alike")
	m.press("/", "\x1b[2J\u202e漢", "q", "y", "enter", "a", "d")
	m.shows(t, "no question is selected")
	m.paste("ay")
	m.shows(t, "what was pasted is no key: type it")
	m.press("/")
	m.paste("cccccc")
	m.press("enter")
	m.shows(t, "> cccccc")
}

// Containers with taint, mode, what is open to them and what waits, and the sensor's rates.
func TestContainers(t *testing.T) {
	q := asked("aaaaaa")
	box := control.Container{
		ID: "c1", Name: "web\x1b[2J\u202e", Cgroup: "/weir/c1", Taint: []string{"corruption", "secret"}, Mode: "enforce", Live: true, Since: time.Unix(900, 0), By: "root", Why: "opened \x1b[2J",
		Grants: []event.GrantInfo{{ID: 5}},
	}
	m := start(q)
	m.grant = func(g event.GrantInfo) string { return fmt.Sprintf("grant %d\x1b[2J", g.ID) }
	at := time.Unix(1000, 0)
	see := func(denied uint64, at time.Time) {
		m.take(update{
			list: []gate.Question{q}, at: at, containers: []control.Container{box, {ID: "c2", Cgroup: "/weir/c2", Mode: "observe"}},
			status:    control.Status{Mode: "enforce", Counters: map[string]uint64{"denied_connect": denied, "denied_send": 2, "dropped_packet": denied / 2, "held": denied}},
			approvals: []gate.StandingApproval{{ID: "zzz222", Container: q.Container, Adds: "curl -> there"}},
		})
	}
	see(2, at)
	see(100, at.Add(10*time.Millisecond)) // asked at once after an answer
	see(27, at.Add(2*time.Second))
	m.shows(t, "weir: 1 question waits  enforce  1 of 2 tainted  12.5 refused/s  6 dropped/s")
	m.press("tab")
	m.shows(t, `> $'web\x1b[2J\u202e'  corruption,secret  enforce  1 grant  1 question`+"\n")
	m.shows(t, "c2  clean  observe  0 grants  0 questions  ended")
	m.shows(t, `             since 1970-01-01 00:15:00 UTC, by root: $'opened \x1b[2J'`)
	m.shows(t, `open         grant 5\x1b[2J`)
	m.shows(t, "goes on      zzz222: curl -> there")
	m.shows(t, "waits        aaaaaa: curl -> 192.0.2.1:443/tcp")
	if o := m.all("a", "y", "d", "y", "l"); len(o) != 0 {
		t.Errorf("answered on the page of containers: %+v", o)
	}
	m.shows(t, "questions are answered on their page (tab)")
	m.press("j")
	m.shows(t, "> c2")
	m.press("/", "/", "c", "1", "enter")
	m.shows(t, "> $'web")
	// On this page, too, a question that takes another's place is not approved by the next key.
	m.press("esc")
	other := asked("bbbbbb")
	m.take(update{list: []gate.Question{q, other}})
	m.draw()
	m.take(update{list: []gate.Question{other}, ended: []gate.Question{q}})
	m.draw()
	if o := m.all("tab", "a", "y"); len(o) != 0 {
		t.Errorf("answers: %+v", o)
	}
	m.shows(t, "bbbbbb is selected now")
}

// Who may only look is offered no key that answers, and has none.
func TestLooks(t *testing.T) {
	m := start(asked("aaaaaa"))
	m.looks = true
	m.shows(t, "you may look, not answer")
	if screen := strings.Join(m.draw(), "\n"); strings.Contains(screen, "approve") {
		t.Error(screen)
	}
	for _, k := range []string{"a", "d", "l"} {
		if o := m.all(k, "y"); len(o) != 0 || m.step != browse {
			t.Errorf("%s: %+v", k, o)
		}
		m.shows(t, "you may look, and not answer")
	}
}
