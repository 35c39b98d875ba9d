//go:build vmguest

package loss

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/netegress"
	"weir/internal/taint"
	"weir/test/vm/guest/rig"
)

const (
	asking = "hold: false\n"
	low    = 20000 // ports
)

// TestLoss shares one sensor: to load it takes longest.
func TestLoss(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		name string
		run  func(*sensor, *testing.T)
	}{
		{"B31_records", (*sensor).records}, {"B31_questions", (*sensor).questions}, {"B31_review", (*sensor).review}, {"B31_moves", (*sensor).movesTold},
		{"B31_secret_files", (*sensor).secretFiles}, {"B31_B94_answers", (*sensor).answers},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(s, t) })
	}
}

// records: a clean container's connects are told one by one; they all go on, told or not.
func (s *sensor) records(t *testing.T) {
	c, at := s.container(t, "clean", 0), s.world.Mark(t)
	s.floods(t, "lost_record", "egress_events", s.egress.MapStats, func(from int) { c.Run(t, connects(low+from, "x")...) }, func() int { return s.recs })
	if n := s.world.Packets(t, at, low, low+2*count); n < 2*count {
		t.Errorf("%d packets of %d connects arrived", n, 2*count)
	}
}

// questions: who asks while there is no room for the question is refused, and is not left standing.
func (s *sensor) questions(t *testing.T) {
	s.policy(t, asking)
	c, at, denied := s.container(t, "tainted", taint.Secret), s.world.Mark(t), s.counter(t, "denied_connect")
	s.floods(t, "lost_question", "hold_reqs", s.egress.MapStats, func(from int) { c.Run(t, connects(low+from, "question.text")...) }, func() int { return len(s.asks) })
	if n := s.counter(t, "denied_connect") - denied; n != 2*count {
		t.Errorf("%d of %d connects were denied", n, 2*count)
	}
	lost, to := 0, s.world.Raw(t)
	var r rig.Result
	s.unread(func() {
		s.fills(t, c, low+2*count)
		lost = s.counter(t, "lost_question")
		s.policy(t, "hold: true\n")
		r = c.Run(t, to.Egress("tcp")...)
	})
	if r.Exit == 0 || r.Exit >= 128 || !strings.Contains(r.String(), "not permitted") {
		t.Errorf("a command that would have been held: %s", r)
	}
	if n := s.counter(t, "lost_question"); n != lost+1 {
		t.Errorf("%d questions lost by one command", n-lost)
	}
	to.Nothing(t)
	if n := s.world.Packets(t, at, low, low+4*count); n != 0 || s.world.Got("question.text") {
		t.Errorf("%d packets of a tainted container arrived", n)
	}
}

// fills leaves no room for a question while no reader goes on.
func (s *sensor) fills(t *testing.T, c *rig.Session, from int) {
	t.Helper()
	taken := s.got.Load()
	c.Run(t, connects(from, "question.text")...)
	rig.Eventually(t, "the reader has made its last room", func() bool { return s.got.Load() > taken })
	c.Run(t, connects(from+count, "question.text")...)
}

// review: with review: exec a command that there is no room to ask about is killed before it begins; with room again it is held.
func (s *sensor) review(t *testing.T) {
	s.policy(t, asking)
	c := s.container(t, "reviewed", taint.Secret)
	lost, to := 0, s.world.Raw(t)
	var r rig.Result
	s.unread(func() {
		s.fills(t, c, low)
		lost = s.counter(t, "lost_question")
		s.policy(t, "review: exec\n")
		r = c.Run(t, "bash", "-c", "touch "+mark+"; echo "+to.Text+" >/dev/tcp/"+strings.ReplaceAll(to.To, ":", "/"))
	})
	if n := s.counter(t, "lost_question") - lost; r.Exit != 128+9 || n != 1 {
		t.Errorf("a command that nobody was asked about: want it killed and counted once, got %d lost and %s", n, r)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("it began")
	}
	to.Nothing(t)
	rig.Eventually(t, "there is room again", func() bool { return empty(t, "hold_reqs", s.egress.MapStats) })
	p := c.Start(t, "touch", mark)
	var a netegress.Ask
	rig.Eventually(t, "it is asked about", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.IndexFunc(s.asks, func(a netegress.Ask) bool { return a.Exec })
		if i >= 0 {
			a = s.asks[i]
		}
		return i >= 0
	})
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command began before its verdict")
	}
	check(t, s.egress.Wake(a))
	if r := p.Wait(t); r.Exit != 0 {
		t.Errorf("a command that was let begin: %s", r)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
}

// movesTold: each cgroup that is made in a container is told.
func (s *sensor) movesTold(t *testing.T) {
	dir, before := root+parent+"/made", s.seen(func() int { return s.moves })
	check(t, os.Mkdir(dir, 0o755))
	rig.Eventually(t, "the container is told", func() bool { return s.seen(func() int { return s.moves }) == before+1 })
	s.floods(t, "lost_move", "cgroup_events", s.state.MapStats, func(from int) {
		for i := range count {
			check(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(from+i)), 0o755))
		}
	}, func() int { return s.moves })
}

// secretFiles: each container's first secret file is told; all of them are tainted, told or not (G2).
func (s *sensor) secretFiles(t *testing.T) {
	s.floods(t, "lost_secret", "secret_opens", s.files.MapStats, func(from int) {
		rig.Must(t, fmt.Sprintf("for i in {%d..%d}; do mkdir %[3]s/$i; (echo 0 >%[3]s/$i/cgroup.procs; read x <%[4]s); done; true", from, from+count-1, root+parent, secret))
	}, func() int { return len(s.taken) })
	tainted, err := s.state.Unknown()
	check(t, err)
	if len(tainted) != 2*count {
		t.Errorf("%d of %d are tainted", len(tainted), 2*count)
	}
}

// answers: the grant of a socket that tainted its container comes into the books, told or not (B94).
func (s *sensor) answers(t *testing.T) {
	s.policy(t, "taint:\n  trusted_networks: [192.0.2.0/24]\n")
	full, c, to, lost := s.container(t, "full", 0), s.container(t, "answered", 0), s.world.Place(), s.counter(t, "lost_record")
	s.unread(func() {
		full.Run(t, "bash", "-c", "for p in {1..60}; do : </dev/tcp/127.0.0.1/$p; done 2>/dev/null; true")
		if r := c.Run(t, to.Egress("udp-sendto")...); r.Exit != 0 {
			t.Errorf("the first datagram: %s", r)
		}
	})
	if s.counter(t, "lost_record") == lost {
		t.Error("no record was lost")
	}
	rig.Eventually(t, "its grant is in the books", func() bool {
		return slices.ContainsFunc(s.egress.Grants(), func(g netegress.Grant) bool {
			return len(g.To) == 1 && int(g.To[0].Port) == to.Port && g.Bytes > 0
		})
	})
}
