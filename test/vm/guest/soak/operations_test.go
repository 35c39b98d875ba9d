//go:build vmguest

package soak

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/taint"
	"weir/test/model"
	"weir/test/vm/guest/rig"
)

// operations are all that can happen, each with how often; do says false where it cannot happen now.
var operations = []struct {
	name  string
	often int
	do    func(*soak) bool
}{
	{"try", 40, (*soak).try},
	{"twin", 4, (*soak).twin},
	{"answer", 34, (*soak).answer},
	{"late", 4, (*soak).late},
	{"retry", 8, (*soak).retry},
	{"killed", 5, (*soak).killed},
	{"taint", 9, (*soak).taint},
	{"read", 3, (*soak).readSecret},
	{"untaint", 9, (*soak).untaint},
	{"open", 5, (*soak).openOne},
	{"go on", 5, (*soak).goOnOne},
	{"mode", 5, (*soak).mode},
	{"revoke", 3, (*soak).revoke},
	{"replace", 4, (*soak).replace},
	{"made again", 3, (*soak).madeAgain},
	{"share", 2, (*soak).share},
	{"attempt", 8, (*soak).known},
	{"reload", 3, (*soak).reload},
	{"restart", 5, (*soak).restart},
	{"disk", 2, (*soak).fullDisk},
	{"flood", 2, (*soak).flood},
}

// step does one of them.
func (s *soak) step() {
	s.t.Helper()
	s.at++
	switch {
	case s.w.Mode != model.Enforce && s.rnd.IntN(3) == 0: // most happens there
		s.setMode(model.Enforce)
	default:
		all := 0
		for _, o := range operations {
			all += o.often
		}
		for done := false; !done; {
			n := s.rnd.IntN(all)
			for _, o := range operations {
				if n -= o.often; n < 0 {
					if done = o.do(s); done {
						s.counts[o.name]++
					}
					break
				}
			}
		}
	}
	if full := slices.IndexFunc(s.boxes, func(b *box) bool { return b.asked > most }); full >= 0 {
		s.did("%s has asked enough, and is replaced", s.boxes[full].Name)
		s.renew(s.boxes[full])
	}
	s.compare()
	s.read()
	if s.t.Failed() {
		s.fatal("an error was told")
	}
}

func (s *soak) enforced() bool { return s.w.Mode == model.Enforce }

// try has a container send something, to a place of its own or to one that others know.
func (s *soak) try() bool {
	b, words := pick(s.rnd, s.boxes), pick(s.rnd, []string{"tcp", "tcp", "udp-sendto"})
	p, inShell := pick(s.rnd, s.pool), s.rnd.IntN(2) == 0 && !b.shell.busy
	if s.rnd.IntN(2) == 0 {
		p = s.place()
	}
	s.attempt(b, inShell, words, p, s.next())
	return true
}

// twin has another process run what waits already: one answer is for one of them.
func (s *soak) twin() bool {
	if len(s.flying) == 0 {
		return false
	}
	tr := pick(s.rnd, s.flying)
	if tr.shell {
		return false
	}
	s.again(tr)
	return true
}

// retry runs again what gave up.
func (s *soak) retry() bool {
	if len(s.gone) == 0 {
		return false
	}
	tr := pick(s.rnd, s.gone)
	if tr.shell && tr.box.shell.busy {
		return false
	}
	s.gone = slices.DeleteFunc(s.gone, func(o *try) bool { return o == tr })
	s.again(tr)
	return true
}

func (s *soak) again(tr *try) {
	s.t.Helper()
	s.attempt(tr.box, tr.shell, map[bool]string{true: "udp-sendto", false: "tcp"}[strings.HasSuffix(tr.To, "/udp")], tr.place, tr.text)
}

