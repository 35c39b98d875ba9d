package taint

import (
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"weir/internal/bpfobj"
)

// starts is the kernel's map of what children begin with, by their names.
type starts struct {
	rows map[string]Bits
	room int                     // entries
	fail func(name string) error // of Put
	done []string                // puts and deletions
	seen func()                  // called after each
}

const agents = 11 // cgroup of /agents, a guarded parent

func nameOf(key any) string { return bpfobj.Text(key.(*cgroupInitialTaintKey).Name[:]) }

func (k *starts) Lookup(key, value any) error {
	bits, ok := k.rows[nameOf(key)]
	if !ok {
		return ebpf.ErrKeyNotExist
	}
	*value.(*uint32) = uint32(bits)
	return nil
}

func (k *starts) Put(key, value any) error {
	name := nameOf(key)
	if k.fail != nil {
		if err := k.fail(name); err != nil {
			return err
		}
	}
	if _, ok := k.rows[name]; !ok && len(k.rows) >= k.room {
		return unix.E2BIG
	}
	k.rows[name] = Bits(value.(uint32))
	k.did("put " + name)
	return nil
}

func (k *starts) Delete(key any) error {
	name := nameOf(key)
	if _, ok := k.rows[name]; !ok {
		return ebpf.ErrKeyNotExist
	}
	delete(k.rows, name)
	k.did("delete " + name)
	return nil
}

func (k *starts) did(what string) {
	k.done = append(k.done, what)
	if k.seen != nil {
		k.seen()
	}
}

func (k *starts) NextKey(key, next any) error {
	names := slices.Sorted(maps.Keys(k.rows))
	at := 0
	if key != nil {
		at = slices.Index(names, nameOf(key)) + 1
	}
	if at == len(names) {
		return ebpf.ErrKeyNotExist
	}
	*next.(*cgroupInitialTaintKey) = startKey(agents, names[at])
	return nil
}

// has checks what the kernel has.
func (k *starts) has(t *testing.T, when string, want map[string]Bits) {
	t.Helper()
	if diff := cmp.Diff(want, k.rows); diff != "" {
		t.Errorf("%s: %s", when, diff)
	}
}

// books has no kernel but what is to begin, and one guarded parent.
func books(t *testing.T) (*State, *starts) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	k := &starts{rows: map[string]Bits{}, room: 16 << 10}
	s, err := NewMemory(map[string]uint64{"/agents": agents}).Open(db, logger)
	if err != nil {
		t.Fatal(err)
	}
	s.initial = k
	return s, k
}

// child adds a container below /agents that is gone.
func (s *State) child(name string, bits Bits) *record {
	id := "/agents/" + name
	r := &record{Container: Container{ID: id, Cgroup: id}, Bits: bits, Gone: time.Unix(1e9, 0)}
	s.containers[id] = r
	return r
}

