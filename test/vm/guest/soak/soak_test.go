//go:build vmguest

// Package soak does random things to a sensor for a time, while commands of all kinds try to get out, and holds all that is seen of it
// against the model of the rules in test/model: each byte that arrives has an approval or a clean container that explains it, and no taint,
// question, answer, approval or event is lost.
package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/linux"
	"weir/internal/taint"
	"weir/test/model"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	root   = "/sys/fs/cgroup"
	parent = "/soak"
	secret = "/srv/soak/secret"
	steps  = 30 // of a round, after which all is quiet, and what is left is counted
	most   = 40 // questions of a container, which may ask 64 in a row
)

// limits that are not reached in an hour
const policy = "guard:\n  parents: [" + parent + "]\napproval_timeout: 3600\napproval_ttl: 3600\ngrant:\n  seconds: 7200\ntaint:\n  secret_files: [" + secret + "]\n"

// maps are those that are empty when nothing is under way.
var maps = []string{"held", "grants", "grant_dests", "claims"}

// TestSoak goes on for the time of WEIR_SOAK. The same seed is the same sequence of operations.
func TestSoak(t *testing.T) {
	length, seed, ok := strings.Cut(os.Getenv("WEIR_SOAK"), ",")
	d, err := time.ParseDuration(length)
	if err != nil || !ok {
		t.Fatalf("WEIR_SOAK=%s: %v: give a time and a seed, such as 10m,0", os.Getenv("WEIR_SOAK"), err)
	}
	var n uint64
	if _, err := fmt.Sscan(seed, &n); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		n = rand.Uint64N(1 << 32)
	}
	t.Logf("seed %d; again: make soak SOAK=%v SEED=%[1]d", n, d)
	s := begin(t, n, d)
	var warm rig.Left
	var began int
	for round, end := 0, time.Now().Add(d); round < 2 || time.Now().Before(end); round++ {
		s.calm = round%2 == 1 // one daemon for a whole round: what it has grows in it, if at all
		s.open()
		for range steps {
			s.step()
		}
		s.quiet()
		left, size := s.sensor.Settle(t, nil, maps...), s.memory()
		t.Logf("round %d, %d steps, %d commands: %+v, %d KiB", round, s.at, s.n, left, size)
		if round == 0 {
			warm, began = left, size
			continue
		}
		if diff := cmp.Diff(loose(warm), loose(left)); diff != "" {
			left = s.sensor.Settle(t, &warm, maps...)
			if diff := cmp.Diff(loose(warm), loose(left)); diff != "" {
				s.fatal("not flat, after the first round - now +\n%s", diff)
			}
		}
		if left.FDs > warm.FDs+8 || left.Goroutines > warm.Goroutines+8 || size > began*3/2+16<<10 {
			s.fatal("not flat: %d descriptors, %d goroutines, %d KiB; after the first round %d, %d, %d KiB", left.FDs, left.Goroutines, size, warm.FDs, warm.Goroutines, began)
		}
	}
	s.breaks()
	s.probe.Stop(t)
	for _, a := range s.sent {
		if s.world.Got(a) {
			t.Errorf("%s arrived late", a)
		}
	}
	t.Logf("seed %d: %d steps, %d commands, %d of which were let out; %d arrivals, all explained; of %d executions %d told and %d lost and counted; done: %v",
		n, s.at, s.n, len(s.may), s.arrived, len(s.execs)+s.floods, len(s.execs)+s.floods-int(s.lost), s.lost, s.counts)
}

// loose is without what may be more or less by a few.
func loose(l rig.Left) rig.Left {
	l.FDs, l.Goroutines = 0, 0
	return l
}

