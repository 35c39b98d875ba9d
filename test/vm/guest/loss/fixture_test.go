//go:build vmguest

// Package loss loads the sensor's programs with rings of one page, floods each while its reader is stuck and while it reads, and
// counts: what did not arrive is what the kernel says that it lost (B31).
package loss

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"

	"weir/internal/bpfobj"
	"weir/internal/exec"
	"weir/internal/netegress"
	"weir/internal/policy"
	"weir/internal/secretfiles"
	"weir/internal/taint"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

const (
	pins   = "/sys/fs/bpf/test-loss"
	root   = "/sys/fs/cgroup"
	parent = "/guarded"
	page   = 4096
	count  = 60
	mark   = "/run/ran"
	secret = "/srv/loss/token"
)

// sensor is all that has a ring, with a guarded parent.
type sensor struct {
	t      *testing.T
	world  *rig.Outside
	state  *taint.State
	egress *netegress.Egress
	files  *secretfiles.Files
	probe  *exec.Probe

	stuck sync.Mutex   // held: no reader goes on
	got   atomic.Int32 // questions that their reader has taken from the ring
	mu    sync.Mutex
	moves int // cgroups made
	recs  int
	taken []taint.Change
	asks  []netegress.Ask
}

// start loads everything with rings of one page and attaches it, for as long as t runs.
func start(t *testing.T) *sensor {
	t.Helper()
	logger := logrus.New()
	logger.SetOutput(t.Output())
	check(t, os.MkdirAll(root+parent, 0o755))
	t.Cleanup(func() { rig.RemoveCgroup(t, root+parent) })
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "state.db"), 0o600, nil)
	check(t, err)
	s := &sensor{t: t, world: rig.NewOutside(t)}
	s.state, err = taint.Load(taint.Options{PinDir: pins, DB: db, Logger: logger, Ring: page})
	check(t, err)
	s.egress, err = netegress.Load(netegress.Options{PinDir: pins, State: s.state, Logger: logger, Handle: s, Ring: page})
	check(t, err)
	s.files, err = secretfiles.Load(secretfiles.Options{PinDir: pins, Links: s.state.Links, Logger: logger, Ring: page})
	check(t, err)
	s.probe, err = exec.Load(exec.Options{PinDir: pins, Logger: logger, Ring: page})
	check(t, err)
	check(t, os.MkdirAll(filepath.Dir(secret), 0o755))
	check(t, os.WriteFile(secret, []byte("x"), 0o644))
	check(t, s.files.Set(netegress.BaseSlot, s.policy(t, "taint:\n  secret_files: ["+secret+"]\n").Taint.SecretFiles))
	check(t, s.egress.GuardParent(parent, netegress.BaseSlot))
	check(t, s.egress.Attach())
	check(t, s.files.Attach())
	check(t, s.files.Settled())
	t.Cleanup(func() {
		for _, part := range []interface{ Close() error }{s.probe, s.files, s.egress, s.state, db} {
			check(t, part.Close())
		}
		check(t, os.RemoveAll(pins))
	})
	s.run()
	return s
}

// run reads all rings until the test ends.
func (s *sensor) run() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var ends sync.WaitGroup
	up := make(chan struct{}, 2)
	attached := func() { up <- struct{}{} }
	for what, run := range map[string]func() error{
		"moves":        func() error { return s.state.Run(ctx, attached, s.moved) },
		"execs":        func() error { return s.probe.Run(ctx, attached, func(exec.Command) {}) },
		"egress":       func() error { return s.egress.Run(ctx) },
		"secret files": func() error { return s.files.Watch(ctx, s.took) },
		"heartbeat":    func() error { return s.state.KeepBeating(ctx, func() bool { return true }) },
	} {
		ends.Go(func() {
			if err := run(); err != nil {
				s.t.Errorf("%s: %v", what, err)
			}
		})
	}
	<-up
	<-up
	s.t.Cleanup(func() { cancel(); ends.Wait() })
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// policy puts one in force.
func (s *sensor) policy(t *testing.T, text string) policy.Policy {
	t.Helper()
	p, err := policy.Parse("test", []byte(text))
	check(t, err)
	check(t, s.egress.SetPolicy(netegress.BaseSlot, p))
	return p
}

