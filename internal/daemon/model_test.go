package daemon

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"

	"weir/internal/classify"
	"weir/internal/cop"
	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/taint"
	"weir/test/model"
)

var (
	modelSeed  = flag.Uint64("model.seed", 1, "the first sequence of TestModel; 0: any")
	modelRuns  = flag.Int("model.runs", 10, "how many sequences TestModel tries")
	modelSteps = flag.Int("model.steps", 300, "how many steps each has")
)

// Random sequences of all that can happen to taint, questions and approvals end in the daemon's books as they do in the model of the rules
// (G1, G4, G7, G8, G9, G15, G16, G24, G25, G26, F01, F07). A sequence is repeated by -model.seed N -model.runs 1.
func TestModel(t *testing.T) {
	first := *modelSeed
	if first == 0 {
		first = rand.Uint64N(1 << 32)
	}
	t.Logf("seeds %d to %d", first, first+uint64(*modelRuns)-1)
	tried := map[string]int{}
	for seed := first; seed < first+uint64(*modelRuns); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newCompared(t, seed, tried).run(*modelSteps) })
		})
		if t.Failed() {
			return
		}
	}
	for _, reason := range []string{"approved", "denied", "timeout", "used_once", "standing", "recognised", "not_flagged", "flagged", "sealed", "cancelled", "no_approver", "log_failed", "store_failed", "untainted", "observe", "local", "sealed_run"} {
		if tried[reason] == 0 && *modelRuns**modelSteps >= 50000 {
			t.Errorf("no sequence came to %s: %v", reason, tried)
		}
	}
}

// compared is a daemon without a kernel, beside a model of it.
type compared struct {
	t     *testing.T
	rnd   *rand.Rand
	seed  uint64
	done  []string // what was done, for people
	tried map[string]int

	path    string
	began   time.Time
	boot    string
	kernel  *taint.Memory
	db      *bbolt.DB
	noLog   bool
	hear    []taint.Change // what programs have set, and is on its way to the daemon
	cgroups uint64
	pids    int
	about   string // the command that is asked about most
	dead    map[int]bool

	*daemon
	w         *model.World
	boxes     []*box
	all       []*modelled
	asks      []*asked
	questions map[*model.Question]string
	lasting   map[*model.Lasting]string
}

// box is a container.
type box struct {
	*model.Container
	id        string
	cgroup    uint64
	processes []*modelled
	agent     *modelled
}

// modelled is a process, as both know it.
type modelled struct {
	*model.Process
	event event.Process
	above []event.Member
	run   []string
	names string
}

// asked is a Decide, on its way or over.
type asked struct {
	*model.Ask
	cancel context.CancelFunc
	done   chan gate.Verdict
}

// Write implements event.Sink.
func (c *compared) Write(event.Event) error {
	if c.noLog {
		return errors.New("no space left on device")
	}
	return nil
}

// Review implements gate.Reviewer.
func (c *compared) Review(context.Context, cop.Case) (cop.Opinion, error) {
	switch c.w.Opinion {
	case model.Passed:
		return cop.Opinion{Reason: "harmless"}, nil
	case model.Flagged:
		return cop.Opinion{Flagged: true, Reason: "sends data"}, nil
	}
	return cop.Opinion{}, errors.New("it fails")
}

const modelParent = "/weir-model"

func newCompared(t *testing.T, seed uint64, tried map[string]int) *compared {
	c := &compared{
		t: t, rnd: rand.New(rand.NewPCG(seed, 26)), seed: seed, tried: tried, path: filepath.Join(t.TempDir(), "state.db"), began: time.Now().Add(-time.Hour), boot: "boot",
		kernel: taint.NewMemory(map[string]uint64{modelParent: 1}), cgroups: 100, pids: 100,
		dead: map[int]bool{}, questions: map[*model.Question]string{}, lasting: map[*model.Lasting]string{},
		w: &model.World{Mode: model.Enforce, Approver: true, AskFor: 150 * time.Second, ClaimFor: 100 * time.Second, Most: 32, Grant: 1000},
	}
	for _, id := range []string{modelParent + "/one", "/weir-alone/two"} {
		b := &box{Container: &model.Container{Name: filepath.Base(id)}, id: id}
		c.boxes, c.w.Containers = append(c.boxes, b), append(c.w.Containers, b.Container)
	}
	c.start()
	for _, b := range c.boxes {
		c.remake(b)
	}
	return c
}