// answer answers a question that waits.
func (s *soak) answer() bool {
	all := s.w.Pending()
	if len(all) == 0 {
		return false
	}
	q := pick(s.rnd, all)
	tr, m := s.first[q], model.Reply{Allow: s.rnd.IntN(4) > 0}
	if m.Allow && tr.shell && !tr.box.cgroup && tr.Process.Above[0] == tr.box.shell.process && s.rnd.IntN(2) == 0 {
		m.Scope = 2
	}
	if m.Allow && s.rnd.IntN(3) == 0 {
		m.Session, m.Bytes, m.Keeps = s.rnd.IntN(2) == 0, 1<<40, s.rnd.IntN(4) == 0
		if m.Who = pick(s.rnd, []model.Who{model.ForProcess, model.ForProgram, model.ForContainer}); m.Who != model.ForProcess {
			m.Scope = 0
		}
		if !m.Session {
			m.For = 20 * time.Hour
		}
		s.lasts(q, m)
	} else {
		s.answerOnce(q, m)
	}
	if s.rnd.IntN(4) == 0 && !slices.Contains(s.w.Pending(), q) {
		s.twice(s.ids[q], m.Allow)
	}
	return true
}

// answerOnce answers, as people do without --for.
func (s *soak) answerOnce(q *model.Question, m model.Reply) {
	s.t.Helper()
	s.did("%s, about %s: allow %t, scope %d", s.ids[q], s.first[q].text, m.Allow, m.Scope)
	if _, err := client().Answer(context.Background(), s.ids[q], gate.Reply{Allow: m.Allow, Scope: m.Scope, By: "test"}); err != nil {
		s.fatal("answer: %v", err)
	}
	if !s.w.Answer(q, m) {
		s.fatal("the model takes no answer to %s", s.ids[q])
	}
	s.over = append(s.over, s.ids[q])
	s.settle()
}

// lasts gives an approval that goes on.
func (s *soak) lasts(q *model.Question, m model.Reply) {
	s.t.Helper()
	args := []string{"approve", s.ids[q], "--yes", "--for", "session", "--who", string(m.Who), "--bytes", strconv.FormatInt(m.Bytes, 10)}
	if !m.Session {
		args[4] = "20h"
	}
	if m.Keeps {
		args = append(args, "--despite-taint")
	}
	if m.Scope > 0 {
		args = append(args, "--scope", strconv.Itoa(m.Scope))
	}
	s.did("about %s: weir %s", s.first[q].text, strings.Join(args, " "))
	_, exit := s.sensor.Weir(s.t, args...)
	had := len(s.w.Lasting)
	counts := s.w.Answer(q, m)
	if counts != (exit == 0) {
		s.fatal("weir approve: exit %d; in the model it counts: %t", exit, counts)
	}
	if counts {
		s.over, s.lasting[s.w.Lasting[had]] = append(s.over, s.ids[q]), s.ids[q]
		s.settle()
	}
}

// late answers what is over.
func (s *soak) late() bool {
	if len(s.over) == 0 {
		return false
	}
	s.twice(pick(s.rnd, s.over), s.rnd.IntN(2) == 0)
	return true
}

func (s *soak) twice(id string, allow bool) {
	s.t.Helper()
	s.did("%s again: allow %t", id, allow)
	if _, err := client().Answer(context.Background(), id, gate.Reply{Allow: allow, By: "test"}); err == nil {
		s.fatal("an answer to %s, which is over, was taken", id)
	}
}

// killed kills a command that waits.
func (s *soak) killed() bool {
	if len(s.flying) == 0 {
		return false
	}
	tr := pick(s.rnd, s.flying)
	s.did("who sends %s is killed", tr.text)
	s.kill(tr)
	return true
}

var bits = []model.Bits{model.Corruption, model.Secret, model.Corruption | model.Secret}

func (s *soak) taint() bool {
	b, more := pick(s.rnd, s.boxes), pick(s.rnd, bits)
	s.did("%s is tainted %v", b.Name, names(more))
	s.sensor.Taint(s.t, b.Name, names(more)...)
	s.tainted(b, more)
	return true
}