type soak struct {
	t      *testing.T
	rnd    *rand.Rand
	seed   uint64
	began  time.Time
	world  *rig.Outside
	sensor *rig.Sensor
	disk   *rig.Disk
	probe  *rig.Probe // nil while nothing is denied

	w      *model.World
	boxes  []*box
	calm   bool
	at     int // the step
	made   int
	n      int // texts
	done   []string
	counts map[string]int

	flying  []*try // that have no verdict
	gone    []*try // that gave up before they had one
	first   map[*model.Question]*try
	ids     map[*model.Question]string
	taken   map[string]bool // ids that are some question's
	over    []string        // ids of questions that have been answered
	lasting map[*model.Lasting]string
	grants  []grant
	opened  []*opened

	texts   map[string]*try
	may     map[string]bool // texts that may arrive
	ports   map[int]bool    // to which something may go
	sent    []string        // by attempts
	mark    rig.Marks
	arrived int
	execs   map[string]bool
	told    map[string]bool
	events  int
	lost    uint64 // executions that were counted as lost
	flooded uint64 // of floods, which have been accounted for
	floods  int    // what they executed
	pool    []rig.Place
}

// box is a container.
type box struct {
	*model.Container
	session *rig.Session
	cgroup  bool // below the guarded parent, else it is a session of weir guard
	asked   int
	shell   *shell
}

func begin(t *testing.T, seed uint64, d time.Duration) *soak {
	s := &soak{
		t: t, rnd: rand.New(rand.NewPCG(seed, 2)), seed: seed, began: time.Now(), counts: map[string]int{},
		w:     &model.World{Mode: model.Enforce, Approver: true, AskFor: 100 * time.Hour, ClaimFor: 100 * time.Hour, Most: 256, Grant: 64 << 20},
		first: map[*model.Question]*try{}, ids: map[*model.Question]string{}, lasting: map[*model.Lasting]string{},
		texts: map[string]*try{}, may: map[string]bool{}, ports: map[int]bool{}, execs: map[string]bool{}, taken: map[string]bool{}, told: map[string]bool{},
	}
	s.world = rig.NewOutside(t)
	s.disk = rig.NewDisk(t, 48+4*int(d.Minutes()))
	rig.Must(t, "mkdir -p "+root+parent+" "+root+"/soaked /srv/soak && echo key >"+secret)
	t.Cleanup(func() { rig.RemoveCgroup(t, root+parent); rig.RemoveCgroup(t, root+"/soaked") })
	s.sensor = rig.StartSensor(t, policy)
	s.sensor.Cgroup = root + "/soaked" // from the next start on
	rig.Must(t, fmt.Sprintf("echo %d >%s/cgroup.procs", s.sensor.Pid(), s.sensor.Cgroup))
	s.probe = s.sensor.Probe(t, s.world)
	for range 3 {
		s.pool = append(s.pool, s.place())
	}
	s.mark = s.world.Mark(t)
	return s
}

func (s *soak) fatal(format string, args ...any) {
	s.t.Helper()
	var has strings.Builder
	for _, b := range s.boxes {
		fmt.Fprintf(&has, "\n%s: %v", b.Name, names(b.Bits))
	}
	s.t.Fatalf("%s\nseed %d, after these steps:\n%s\nin the model:%s\n%d questions wait, %d approvals go on, mode %s",
		fmt.Sprintf(format, args...), s.seed, strings.Join(s.done[max(len(s.done)-25, 0):], "\n"), has.String(), len(s.w.Pending()), len(s.w.Lasting), s.w.Mode)
}

func (s *soak) did(format string, args ...any) {
	s.done = append(s.done, fmt.Sprintf("%d: ", s.at)+fmt.Sprintf(format, args...))
	s.t.Logf("%v %s", time.Since(s.began).Round(time.Second), s.done[len(s.done)-1])
}

func pick[T any](rnd *rand.Rand, all []T) T { return all[rnd.IntN(len(all))] }

func names(b model.Bits) []string { return taint.Bits(b).Names() }

func client() *control.Client { return control.NewClient("/run/weir") }

// memory is what the daemon has, in KiB.
func (s *soak) memory() (size int) {
	s.t.Helper()
	if _, err := fmt.Sscan(rig.Must(s.t, fmt.Sprintf("awk '/^VmRSS/ {print $2}' /proc/%d/status", s.sensor.Pid())), &size); err != nil {
		s.t.Fatal(err)
	}
	return size
}

