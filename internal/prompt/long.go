package prompt

import (
	"strings"

	"weir/internal/gate"
)

// long is what was chosen of an approval that goes on.
type long struct {
	life, who int // places in lives and whos
	scope     int // 0: who asked
	keeps     bool
}

var (
	lives = []string{"30m", "2h", "8h", "24h", gate.ForSession, "5m"}
	whos  = []string{gate.WhoProcess, gate.WhoProgram, gate.WhoContainer}
)

// adding stands for the text of an approval that goes on among those of questions.
const adding = ""

func (l long) reply() gate.Reply {
	r := gate.Reply{Allow: true, For: lives[l.life], Who: whos[l.who], Keeps: l.keeps}
	if r.Who == gate.WhoProcess {
		r.Scope = l.scope
	}
	return r
}

// choose begins with the narrowest approval that can be had. It says why there is none.
func (m *model) choose(group []gate.Question) bool {
	l := long{}
	if len(group) > 1 {
		l.who = 1
	}
	var err error
	for range whos {
		if _, err = group[0].StandingBy(l.reply()); err == nil {
			m.long = &l
			return true
		}
		l.who = (l.who + 1) % len(whos)
	}
	m.note("%v", err)
	return false
}

// chosen handles a key while what the approval adds is on the screen.
func (m *model) chosen(k string) []order {
	switch n := strings.Index("0123456789", k); {
	case k == "t":
		m.long.life = (m.long.life + 1) % len(lives)
	case k == "w":
		m.long.who = (m.long.who + 1) % len(whos)
	case k == "n":
		m.long.keeps = !m.long.keeps
	case len(k) == 1 && n >= 1 && n <= len(m.chain()):
		m.long.who, m.long.scope = 0, n
	case k == "space", k == "pgdown", k == "b", k == "pgup":
		m.turn(k)
		return nil
	case (k == "y" || k == "r") && m.text().err != nil:
		m.note("%v", m.text().err)
		return nil
	case k == "y":
		return m.orders()
	case k == "r":
		m.step = reason
		return nil
	default:
		m.nothing()
		return nil
	}
	m.wrapped.ready = false
	m.text()
	m.top = m.wrapped.shown
	return nil
}