// tainted tells the model.
func (s *soak) tainted(b *box, more model.Bits) {
	s.w.Taint(b.Container, more, true)
	s.grants = slices.DeleteFunc(s.grants, func(g grant) bool { return g.box == b && b.Bits&^g.taint != 0 })
	for _, o := range s.opened {
		o.cut = o.cut || o.box == b
	}
	s.settle()
}

// readSecret has a container read a secret file.
func (s *soak) readSecret() bool {
	b := pick(s.rnd, s.boxes)
	s.did("%s reads a secret", b.Name)
	s.run(b, "bash", "-c", "read x <"+secret, s.next())
	s.tainted(b, model.Secret)
	return true
}

// run runs a command whose last word no other has.
func (s *soak) run(b *box, argv ...string) {
	s.t.Helper()
	s.execs[argv[len(argv)-1]] = true
	if r := b.session.Run(s.t, argv...); r.Exit != 0 {
		s.fatal("%v: %s", argv, r)
	}
}

func (s *soak) untaint() bool {
	b, less := pick(s.rnd, s.boxes), pick(s.rnd, bits)
	if b.Bits&less == 0 {
		return false
	}
	less &= b.Bits
	s.did("%s is cleared of %v", b.Name, names(less))
	s.sensor.Untaint(s.t, b.Name, names(less)...)
	s.w.Untaint(b.Container, less)
	for i := range s.grants {
		if s.grants[i].box == b {
			s.grants[i].taint &^= less
		}
	}
	s.settled(anew)
	return true
}

// opened is a connection that was made while its container was clean.
type opened struct {
	box  *box
	text string
	proc *rig.Proc
	cut  bool
}

func (s *soak) openOne() bool {
	b := pick(s.rnd, s.boxes)
	if b.Bits != 0 || !s.enforced() {
		return false
	}
	p := s.place()
	p.Text = s.next()
	s.execs[p.Text] = true
	s.did("%s connects to %s, for %s", b.Name, p.To, p.Text)
	o := &opened{box: b, text: p.Text, proc: b.session.Start(s.t, p.Egress("tcp -wait connect")...)}
	if o.proc.WaitLine("opened", rig.Late) == "" {
		s.fatal("a clean container does not connect: %s", o.proc.Wait(s.t))
	}
	s.ports[p.Port] = true
	s.opened = append(s.opened, o)
	return true
}

func (s *soak) goOnOne() bool {
	if len(s.opened) == 0 {
		return false
	}
	s.goOn(pick(s.rnd, s.opened))
	return true
}

// goOn has it send its text.
func (s *soak) goOn(o *opened) {
	s.t.Helper()
	s.did("%s sends %s on what it has open, cut %t", o.box.Name, o.text, o.cut)
	s.opened = slices.DeleteFunc(s.opened, func(other *opened) bool { return other == o })
	s.may[o.text] = !o.cut
	o.proc.Input(s.t, "\n")
	r := o.proc.Wait(s.t)
	if (r.Exit == 0) == o.cut || !o.cut && !s.world.WaitGot(o.text, rig.Late) {
		s.fatal("%s, cut %t: %s", o.text, o.cut, r)
	}
}

func (s *soak) mode() bool {
	s.setMode(pick(s.rnd, []model.Mode{model.Seal, model.Observe, model.Enforce}))
	return true
}

func (s *soak) setMode(m model.Mode) {
	s.t.Helper()
	if m == s.w.Mode {
		return
	}
	for len(s.opened) > 0 {
		s.goOn(s.opened[0])
	}
	s.did("mode %s", m)
	if m == model.Observe { // in which all gets out
		s.stopProbe()
	}
	if err := client().Mode(context.Background(), string(m), "test", "soak"); err != nil {
		s.fatal("mode %s: %v", m, err)
	}
	s.w.SetMode(m)
	s.settled(anew)
	if m != model.Observe && s.probe == nil {
		s.probe = s.sensor.Probe(s.t, s.world)
	}
}