// start makes a daemon of what is there.
func (c *compared) start() {
	db, err := bbolt.Open(c.path, 0o600, &bbolt.Options{NoSync: true, Timeout: time.Second})
	c.must(err)
	p := policy.Default()
	p.ApprovalTimeout, p.ApprovalTTL = int(c.w.AskFor.Seconds()), int(c.w.ClaimFor.Seconds())
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	d := &daemon{
		opts: Options{Logger: logger}, policies: newActivePolicy(p), egress: &netegress.Egress{}, log: newEventLog(c), drawn: map[uint64]drawn{}, agents: &bridgeHost{},
	}
	d.memory, err = openMemory(db)
	c.must(err)
	d.state, err = c.kernel.Open(db, logger)
	c.must(err)
	d.processes = &processCache{Books: d.state}
	d.gate, err = gate.Open(gate.Options{
		DB: db, Log: d.log, Logger: logger, Reviewer: c, Approver: c.w.Approver, AskFor: c.w.AskFor, ClaimFor: c.w.ClaimFor, MaxPending: c.w.Most,
		Broken: d.breaks,
		Mode:   func(id string) string { return string(d.policies.ModeOf(id)) },
		Boot:   func() (string, time.Duration) { return c.boot, time.Since(c.began) },
	})
	c.must(err)
	c.must(d.recall())
	d.gate.ModeChanged()
	c.db, c.daemon = db, d
}

func (c *compared) must(err error) {
	c.t.Helper()
	if err != nil {
		c.fatal("%v", err)
	}
}

func (c *compared) fatal(format string, args ...any) {
	c.t.Helper()
	has := fmt.Sprintf("approvals that go on: %+v", c.gate.Standing())
	for _, b := range c.boxes {
		has += fmt.Sprintf("\n%s: the kernel has %v, the model %v", b.Name, c.kernel.Bits(b.cgroup).Names(), taint.Bits(b.Bits).Names())
	}
	c.t.Fatalf("%s\nseed %d, after these steps:\n%s\n%s", fmt.Sprintf(format, args...), c.seed, strings.Join(c.done[max(len(c.done)-40, 0):], "\n"), has)
}

func (c *compared) did(format string, args ...any) {
	c.done = append(c.done, fmt.Sprintf(format, args...))
}

// remake has a container made, again if it was there: it begins tainted before the daemon knows of it (B33, B45).
func (c *compared) remake(b *box) {
	if b.cgroup != 0 {
		c.must(c.state.Gone(b.id))
	}
	c.cgroups++
	b.cgroup = c.cgroups
	c.kernel.Make(b.id, b.cgroup)
	if missing := taint.Bits(b.Bits) &^ c.kernel.Bits(b.cgroup); missing != 0 && strings.HasPrefix(b.id, modelParent) {
		c.fatal("%s is made again without %v", b.id, missing.Names())
	}
	c.guard(b)
	b.agent = c.process(b, "agent", model.Local, "/usr/bin/agent")
	mk := c.process(b, "make", model.Grey, "/usr/bin/make", "deps")
	sh := c.process(b, "script", model.Grey, "/usr/bin/bash", "fetch.sh")
	sh.descends(mk)
	b.processes = nil
	for _, p := range []struct {
		above []*modelled
		class model.Class
		argv  []string
	}{
		{[]*modelled{sh, mk}, model.Network, []string{"/usr/bin/curl", "https://192.0.2.1"}},
		{[]*modelled{sh, mk}, model.Network, []string{"/usr/bin/curl", "https://192.0.2.1"}},
		{[]*modelled{mk}, model.Network, []string{"/usr/bin/curl", "https://192.0.2.1"}},
		{nil, model.Network, []string{"/usr/bin/curl", "https://192.0.2.2"}},
		{nil, model.Network, []string{"/usr/bin/curl#2", "https://192.0.2.1"}}, // another file under that name
		{[]*modelled{mk}, model.Grey, []string{"/opt/tool", "x"}},
		{[]*modelled{sh, mk}, model.Local, []string{"/usr/bin/cat", "/etc/hosts"}},
	} {
		one := c.process(b, "", p.class, p.argv...)
		one.descends(p.above...)
		if len(p.argv) == 2 {
			one.names = strings.TrimPrefix(p.argv[1], "https://")
		}
		b.processes = append(b.processes, one)
	}
}