// open makes the containers of a round.
func (s *soak) open() {
	for i := range 4 {
		s.make(i%2 == 1)
	}
}

// quiet ends all that a round has begun.
func (s *soak) quiet() {
	s.setMode(model.Enforce)
	for len(s.boxes) > 0 {
		s.end(s.boxes[0])
	}
	s.compare()
	s.sweep()
	s.accounted()
	s.probe.Steady(s.t)
	s.gone, s.grants, s.first, s.ids = nil, nil, map[*model.Question]*try{}, map[*model.Question]string{}
	s.w.Questions, s.w.Containers, s.w.Lasting = nil, nil, nil
	for _, name := range []string{"bytes", "taint", "verdict"} {
		if n := s.sensor.Counter(s.t, "broken_"+name); n != 0 {
			s.fatal("the invariant %s was broken %d times", name, n)
		}
	}
}

// breaks takes a container's taint out of the kernel: the daemon, whose books have it, counts that, and puts it back.
func (s *soak) breaks() {
	s.t.Helper()
	b := s.make(false)
	s.did("the kernel loses the taint of %s", b.Name)
	s.sensor.Taint(s.t, b.Name, "secret")
	s.tainted(b, model.Secret)
	id, err := linux.CgroupID(strings.TrimPrefix(b.session.Cgroup, root))
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/weir/cgroups", nil)
	if err == nil {
		err = m.Delete(id)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	m.Close()
	rig.Eventually(s.t, "it is counted", func() bool { return s.sensor.Counter(s.t, "broken_taint") == 1 })
	s.attempt(b, false, "tcp", s.place(), s.next())
	s.compare()
	s.end(b)
}

// make makes a container.
func (s *soak) make(cgroup bool) *box {
	s.made++
	b := &box{Container: &model.Container{Name: fmt.Sprintf("box%d", s.made)}, cgroup: cgroup}
	if cgroup {
		b.Name = parent + "/" + b.Name
	}
	s.start(b)
	s.boxes, s.w.Containers = append(s.boxes, b), append(s.w.Containers, b.Container)
	return b
}

func (s *soak) start(b *box) {
	s.t.Helper()
	if b.cgroup {
		if err := os.Mkdir(root+b.Name, 0o755); err != nil {
			s.t.Fatal(err)
		}
		b.session = rig.BareIn(s.t, strings.ReplaceAll(b.Name, "/", "-"), root+b.Name)
	} else {
		b.session = s.sensor.Guard(s.t, b.Name)
	}
	b.shell = s.newShell(b)
}

// end ends a container with all that runs in it.
func (s *soak) end(b *box) {
	s.t.Helper()
	s.empty(b)
	s.w.Remake(b.Container)
	s.w.Tend()
	s.boxes = slices.DeleteFunc(s.boxes, func(o *box) bool { return o == b })
	s.w.Containers = slices.DeleteFunc(s.w.Containers, func(o *model.Container) bool { return o == b.Container })
	rig.Eventually(s.t, b.Name+" is no more", func() bool {
		return !slices.ContainsFunc(s.sensor.Containers(s.t), func(c control.Container) bool { return c.Live && (c.Name == b.Name || c.ID == b.Name) })
	})
}

// empty ends all that runs in a container, which is gone then, with what it asks.
func (s *soak) empty(b *box) {
	s.t.Helper()
	for _, o := range slices.Clone(s.opened) {
		if o.box == b {
			s.goOn(o)
		}
	}
	for _, tr := range slices.Clone(s.flying) {
		if tr.box == b {
			s.kill(tr)
		}
	}
	for _, q := range s.w.Pending() {
		if s.first[q].box == b {
			s.answerOnce(q, model.Reply{})
		}
	}
	b.shell.Signal(s.t, 9)
	b.shell.Wait(s.t)
	b.session.Close()
	if b.cgroup {
		rig.RemoveCgroup(s.t, root+b.Name)
	}
	s.gone = slices.DeleteFunc(s.gone, func(tr *try) bool { return tr.box == b })
	s.grants = slices.DeleteFunc(s.grants, func(g grant) bool { return g.box == b })
}

// sweep denies what others than the containers of the model ask.
func (s *soak) sweep() {
	for _, q := range s.sensor.Pending(s.t) {
		if s.boxOf(q.Container) == nil {
			_, _ = client().Answer(context.Background(), q.ID, no) // it may be over
		}
	}
}

func (s *soak) boxOf(c event.Container) *box {
	for _, b := range s.boxes {
		if c.Name == b.Name || c.ID == b.Name {
			return b
		}
	}
	return nil
}

// compare holds what is seen against the model.
func (s *soak) compare() {
	s.t.Helper()
	s.w.Tend()
	s.grants = slices.DeleteFunc(s.grants, func(g grant) bool { return g.by != nil && !slices.Contains(s.w.Lasting, g.by) })
	want := s.wanted()
	var got seen
	for end := time.Now().Add(rig.Late); ; time.Sleep(50 * time.Millisecond) {
		if got = s.seen(); cmp.Equal(want, got) {
			break
		}
		if time.Now().After(end) {
			s.fatal("in the model - of the sensor +\n%s", cmp.Diff(want, got))
		}
	}
	s.arrivals()
}

// seen is what people see of the sensor.
type seen struct {
	Taint     map[string]string
	Questions []string // by id
	Approvals []string
}

func (s *soak) wanted() seen {
	w := seen{Taint: map[string]string{}}
	for _, b := range s.boxes {
		w.Taint[b.Name] = strings.Join(names(b.Bits), " ")
	}
	for _, q := range s.w.Pending() {
		w.Questions = append(w.Questions, fmt.Sprint(s.ids[q], names(q.Taint), q.Gone()))
	}
	for _, l := range s.w.Lasting {
		w.Approvals = append(w.Approvals, s.lasting[l])
	}
	slices.Sort(w.Questions)
	slices.Sort(w.Approvals)
	return w
}

func (s *soak) seen() seen {
	s.t.Helper()
	g := seen{Taint: map[string]string{}}
	for _, c := range s.sensor.Containers(s.t) {
		if b := s.boxOf(event.Container{ID: c.ID, Name: c.Name}); b != nil {
			g.Taint[b.Name] = strings.Join(c.Taint, " ")
		}
	}
	for _, q := range s.sensor.Pending(s.t) {
		if s.boxOf(q.Container) != nil {
			g.Questions = append(g.Questions, fmt.Sprint(q.ID, q.Container.Taint, q.Gone))
		}
	}
	all, err := client().Approvals(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, a := range all {
		if s.boxOf(a.Container) != nil {
			g.Approvals = append(g.Approvals, a.ID)
		}
	}
	slices.Sort(g.Questions)
	slices.Sort(g.Approvals)
	return g
}

// accounted waits until all executions are told, or counted as lost.
func (s *soak) accounted() {
	s.t.Helper()
	end := time.Now().Add(rig.Late)
	for ; ; time.Sleep(200 * time.Millisecond) {
		s.read()
		if len(s.execs) == len(s.told)+int(s.lost-s.flooded) {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	var missing []string
	for text := range s.execs {
		if !s.told[text] {
			missing = append(missing, text)
		}
	}
	slices.Sort(missing)
	s.fatal("of %d executions %d were told and %d lost: not told: %v", len(s.execs), len(s.told), s.lost, missing)
}

// read reads on in the log.
func (s *soak) read() {
	s.t.Helper()
	all := s.sensor.Events(s.t)
	if len(all) < s.events { // lines were taken out of it
		s.events, s.lost = 0, 0
	}
	for _, e := range all[s.events:] {
		switch {
		case e.Kind == event.Lost && e.Loss.What == string(event.Exec):
			s.lost += e.Loss.Count
		case e.Kind == event.Exec && e.Process != nil:
			if text := word(strings.Join(e.Process.Argv, " ")); s.execs[text] {
				s.told[text] = true
			}
		}
	}
	s.events = len(all)
}