func (s *soak) stopProbe() {
	s.t.Helper()
	s.probe.Steady(s.t)
	s.probe.Stop(s.t)
	s.probe = nil
	s.noMore("probe")
}

// noMore waits until a session is no more.
func (s *soak) noMore(name string) {
	s.t.Helper()
	rig.Eventually(s.t, name+" is no more", func() bool {
		return !slices.ContainsFunc(s.sensor.Containers(s.t), func(c control.Container) bool { return c.Name == name })
	})
}

func (s *soak) revoke() bool {
	if len(s.w.Lasting) == 0 {
		return false
	}
	l := pick(s.rnd, s.w.Lasting)
	s.did("revoke %s", s.lasting[l])
	if _, err := client().Revoke(context.Background(), s.lasting[l], "test", "soak"); err != nil {
		s.fatal("revoke: %v", err)
	}
	s.w.Revoke(l)
	tr := s.first[l.Question()]
	s.grants = slices.DeleteFunc(s.grants, func(g grant) bool { return g.box == tr.box && g.to == tr.To })
	return true
}

// replace ends a container, and makes another one.
func (s *soak) replace() bool {
	b := pick(s.rnd, s.boxes)
	s.did("%s ends, and another one is made", b.Name)
	s.renew(b)
	return true
}

func (s *soak) renew(b *box) {
	s.t.Helper()
	s.end(b)
	s.make(b.cgroup)
}

// madeAgain removes a cgroup and makes it again: its taint stays (G1).
func (s *soak) madeAgain() bool {
	b := pick(s.rnd, s.boxes)
	if !b.cgroup {
		return false
	}
	s.did("%s is made again", b.Name)
	s.empty(b)
	s.w.Remake(b.Container)
	s.start(b)
	return true
}

// share has two sessions work in a directory: who reads what a tainted one wrote is tainted.
func (s *soak) share() bool {
	if !s.enforced() {
		return false
	}
	more, dir := pick(s.rnd, bits), fmt.Sprintf("/srv/soak/%d", s.at)
	rig.Must(s.t, "mkdir -p "+dir)
	if err := os.Chdir(dir); err != nil {
		s.t.Fatal(err)
	}
	from, to := s.make(false), s.make(false)
	if err := os.Chdir("/"); err != nil {
		s.t.Fatal(err)
	}
	s.did("%s, tainted %v, writes in %s, and %s reads", from.Name, names(more), dir, to.Name)
	s.sensor.Taint(s.t, from.Name, names(more)...)
	s.tainted(from, more)
	s.run(from, "bash", "-c", "echo $0 >"+dir+"/f", s.next())
	s.compare()
	s.run(to, "bash", "-c", "read x <"+dir+"/f", s.next())
	s.tainted(to, more)
	s.compare()
	s.attempt(to, false, "udp-sendto", s.place(), s.next())
	s.compare()
	s.end(from)
	s.end(to)
	return true
}