func (c *compared) guard(b *box) {
	_, err := c.state.Guard(taint.Container{ID: b.id, Name: b.Name, Cgroup: b.id, CgroupID: b.cgroup}, 0, "test")
	c.must(err)
}

// process is a new one.
func (c *compared) process(b *box, name string, class model.Class, run ...string) *modelled {
	c.pids++
	file, _, _ := strings.Cut(run[0], "#")
	base := filepath.Base(file)
	argv := append([]string{base}, run[1:]...)
	if strings.HasPrefix(file, "/opt/") {
		argv[0] = file
	}
	hash := fnv.New64()
	io.WriteString(hash, strings.Join(argv, "\x00"))
	inode := fnv.New32()
	io.WriteString(inode, run[0])
	p := &modelled{
		Process: &model.Process{Name: fmt.Sprintf("%s %s %d", b.Name, cmp.Or(name, strings.Join(argv, " ")), c.pids), Program: run[0], Command: strings.Join(argv, " "), Class: class},
		event: event.Process{
			PID: c.pids, Start: 1000 + uint64(c.pids), UID: 1000, Comm: base, Argv: argv, ArgvHash: hash.Sum64(),
			Exe: &event.File{Path: file, Device: 8, Inode: uint64(inode.Sum32())},
		},
		run: run,
	}
	c.all = append(c.all, p)
	want := map[model.Class]classify.Class{model.Local: classify.Local, model.Network: classify.Network, model.Grey: classify.Grey}[class]
	if got := classify.Argv(classify.Observed{Argv: argv, File: file}).Class; name == "" && got != want {
		c.fatal("%v is %v", argv, got)
	}
	return p
}

func (p *modelled) descends(above ...*modelled) {
	for _, a := range above {
		p.Above, p.above = append(p.Above, a.Process), append(p.above, a.event.Member())
	}
}

func (c *compared) close() {
	for _, a := range c.asks {
		a.cancel()
	}
	c.gate.Close()
	synctest.Wait()
	c.db.Close()
}

func (c *compared) run(steps int) {
	defer c.close()
	for range steps {
		c.pass(time.Millisecond) // no two questions are of the same moment
		c.step()
		c.compare()
	}
}

func pick[T any](rnd *rand.Rand, all []T) T { return all[rnd.IntN(len(all))] }

var modelBits = []model.Bits{model.Corruption, model.Secret, model.Corruption | model.Secret}