// What all children begin with covers what single ones have only once it is written: else they would begin clean (B33, B45).
func TestCoveredOnlyByWhatIsWritten(t *testing.T) {
	all := func(name string) error {
		if name == "" {
			return unix.ENOMEM
		}
		return nil
	}
	t.Run("policy", func(t *testing.T) {
		s, k := books(t)
		if err := s.keepStart(s.child("one", Secret), true); err != nil {
			t.Fatal(err)
		}
		own := map[string]Bits{"one": Secret}
		k.fail = all
		if err := s.SetStart("/agents", Secret); err == nil {
			t.Error("nobody was told")
		}
		k.has(t, "not written", own)
		if err := s.keepStart(s.containers["/agents/one"], true); err != nil {
			t.Fatal(err)
		}
		k.has(t, "kept again", own)
		k.fail, k.done = nil, nil
		if err := s.SetStart("/agents", Secret); err != nil {
			t.Fatal(err)
		}
		k.has(t, "written", map[string]Bits{"": Secret})
		if diff := cmp.Diff([]string{"put ", "delete one"}, k.done); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("no room", func(t *testing.T) {
		s, k := books(t)
		k.rows["one"], k.rows["two"], s.named = Secret, Corruption, namedMost
		k.fail = all
		if err := s.keepStart(s.child("three", Secret), true); err == nil {
			t.Error("nobody was told")
		}
		k.has(t, "not written", map[string]Bits{"one": Secret, "two": Corruption})
		if diff := cmp.Diff(begin{}, s.begins[agents], cmp.AllowUnexported(begin{})); diff != "" {
			t.Error(diff)
		}
		k.fail, k.done = nil, nil
		if err := s.keepStart(s.containers["/agents/three"], true); err != nil {
			t.Fatal(err)
		}
		k.has(t, "written", map[string]Bits{"": Secret, "two": Corruption})
		if diff := cmp.Diff([]string{"put ", "delete one"}, k.done); diff != "" || s.named != namedMost-1 {
			t.Error(diff, s.named)
		}
	})
	// the kernel has no room for the parent either: one that is covered gives way
	t.Run("none at all", func(t *testing.T) {
		s, k := books(t)
		full := map[string]Bits{"one": Secret, "two": Secret}
		k.rows, k.room, s.named = maps.Clone(full), 2, 2
		k.fail = func(name string) error {
			if name == "" && len(k.rows) < 2 {
				return unix.ENOMEM
			}
			return nil
		}
		if err := s.keepStart(s.child("three", Secret), true); err == nil {
			t.Error("nobody was told")
		}
		k.has(t, "not written", full)
		k.fail = nil
		if err := s.keepStart(s.containers["/agents/three"], true); err != nil {
			t.Fatal(err)
		}
		k.has(t, "written", map[string]Bits{"": Secret})
		if s.named != 0 {
			t.Error(s.named)
		}
	})
}

// A policy that taints less at start lets all begin with less only when each child has its own, however often that fails (B33, B45).
func TestLessAfterOwn(t *testing.T) {
	s, k := books(t)
	s.child("one", Secret)
	if err := s.SetStart("/agents", Secret); err != nil {
		t.Fatal(err)
	}
	k.fail = func(string) error { return unix.ENOMEM }
	for range 2 {
		if err := s.SetStart("/agents", 0); err == nil {
			t.Error("nobody was told")
		}
		k.has(t, "not written", map[string]Bits{"": Secret})
	}
	k.fail = nil
	if err := s.SetStart("/agents", 0); err != nil {
		t.Fatal(err)
	}
	k.has(t, "written", map[string]Bits{"one": Secret})
}

// Where there is no room while a policy taints less at start, what all begin with stays until each has its own (B33, B45).
func TestNoRoomForLess(t *testing.T) {
	s, k := books(t)
	s.child("one", Secret)
	s.child("two", Secret|Corruption)
	if err := s.SetStart("/agents", Secret|Corruption); err != nil {
		t.Fatal(err)
	}
	s.named = namedMost
	least := Secret | Corruption
	k.seen = func() { least &= k.rows[""] }
	if err := s.SetStart("/agents", 0); err != nil {
		t.Fatal(err)
	}
	if least != Secret|Corruption {
		t.Errorf("all began with %v at a time", least.Names())
	}
	for name := range s.containers {
		if own := s.containers[name].Bits; own&^(k.rows[""]|k.rows[path.Base(name)]) != 0 {
			t.Errorf("%s: the kernel has %v", name, k.rows)
		}
	}
}

// What is stored of an agent counts for all that is the same agent, and of none counts for nothing else (G3).
func TestStoredAgent(t *testing.T) {
	s, _ := books(t)
	r := s.child("one", Secret)
	r.Origin = Origin{Runtime: "containerd", Namespace: "default", ID: "one", Agent: "a1"}
	s.child("two", Corruption).Origin = Origin{Runtime: "containerd", Namespace: "default", ID: "two"}
	for agent, want := range map[string]Bits{"a1": Secret, "a2": 0, "": 0} {
		if got := s.Stored(Origin{Runtime: "containerd", Namespace: "default", ID: "three", Agent: agent}); got != want {
			t.Errorf("%q: %v, want %v", agent, got, want)
		}
	}
}

// A container of Docker's that was gone and stands again is not gone: the days count anew when it stops (B45).
func TestStandsAgain(t *testing.T) {
	s, _ := books(t)
	r := s.child("one", Secret)
	r.Origin = Origin{Runtime: "docker", ID: "0123"}
	r.CgroupID = 7 // as read finds it
	sweep := func() {
		t.Helper()
		if err := s.sweepStarts(); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if !r.Gone.IsZero() || !r.unsaved {
		t.Errorf("it stands, and is gone since %v; unsaved: %v", r.Gone, r.unsaved)
	}
	r.CgroupID = 0
	sweep()
	if s.containers[r.ID] == nil || time.Since(r.Gone) > time.Hour {
		t.Errorf("it stopped, and is gone since %v", r.Gone)
	}
}

// One that its runtime tells of again is not gone either (B45).
func TestExpectedAgain(t *testing.T) {
	s, _ := books(t)
	r := s.child("one", Secret)
	if err := s.Expect(r.Container, Corruption, "policy", "test"); err != nil {
		t.Fatal(err)
	}
	if !r.Gone.IsZero() {
		t.Errorf("gone since %v", r.Gone)
	}
}