// known makes one of the attempts of the catalogue, in a session that is refused at once.
func (s *soak) known() bool {
	if s.w.Mode == model.Observe {
		return false
	}
	a := pick(s.rnd, rig.Attempts())
	if s.w.Mode == model.Seal && (a.Opens || a.Clean) { // it cannot open anything
		return false
	}
	kill := a.Opens && !s.calm && s.rnd.IntN(2) == 0
	s.did("attempt %s, the daemon is killed meanwhile: %t", a.Title(), kill)
	file, args := "/run/soak-cage.yaml", []string{"--policy", "/run/soak-cage.yaml"}
	if err := os.WriteFile(file, []byte("version: 1\nhold: false\napprover: none\ncop:\n  reviewer: none\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if !a.Opens {
		args = append(args, "--taint", "corruption")
	}
	s.arrivals()
	cage := s.sensor.Guard(s.t, "cage", args...)
	out := a.Try(s.t, s.world, cage, func() {
		if a.Opens {
			s.sensor.Taint(s.t, "cage", "corruption")
		}
		if kill {
			s.sensor.Kill(s.t)
		}
	})
	if kill {
		s.sensor.Restart(s.t)
		s.restarted()
	}
	if out.Exit == 0 && !a.Quiet {
		s.fatal("%s: no step was refused: %s", a.Title(), out.Result)
	}
	a.Stopped(s.t, out)
	s.sent = append(s.sent, out.Text)
	cage.Close()
	s.noMore("cage")
	s.sweep()
	all, now := s.world.Since(s.t, s.mark) // what the attempt may send, and what it is made of: Stopped has looked at it
	for _, x := range all {
		if text := word(x.Text); text != "" && !s.may[text] {
			s.fatal("arrived, and nothing explains it: %+v", x)
		}
	}
	s.mark, s.arrived = now, s.arrived+len(all)
	return true
}

// reload loads the policy anew, or one that cannot be read: then the one before stays.
func (s *soak) reload() bool {
	good := s.rnd.IntN(2) == 0
	s.did("the policy is loaded, good %t", good)
	if !good {
		s.sensor.Configure(s.t, "guard: [\n")
		if err := client().Reload(context.Background()); err == nil {
			s.fatal("a policy that cannot be read was loaded")
		}
	}
	s.sensor.Configure(s.t, policy)
	rig.Eventually(s.t, "the policy is loaded", func() bool { // a busy machine may not look for secret files in time
		return client().Reload(context.Background()) == nil
	})
	return true
}

// restart ends the daemon in one of the ways that there are, has a container try something meanwhile, and starts it again.
func (s *soak) restart() bool {
	if s.calm {
		return false
	}
	how := pick(s.rnd, []string{"stopped", "killed", "both killed", "out of memory"})
	upgrade, b, reads := s.rnd.IntN(3) == 0, pick(s.rnd, s.boxes), s.rnd.IntN(3) == 0
	s.did("the daemon is %s; another build is next: %t", how, upgrade)
	switch how {
	case "stopped":
		s.sensor.Stop(s.t)
	case "killed":
		s.sensor.Kill(s.t)
	case "both killed":
		s.sensor.KillBoth(s.t)
	default:
		s.outOfMemory()
	}
	var asks *try
	if s.enforced() {
		asks = s.meanwhile(b)
	}
	if reads {
		s.did("%s reads a secret meanwhile", b.Name)
		s.run(b, "bash", "-c", "read x <"+secret, s.next())
		s.w.Taint(b.Container, model.Secret, false)
		s.grants = slices.DeleteFunc(s.grants, func(g grant) bool { return g.box == b && b.Bits&^g.taint != 0 })
	}
	if upgrade {
		s.sensor.Program = map[string]string{"": "weir-next"}[s.sensor.Program]
	}
	s.sensor.Restart(s.t)
	s.restarted()
	if reads {
		for _, o := range s.opened {
			o.cut = o.cut || o.box == b
		}
	}
	if asks != nil {
		s.waits(asks)
	}
	return true
}

// meanwhile has a container try something while no daemon runs. A clean one gets out; another one is refused, and asks the next daemon.
func (s *soak) meanwhile(b *box) (asks *try) {
	s.t.Helper()
	const stale = 3 * time.Second // until then a call would be held
	rig.Eventually(s.t, "the last heartbeat is old", func() bool {
		return time.Duration(taint.Now()-rig.Heartbeat(s.t)) > stale+time.Second
	})
	tr := s.prepare(b, false, "tcp", s.place(), s.next())
	s.launch(tr)
	if tr.Held = false; b.Bits == 0 {
		tr.Verdict.Reason = "untainted"
		s.let(tr)
		return nil
	}
	s.decide(tr)
	s.refused(tr)
	s.w.Leave(tr.Ask)
	s.gone = append(s.gone, tr)
	return tr
}

// restarted tells the model.
func (s *soak) restarted() {
	s.t.Helper()
	s.w.Restart(false)
	s.settled(stopped)
}

// outOfMemory has the kernel kill the daemon for its memory.
func (s *soak) outOfMemory() {
	s.t.Helper()
	const small = root + "/soaked" // which it is in
	killed := func() string { return rig.Must(s.t, "grep ^oom_kill "+small+"/memory.events") }
	before := killed()
	for limit := s.current(small); killed() == before; limit -= 512 << 10 {
		rig.Must(s.t, "echo "+strconv.Itoa(max(limit, 4096))+" >"+small+"/memory.max")
	}
	if err := s.sensor.Died(s.t); err == nil {
		s.fatal("weir run ended without an error")
	}
	rig.Must(s.t, "echo max >"+small+"/memory.max")
}

// current is how much memory a cgroup has.
func (s *soak) current(dir string) (n int) {
	s.t.Helper()
	if _, err := fmt.Sscan(rig.Must(s.t, "cat "+dir+"/memory.current"), &n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// fullDisk: what cannot be written is not allowed, and taint counts all the same.
func (s *soak) fullDisk() bool {
	if !s.enforced() || s.calm {
		return false
	}
	b := pick(s.rnd, s.boxes)
	s.did("the disk is full; %s is tainted, and sends", b.Name)
	s.accounted()
	s.disk.Fill(s.t, s.sensor, func() { s.run(b, "true", s.next()) })
	_, _ = client().Taint(context.Background(), b.Name, names(model.Corruption), "test", "") // it says so where that finds no room in the log
	s.tainted(b, model.Corruption)
	p := s.place()
	p.Text = s.next()
	s.execs[p.Text] = true
	if r := b.session.Run(s.t, p.Egress("tcp")...); r.Exit != 3 {
		s.fatal("over a full disk: %s", r)
	}
	for range 5 {
		s.run(b, "true", s.next())
	}
	s.disk.Free(s.t)
	rig.Eventually(s.t, "there is room for events", func() bool {
		text := s.next()
		s.run(b, "true", text)
		time.Sleep(100 * time.Millisecond)
		data, err := os.ReadFile("/var/log/weir/rig-events.jsonl") // in which a line may be torn
		return err == nil && strings.Contains(string(data), text)
	})
	rig.Eventually(s.t, "the taint is stored", func() bool { return rig.StoredTaint(s.t, b.Name) })
	s.sensor.Kill(s.t)
	rig.TidyLog(s.t)
	s.accounted()
	s.sensor.Restart(s.t)
	s.restarted()
	return true
}

// flood has more executed than the daemon, which stands still, can be told of: what it misses is counted.
func (s *soak) flood() bool {
	if !s.enforced() || len(s.flying) > 0 { // who waits for it is refused when it stands still
		return false
	}
	const execs = 650
	b := pick(s.rnd, s.boxes)
	s.did("%s executes %d commands while the daemon stands still", b.Name, execs)
	s.accounted()
	before := len(s.sensor.Events(s.t))
	s.sensor.Signal(s.t, syscall.SIGSTOP)
	r, ended := b.session.Start(s.t, "execs", "many", strconv.Itoa(execs), "/bin/busybox", strings.Repeat("x", 15000)).WaitFor(5 * time.Minute)
	s.sensor.Signal(s.t, syscall.SIGCONT)
	if !ended || r.Exit != 0 {
		s.fatal("flood: %s", r)
	}
	var told, lost uint64
	rig.Eventually(s.t, "all is told or counted", func() bool {
		told, lost = 0, 0
		for _, e := range s.sensor.Events(s.t)[before:] {
			switch {
			case e.Kind == event.Exec && len(e.Process.Argv) == 3 && strings.HasPrefix(e.Process.Argv[2], "xxxx"):
				told++
			case e.Kind == event.Lost && e.Loss.What == string(event.Exec):
				lost += e.Loss.Count
			}
		}
		return told+lost >= execs
	})
	if told+lost != execs {
		s.fatal("of %d executions %d were told and %d lost", execs, told, lost)
	}
	s.read()
	s.flooded, s.floods = s.flooded+lost, s.floods+execs
	return true
}