func (c *compared) step() {
	b := pick(c.rnd, c.boxes)
	if c.rnd.IntN(8) == 0 { // most happens there
		switch {
		case c.w.Mode != model.Enforce:
			c.setMode(model.Enforce)
			return
		case !c.w.Approver:
			c.setApprover(true)
			return
		}
	}
	switch n := c.rnd.IntN(200); {
	case n < 80:
		c.ask(b)
	case n < 120:
		c.answer()
	case n < 130:
		c.use()
	case n < 138:
		c.taintOne(b, pick(c.rnd, modelBits))
	case n < 142:
		bits := pick(c.rnd, modelBits)
		c.did("a program taints %s %v", b.Name, taint.Bits(bits).Names())
		c.kernel.Taint(b.cgroup, taint.Bits(bits))
		c.hear = append(c.hear, taint.Change{Container: b.id, Bits: taint.Bits(bits), Source: "file", InKernel: true})
		c.w.Taint(b.Container, bits, false)
	case n < 148:
		c.hears()
	case n < 154:
		c.untaint(b, pick(c.rnd, modelBits))
	case n < 160:
		c.leave()
	case n < 163:
		c.replace(b)
	case n < 166:
		c.did("what is over is looked for")
		c.tend()
		c.w.Tend()
	case n < 176:
		d := time.Duration(c.rnd.IntN(120)+1) * time.Second
		c.did("%v pass", d)
		c.pass(d)
	case n < 180:
		c.setMode(pick(c.rnd, []model.Mode{model.Enforce, model.Enforce, model.Seal, model.Observe}))
	case n < 183:
		c.setApprover(c.rnd.IntN(3) > 0)
	case n < 188:
		c.w.Opinion, c.w.AskFlagged = pick(c.rnd, []model.Opinion{model.Failed, model.Passed, model.Flagged}), c.rnd.IntN(2) == 0
		c.did("the reviewer says %d, people are asked: %t", c.w.Opinion, c.w.AskFlagged)
	case n < 192:
		c.revoke()
	case n < 195:
		c.did("%s is made again", b.Name)
		c.end(func(p *model.Process) bool { return strings.HasPrefix(p.Name, b.Name+" ") })
		c.remake(b)
		c.w.Remake(b.Container)
	case n < 199:
		c.restart(false)
	default:
		c.restart(true)
	}
	synctest.Wait()
}

func (c *compared) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	c.w.Advance(d)
}

// end ends processes.
func (c *compared) end(which func(*model.Process) bool) {
	for _, a := range c.asks {
		if which(a.Process) {
			a.cancel()
			synctest.Wait()
			c.w.Leave(a.Ask)
		}
	}
	for _, p := range c.all {
		if which(p.Process) {
			p.Dead, c.dead[p.event.PID] = true, true
		}
	}
	c.verdicts()
}

// replace ends a process of a container, and has another one run the same.
func (c *compared) replace(b *box) {
	at := c.rnd.IntN(len(b.processes))
	p := b.processes[at]
	c.did("%s ends, and is run again", p.Name)
	c.end(func(o *model.Process) bool { return o == p.Process })
	again := c.process(b, "", p.Class, p.run...)
	again.Above, again.above, again.names = p.Above, p.above, p.names
	b.processes[at] = again
}

func (c *compared) ask(b *box) {
	if c.rnd.IntN(12) == 0 {
		c.about = pick(c.rnd, b.processes).Command
	}
	p := pick(c.rnd, b.processes)
	for range 3 {
		if p.Command != c.about {
			p = pick(c.rnd, b.processes)
		}
	}
	a := &model.Ask{Container: b.Container, Process: p.Process, Held: c.rnd.IntN(4) > 0}
	r := gate.Request{Process: p.event, Mode: string(c.policies.ModeOf(b.id)), AskFlagged: c.w.AskFlagged, GrantSeconds: 60, GrantBytes: c.w.Grant, CopBytes: c.w.Grant, Held: a.Held}
	r.Container = c.processes.Container(b.cgroup, c.kernel.Bits(b.cgroup))
	switch n := c.rnd.IntN(20); {
	case n < 11:
		a.To = pick(c.rnd, []string{"192.0.2.1", "192.0.2.1", "192.0.2.2"})
		r.Destination, r.Above = event.Destination{Address: a.To, Port: 443, Protocol: "tcp"}, p.above
	case n < 15:
		a.Kind, a.Held, r.Ask, r.Held = model.Run, false, gate.Run, false
	case n < 19:
		a.Kind, a.Text, a.Class, a.Names, a.Held = model.Command, p.Command, p.Class, p.names, false
		if a.Class == model.Grey || a.Class == model.Local {
			a.Names = ""
		}
		a.Process, r.Process = b.agent.Process, b.agent.event
		r.Ask, r.Command, r.Held = gate.Command, a.Text, false
	default:
		a.Kind, a.Text, a.Held, a.Process = model.Tool, pick(c.rnd, []string{"call x", "call y"}), false, b.agent.Process
		r.Ask, r.Command, r.Held, r.Process = gate.Tool, a.Text, false, b.agent.event
	}
	if c.rnd.IntN(20) == 0 {
		a.NoLog = true
	}
	if c.rnd.IntN(20) == 0 {
		a.NoDisk = true
	}
	c.did("ask %d of %s (%s) to %s %q, held %t, no log %t, no disk %t", a.Kind, b.Name, a.Process.Name, a.To, a.Text, a.Held, a.NoLog, a.NoDisk)
	ctx, cancel := context.WithCancel(context.Background())
	one := &asked{a, cancel, make(chan gate.Verdict, 1)}
	c.asks = append(c.asks, one)
	decide := c.gate.Decide
	if a.Kind == model.Tool {
		decide = c.gate.Confirm
	}
	c.breaking(a.NoLog, a.NoDisk, func() {
		go func() { one.done <- decide(ctx, r) }()
		synctest.Wait()
	})
	c.w.Decide(a)
}