// note is a reader: it stands while stuck is held.
func (s *sensor) note(change func()) {
	s.stuck.Lock()
	defer s.stuck.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *sensor) moved(m taint.Move) {
	s.note(func() {
		if m.Kind == taint.Made {
			s.moves++
		}
	})
}

func (s *sensor) took(c taint.Change) (taint.Status, error) {
	s.note(func() { s.taken = append(s.taken, c) })
	return taint.Status{}, nil
}

// Asked implements netegress.Handler; nobody answers.
func (s *sensor) Asked(a netegress.Ask) {
	s.got.Add(1)
	s.note(func() { s.asks = append(s.asks, a) })
}

// Recorded implements netegress.Handler.
func (s *sensor) Recorded(netegress.Record) { s.note(func() { s.recs++ }) }

// GrantChanged implements netegress.Handler.
func (s *sensor) GrantChanged(netegress.Grant) {}

// unread does something while all readers stand.
func (s *sensor) unread(what func()) {
	s.stuck.Lock()
	defer s.stuck.Unlock()
	what()
}

func (s *sensor) seen(what func() int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return what()
}

func (s *sensor) counter(t *testing.T, name string) int {
	t.Helper()
	counts, err := s.egress.Counters()
	check(t, err)
	return int(counts[name])
}

// container starts a session in a new container.
func (s *sensor) container(t *testing.T, name string, bits taint.Bits) *rig.Session {
	t.Helper()
	at := parent + "/" + name
	check(t, os.Mkdir(root+at, 0o755))
	session := rig.BareIn(t, name, root+at)
	if bits != 0 {
		_, err := s.state.Set(taint.Change{Container: at, Bits: bits, Source: "operator", By: "test", Why: "test"})
		check(t, err)
	}
	return session
}

// empty says whether everything in a ring has been read.
func empty(t *testing.T, ring string, uses func() ([]bpfobj.MapStat, error)) bool {
	t.Helper()
	all, err := uses()
	check(t, err)
	for _, u := range all {
		if u.Name == ring {
			return u.Used == 0
		}
	}
	t.Fatalf("no ring %s", ring)
	return false
}

// floods floods a ring twice, count times each: while its reader is stuck, and while it reads. Afterwards what arrived and what the
// kernel counted as lost are all there was.
func (s *sensor) floods(t *testing.T, counter, ring string, uses func() ([]bpfobj.MapStat, error), flood func(from int), arrived func() int) {
	t.Helper()
	before, told := s.counter(t, counter), s.seen(arrived)
	s.unread(func() { flood(0) })
	stuck := s.counter(t, counter) - before
	flood(count)
	var seen, lost int
	rig.Eventually(t, ring+" is read to its end", func() bool {
		read := empty(t, ring, uses)
		seen, lost = s.seen(arrived)-told, s.counter(t, counter)-before
		return read && seen+lost >= 2*count
	})
	t.Logf("%s: %d arrived, %d lost, %d of them while the reader was stuck", ring, seen, lost, stuck)
	if seen == 0 || stuck == 0 || seen+lost != 2*count {
		t.Errorf("%s: %d arrived and %d counted as lost of %d, %d while the reader was stuck", ring, seen, lost, 2*count, stuck)
	}
}

// connects is a shell that tries a TCP connect to each of count ports.
func connects(low int, text string) []string {
	return []string{"bash", "-c", fmt.Sprintf("for p in {%d..%d}; do { echo %s >/dev/tcp/%s/$p; } 2>/dev/null; done; true", low, low+count-1, text, rig.World4)}
}
