package taint

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// What a container may have changed since it was tainted counts from its first bit, also after a restart of the daemon (B24).
func TestFirstTaint(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	r := &record{}
	check := func(when string, bits Bits, first time.Time) {
		t.Helper()
		if r.Bits != bits || !r.Tainted.Equal(first) {
			t.Errorf("%s: %v since %v, want %v since %v", when, r.Bits, r.Tainted, bits, first)
		}
	}
	r.add(0, at(1))
	check("clean", 0, time.Time{})
	r.add(Corruption, at(2))
	check("tainted", Corruption, at(2))
	r.add(Corruption, at(3))
	r.add(Secret, at(4))
	check("tainted more", Corruption|Secret, at(2))
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	r = &record{}
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	r.add(Secret, at(5)) // what the kernel knows
	check("read again", Corruption|Secret, at(2))
	r.clear(Corruption)
	check("less", Secret, at(2))
	r.clear(Secret)
	check("clean again", 0, time.Time{})
	r.add(Secret, at(6))
	check("tainted again", Secret, at(6))

	// one that an older sensor stored
	r = &record{Bits: Secret, Since: at(7)}
	r.add(0, r.Since)
	check("without a time", Secret, at(7))
}

// What a runtime has deleted is forgotten after a day, what is called by the id of a runtime that is not followed after a month, and
// what a followed one still has, or what somebody named, never: it may be made again (B45).
func TestForgotten(t *testing.T) {
	now := time.Unix(1e9, 0)
	ago := func(days time.Duration) time.Time { return now.Add(-days * 24 * time.Hour) }
	id := Origin{Runtime: "docker", ID: "0123"}
	for _, c := range []struct {
		name string
		r    record
		want bool
	}{
		{"deleted", record{Deleted: ago(1)}, true},
		{"deleted just now", record{Deleted: now}, false},
		{"a runtime's", record{Container: Container{Origin: id}, Gone: ago(30)}, true},
		{"a runtime's, gone for some days", record{Container: Container{Origin: id}, Gone: ago(29)}, false},
		{"a runtime's, not known to be gone", record{Container: Container{Origin: id}}, false},
		{"containerd's, and not deleted", record{Container: Container{Origin: Origin{Runtime: "containerd", Namespace: "default", ID: "build-agent"}}, Gone: ago(1000)}, false},
		{"with a name", record{Gone: ago(1000)}, false},
		{"there", record{Container: Container{CgroupID: 7, Origin: id}, Deleted: ago(40), Gone: ago(40)}, false},
	} {
		if got := c.r.over(now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A cgroup's id is of one boot: another may have it now. What was not stored of one that is gone for good is nothing (B45).
func TestReadAfterReboot(t *testing.T) {
	s, _ := books(t)
	at := func(name string) Container {
		return Container{ID: "/agents/" + name, Cgroup: "/agents/not-there-" + name, CgroupID: 7, Agent: 8}
	}
	session := at("session")
	session.Session = true
	old := time.Unix(1e9, 0).UTC()
	stored := []*record{
		{Container: at("tainted"), Bits: Secret, Tainted: old, Gone: old},
		{Container: Container{ID: "/agents/gone", Cgroup: "/agents/not-there-gone"}, Bits: Secret, Tainted: old, Gone: old},
		{Container: at("clean")},
		{Container: session},
	}
	for _, r := range stored {
		if err := s.store(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []string{"read", "read again"} {
		s.containers = map[string]*record{}
		if err := s.read(); err != nil {
			t.Fatal(err)
		}
		got := map[string]time.Time{}
		for id, r := range s.containers {
			if got[id] = r.Gone; r.CgroupID != 0 || r.Agent != 0 {
				t.Errorf("%s: %s has cgroup %d and agent %d", when, id, r.CgroupID, r.Agent)
			}
		}
		want := map[string]time.Time{"/agents/tainted": {}, "/agents/gone": old, "/agents/session": {}} // it stood later than it was gone
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
}

// B45: what a program set on a container's cgroup, which then was removed while no sensor ran, is not lost.
func TestReadTaintedLast(t *testing.T) {
	s, _ := books(t)
	s.kernel.(*Memory).Taint(7, Secret)
	r := &record{Container: Container{ID: "/agents/x", Cgroup: "/agents/not-there", CgroupID: 7}, Bits: Corruption}
	if err := s.store(r); err != nil {
		t.Fatal(err)
	}
	if err := s.read(); err != nil {
		t.Fatal(err)
	}
	if got := s.containers["/agents/x"]; got == nil || got.Bits != Secret|Corruption || !got.unsaved || got.CgroupID != 0 {
		t.Errorf("%+v", got)
	}
}

// What a program set while no sensor ran is stored, counts from when it may have come, and has a cause; what was known stays as it was.
func TestFound(t *testing.T) {
	s, _ := books(t)
	old := time.Unix(1e9, 0).UTC()
	r := &record{Container: Container{ID: "/agents/x"}, Since: old, By: "root"}
	s.found(r, Secret, "found when the sensor started")
	if r.Bits != Secret || !r.unsaved || !r.Tainted.Equal(old) || !r.Since.After(old) || r.By != "kernel" || len(r.Causes) != 1 || r.Causes[0].Bit != "secret" {
		t.Errorf("%+v", r)
	}
	r.unsaved, r.By = false, "root"
	s.found(r, Secret, "found again")
	if r.unsaved || r.By != "root" || len(r.Causes) != 1 {
		t.Errorf("%+v", r)
	}
}

// A record that comes late sets nothing that was cleared since, though it has more that is new.
func TestSetLate(t *testing.T) {
	s, _ := books(t)
	k := s.kernel.(*Memory)
	if _, err := s.Guard(Container{ID: "/agents/x", Cgroup: "/agents/x", CgroupID: 7}, Secret, "test"); err != nil {
		t.Fatal(err)
	}
	k.Taint(7, Corruption)
	if _, err := s.Clear("/agents/x", Secret, "root", "rebuilt"); err != nil {
		t.Fatal(err)
	}
	st, err := s.Set(Change{Container: "/agents/x", Bits: Secret | Corruption, InKernel: true})
	if err != nil || st.Own != Corruption || k.Bits(7) != Corruption {
		t.Errorf("%v, %v; the kernel has %v", st.Own.Names(), err, k.Bits(7).Names())
	}
}

// What the kernel has lost of taint that is known is put back, and told once.
func TestMend(t *testing.T) {
	s, _ := books(t)
	k := s.kernel.(*Memory)
	for id, bits := range map[uint64]Bits{7: Secret | Corruption, 8: Secret, 9: 0} {
		at := "/agents/" + strconv.FormatUint(id, 10)
		if _, err := s.Guard(Container{ID: at, Cgroup: at, CgroupID: id}, bits, "test"); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.deleteState(7); err != nil {
		t.Fatal(err)
	}
	k.Taint(7, Corruption)
	k.Fill(true)
	if _, err := s.Mend(); err == nil {
		t.Error("nobody was told")
	}
	k.Fill(false)
	for _, want := range [][]Unknown{{{7, Secret}}, nil} {
		lost, err := s.Mend()
		if diff := cmp.Diff(want, lost); diff != "" || err != nil || k.Bits(7) != Secret|Corruption || k.Bits(9) != 0 {
			t.Errorf("%v; the kernel has %v: %s", err, k.Bits(7).Names(), diff)
		}
	}
}

// However many containers are to be stored, or to be forgotten, the disk is waited for once.
func TestDiskOnce(t *testing.T) {
	s, k := books(t)
	for i := range 100 {
		s.child(strconv.Itoa(i), Secret).unsaved = true
	}
	state := func() (transactions, stored int) {
		if err := s.db.View(func(tx *bbolt.Tx) error { transactions, stored = tx.ID(), tx.Bucket(bucket).Stats().KeyN; return nil }); err != nil {
			t.Fatal(err)
		}
		return transactions, stored
	}
	for _, c := range []struct {
		name                 string
		do                   func() error
		transactions, stored int
	}{
		{"saved", s.Save, 1, 100},
		{"nothing to save", s.Save, 0, 100},
		{"nothing to forget", s.sweepStarts, 0, 100},
		{"forgotten", func() error {
			for _, r := range s.containers {
				r.Deleted = time.Unix(1e9, 0)
			}
			return s.sweepStarts()
		}, 1, 0},
	} {
		before, _ := state()
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		if after, stored := state(); after-before != c.transactions || stored != c.stored || len(k.rows) != c.stored || stored == 0 && len(s.containers) != 0 {
			t.Errorf("%s: %d transactions, %d on disk, %d in the kernel", c.name, after-before, stored, len(k.rows))
		}
	}
}

// What the kernel could not be told is tried again, too (B45).
func TestSaveAgain(t *testing.T) {
	s, k := books(t)
	k.fail = func(string) error { return unix.ENOMEM }
	if err := s.store(s.child("one", Secret)); err == nil {
		t.Error("nobody was told")
	}
	k.has(t, "not written", map[string]Bits{})
	k.fail = nil
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	k.has(t, "written", map[string]Bits{"one": Secret})
}