// breaking does something while the log, or the disk, takes nothing.
func (c *compared) breaking(noLog, noDisk bool, do func()) {
	move := func(from, to string) {
		c.must(c.db.Update(func(tx *bbolt.Tx) error {
			for _, name := range []string{"questions", "approvals"} {
				src, dst := tx.Bucket([]byte(from)), tx.Bucket([]byte(to))
				var err error
				if from == "" {
					err = tx.MoveBucket([]byte(name), nil, dst)
				} else {
					err = tx.MoveBucket([]byte(name), src, nil)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
	if noDisk {
		c.must(c.db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucketIfNotExists([]byte("away")); return err }))
		move("", "away")
		defer move("away", "")
	}
	c.noLog = noLog
	do()
	c.noLog = false
}

func (c *compared) answer() {
	all := c.w.Pending()
	if c.rnd.IntN(6) == 0 {
		all = c.w.Questions // late, or twice
	}
	if len(all) == 0 {
		return
	}
	q := all[len(all)-1-c.rnd.IntN(min(len(all), 8))]
	id := c.questions[q]
	m := model.Reply{Allow: c.rnd.IntN(4) > 0, NoLog: c.rnd.IntN(20) == 0, NoDisk: c.rnd.IntN(20) == 0}
	if c.rnd.IntN(3) == 0 {
		m.Scope = c.rnd.IntN(5)
	}
	r := gate.Reply{By: "alice"}
	if c.rnd.IntN(3) == 0 {
		m.Who = pick(c.rnd, []model.Who{model.ForProcess, model.ForProgram, model.ForContainer})
		if m.Who != model.ForProcess && c.rnd.IntN(8) > 0 {
			m.Scope = 0
		}
		if m.Session = c.rnd.IntN(2) == 0; !m.Session {
			m.For = time.Duration(c.rnd.IntN(600)+1) * time.Second
		}
		m.Keeps, m.Bytes = c.rnd.IntN(3) == 0, int64(c.rnd.IntN(3)*1500)
		r.Who, r.For, r.Keeps, r.Bytes = string(m.Who), m.For.String(), m.Keeps, m.Bytes
		if m.Session {
			r.For = gate.ForSession
		}
	}
	r.Allow, r.Scope = m.Allow, m.Scope
	if listed, err := c.gate.Question(id); err == nil && r.For != "" {
		if shown, err := listed.StandingBy(r); err == nil {
			r.Adds = shown.Adds
		}
	}
	c.did("answer %s: %+v", id, m)
	var err error
	c.breaking(m.NoLog, m.NoDisk, func() {
		_, err = c.Answer(context.Background(), id, r)
		synctest.Wait()
	})
	had := len(c.w.Lasting)
	if counts := c.w.Answer(q, m); counts != (err == nil) {
		c.fatal("answer %s: %v; the model says that it counts: %t", id, err, counts)
	}
	if len(c.w.Lasting) > had {
		c.lasting[c.w.Lasting[had]] = id
	}
}

// use uses an approval, gives one back, or returns what a grant by one that goes on has left.
func (c *compared) use() {
	if n := len(c.w.Lasting); n > 0 && c.rnd.IntN(2) == 0 {
		l, n := pick(c.rnd, c.w.Lasting), int64(c.rnd.IntN(1000))
		c.did("return %d to %s", n, c.lasting[l])
		c.gate.Return(c.lasting[l], n)
		c.w.Return(l, n)
		return
	}
	if len(c.w.Questions) == 0 {
		return
	}
	q := c.w.Questions[len(c.w.Questions)-1-c.rnd.IntN(min(len(c.w.Questions), 10))]
	what, do, want := "use", c.gate.Consume, c.w.Consume
	if c.rnd.IntN(3) == 0 {
		what, do, want = "give back", c.gate.Release, c.w.Release
	}
	c.did("%s %s", what, c.questions[q])
	if err, ok := do(c.questions[q]), want(q); ok != (err == nil) {
		c.fatal("%s %s: %v; the model says %t", what, c.questions[q], err, ok)
	}
}

// taintOne does what daemon.taint does without a kernel.
func (c *compared) taintOne(b *box, bits model.Bits) {
	full := c.rnd.IntN(10) == 0
	c.did("taint %s %v, kernel full: %t", b.Name, taint.Bits(bits).Names(), full)
	c.kernel.Fill(full)
	c.set(taint.Change{Container: b.id, Bits: taint.Bits(bits), Source: "operator", By: "root"}, full)
	c.kernel.Fill(false)
	if !full {
		c.w.Taint(b.Container, bits, true)
	}
}

func (c *compared) set(change taint.Change, fails bool) {
	before, err := c.state.Find(change.Container)
	c.must(err)
	st, err := c.state.Set(change)
	switch {
	case errors.Is(err, taint.ErrKnown):
		return
	case (err != nil) != fails:
		c.fatal("taint: %v", err)
	case err != nil:
		return
	}
	if fresh := change.Bits & st.Own &^ before.Own; fresh != 0 {
		c.must(c.endTainted(st.Cgroup, fresh, 0))
	}
}

// hears has the daemon hear of what programs have set.
func (c *compared) hears() {
	for _, change := range c.hear {
		for _, b := range c.boxes {
			if b.id == change.Container {
				c.did("the daemon hears that %s has %v", b.Name, change.Bits.Names())
				c.set(change, false)
				c.w.Heard(b.Container, model.Bits(change.Bits))
			}
		}
	}
	c.hear = nil
}

// untaint does what daemon.Untaint does without a kernel.
func (c *compared) untaint(b *box, bits model.Bits) {
	full, noLog := c.rnd.IntN(8) == 0, c.rnd.IntN(8) == 0
	c.did("untaint %s %v, kernel full: %t, no log: %t", b.Name, taint.Bits(bits).Names(), full, noLog)
	before, err := c.state.Find(b.id)
	c.must(err)
	all := c.state.List()
	forget := func() {
		for _, bit := range taint.Bits(bits).Names() {
			c.must(c.gate.Cleared([]string{bit}, func(e event.Container) bool { return slices.Contains(loses(all, before, e.Cgroup).Names(), bit) }))
		}
	}
	forget()
	c.kernel.Fill(full)
	c.noLog = noLog
	ec := c.processes.Container(before.CgroupID, before.Taint)
	err = cleared(c.log.Write, ec, event.TaintChange{Cleared: taint.Bits(bits).Names()}, before.Own&taint.Bits(bits), func() error {
		_, err := c.state.Clear(b.id, taint.Bits(bits), "root", "test")
		return err
	})
	c.noLog = false
	c.kernel.Fill(false)
	if (err != nil) != (full || noLog) {
		c.fatal("untaint: %v", err)
	}
	if err != nil {
		c.must(c.state.Save()) // as housekeeping does
		c.w.ForgetTaint(b.Container, bits)
		return
	}
	forget()
	c.w.Untaint(b.Container, bits)
	if c.kernel.Bits(b.cgroup) == 0 {
		c.withdrawn(func(a *asked) bool { return a.Container == b.Container })
		c.gate.EndNeedless(func(id string) bool { return id == b.id })
	}
}

// withdrawn has calls in the kernel judged anew, as daemon.withdraw does.
func (c *compared) withdrawn(which func(*asked) bool) {
	for _, a := range c.asks {
		if a.Kind == model.Connect && which(a) {
			a.cancel()
		}
	}
	synctest.Wait()
}

func (c *compared) leave() {
	if len(c.asks) == 0 {
		return
	}
	a := pick(c.rnd, c.asks)
	c.did("%s gives up", a.Process.Name)
	a.cancel()
	synctest.Wait()
	c.w.Leave(a.Ask)
}

func (c *compared) setMode(m model.Mode) {
	c.did("mode %s", m)
	c.must(c.noteMode(policy.Mode(m), "root", "test", time.Now()))
	c.policies.Say(policy.Mode(m))
	c.withdrawn(func(*asked) bool { return true })
	c.gate.ModeChanged()
	c.w.SetMode(m)
}

func (c *compared) setApprover(is bool) {
	c.did("approver: %t", is)
	c.gate.Configure(c, is, c.w.AskFor, c.w.ClaimFor)
	c.w.SetApprover(is)
}

func (c *compared) revoke() {
	if len(c.lasting) == 0 {
		return
	}
	all := []*model.Lasting{}
	for l := range c.lasting {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *model.Lasting) int { return strings.Compare(c.order(a), c.order(b)) })
	l := pick(c.rnd, all)
	c.did("revoke %s", c.lasting[l])
	_, err := c.Revoke(context.Background(), c.lasting[l], "root", "test")
	if was := c.w.Revoke(l); was != (err == nil) {
		c.fatal("revoke: %v; the model says %t", err, was)
	}
}

// order is the same in each run of a seed, as ids are not.
func (c *compared) order(l *model.Lasting) string {
	return fmt.Sprintf("%06d", slices.Index(c.w.Questions, l.Question()))
}

// restart ends the daemon without a word to it, and starts another one.
func (c *compared) restart(reboot bool) {
	c.did("restart, of the host too: %t", reboot)
	old := c.daemon.gate
	if reboot { // what only the kernel has is lost with it
		c.hears()
		c.must(c.state.Save())
	}
	c.must(c.db.Close())
	if reboot {
		c.kernel, c.boot, c.began, c.hear = taint.NewMemory(map[string]uint64{modelParent: 1}), c.boot+"+", time.Now().Add(-time.Minute), nil
	}
	c.start()
	old.Close() // lets the goroutines of the dead daemon end
	synctest.Wait()
	for _, p := range c.all {
		if reboot {
			p.Dead, c.dead[p.event.PID] = true, true
		}
	}
	for _, b := range c.boxes {
		if reboot {
			b.cgroup = 0
			c.remake(b)
		} else {
			c.guard(b)
		}
	}
	c.tend()
	c.w.Restart(reboot)
}

// tend ends what is over, as housekeeping does.
func (c *compared) tend() {
	c.must(c.endOf(func(pid int, _ uint64) bool { return !c.dead[pid] }, func(e event.Container) bool {
		return slices.ContainsFunc(c.boxes, func(b *box) bool { return b.id == e.ID && b.cgroup == e.CgroupID })
	}))
}

// verdicts takes those that came, and holds them against the model's.
func (c *compared) verdicts() {
	c.t.Helper()
	synctest.Wait()
	left := c.asks[:0]
	for _, a := range c.asks {
		select {
		case v := <-a.done:
			c.verdict(a, v)
		default:
			if !a.Waits() {
				c.fatal("%s waits; the model gives %+v", a.Process.Name, a.Verdict)
			}
			left = append(left, a)
		}
	}
	c.asks = left
}

func (c *compared) verdict(a *asked, v gate.Verdict) {
	c.t.Helper()
	want := a.Verdict
	c.tried[string(v.Reason)]++
	switch {
	case a.Waits():
		c.fatal("%s got %v %s (%s); in the model it waits", a.Process.Name, v.Decision, v.Reason, v.Text)
	case want.Allow != (v.Decision == gate.Allow) || want.Reason != string(v.Reason):
		c.fatal("%s got %v %s (%s); the model gives allow %t, %s", a.Process.Name, v.Decision, v.Reason, v.Text, want.Allow, want.Reason)
	case want.About != nil && v.Question != c.questions[want.About]:
		c.fatal("%s got %s by %s; in the model it is %s", a.Process.Name, v.Reason, v.Question, c.questions[want.About])
	case want.Bytes != 0 && (v.Open == nil || v.Open.Bytes != want.Bytes), want.By != nil && v.Question != c.lasting[want.By]:
		c.fatal("%s got %+v by %s; in the model it is %d bytes by %s", a.Process.Name, v.Open, v.Question, want.Bytes, c.lasting[want.By])
	case (want.Root == nil) != (v.Root == nil) || v.Root != nil && !strings.HasSuffix(want.Root.Name, fmt.Sprintf(" %d", v.Root.PID)):
		c.fatal("%s: %+v is let out; in the model it is %+v", a.Process.Name, v.Root, want.Root)
	}
}

// entry is what both have of a question, or an approval that goes on.
type entry struct {
	ID, State string
	Taint     []string
	Gone      bool
	Left      int64
}

// compare holds all that can be seen of the daemon against the model.
func (c *compared) compare() {
	c.t.Helper()
	c.gate.Pending() // what is over ends
	var got, want []entry
	listed := c.gate.Pending()
	for _, q := range c.w.Pending() { // new ones have no id yet: both are in the order of asking
		if _, known := c.questions[q]; !known && len(want) < len(listed) {
			c.questions[q] = listed[len(want)].ID
		}
		want = append(want, entry{ID: c.questions[q], State: "pending", Taint: taint.Bits(q.Taint).Names(), Gone: q.Gone()})
	}
	c.verdicts()
	for _, q := range listed {
		got = append(got, entry{ID: q.ID, State: q.State, Taint: q.Container.Taint, Gone: q.Gone})
	}
	c.same("questions", want, got)
	want, got = nil, nil
	for _, l := range c.w.Lasting {
		want = append(want, entry{ID: c.lasting[l], Taint: taint.Bits(l.Taint).Names(), Left: l.Left})
	}
	for _, s := range c.gate.Standing() {
		got = append(got, entry{ID: s.ID, Taint: s.Container.Taint, Left: s.Left})
	}
	c.same("approvals that go on", want, got)
	want, got = nil, nil
	for _, q := range c.w.Questions[max(len(c.w.Questions)-10, 0):] {
		asked, err := c.gate.Question(c.questions[q])
		c.must(err)
		want, got = append(want, entry{ID: c.questions[q], State: string(q.State)}), append(got, entry{ID: asked.ID, State: asked.State})
	}
	c.same("ends of questions", want, got)
	for _, b := range c.boxes {
		st, err := c.state.Find(b.id)
		c.must(err)
		if known, inForce := st.Own, c.kernel.Bits(b.cgroup); inForce != taint.Bits(b.Bits) || known&^inForce != 0 || model.Bits(known) != b.Told() {
			c.fatal("%s: the kernel has %v, the daemon knows %v; the model has %v, and %v", b.Name, inForce.Names(), known.Names(), taint.Bits(b.Bits).Names(), taint.Bits(b.Told()).Names())
		}
	}
	if lost, err := c.state.Mend(); err != nil || len(lost) > 0 || len(c.broken.Counts()) > 0 {
		c.fatal("invariants: %v, %v, %v", lost, err, c.broken.Counts())
	}
	if got := c.policies.Mode(); string(got) != string(c.w.Mode) {
		c.fatal("the mode is %s, in the model %s", got, c.w.Mode)
	}
}

func (c *compared) same(what string, want, got []entry) {
	c.t.Helper()
	if d := diff.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		c.fatal("%s (-model +daemon):\n%s", what, d)
	}
}
