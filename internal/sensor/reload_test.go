package sensor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"weir/internal/policy"
	"weir/internal/sensor/inforce"
	"weir/internal/sensor/store"
)

// A policy that somebody still writes is told from one that is finished.
func TestBeingWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	w, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if !beingWritten(file) {
		t.Error("open for writing: not told")
	}
	w.Close()
	r, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if beingWritten(file) {
		t.Error("open for reading: told to be written")
	}
	if beingWritten(file + ".not") {
		t.Error("absent: told to be written")
	}
}

// Each way to replace a file is a change, and reading it is none.
func TestNewestPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	last := newestPolicy(file)
	for _, change := range []struct {
		name string
		do   func() error
	}{
		{"made", func() error { return os.WriteFile(file, []byte("version: 1\n"), 0o600) }},
		{"written", func() error { return os.WriteFile(file, []byte("version: 1\nhold: false\n"), 0o600) }},
		{"of the same size", func() error { return os.Chtimes(file, time.Time{}, time.Unix(1, 0)) }},
		{"replaced", func() error {
			if err := os.WriteFile(file+"~", []byte("version: 1\nhold: false\n"), 0o600); err != nil {
				return err
			}
			return os.Rename(file+"~", file)
		}},
		{"removed", func() error { return os.Remove(file) }},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		now := newestPolicy(file)
		if now == last {
			t.Errorf("%s: no change", change.name)
		}
		last = now
	}
}

// What weir mode said outlives the daemon.
func TestRecall(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "state.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	m, err := store.OpenMemory(db)
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{memory: m, policies: inforce.New(policy.Default())}
	if err := d.recall(); err != nil || d.policies.Mode() != policy.Default().Mode {
		t.Errorf("nothing is stored: mode %q, %v", d.policies.Mode(), err)
	}
	if err := m.Put(store.Mode, policy.Seal); err != nil {
		t.Fatal(err)
	}
	if err := d.recall(); err != nil || d.policies.Mode() != policy.Seal {
		t.Errorf("mode %q, %v", d.policies.Mode(), err)
	}
	if err := m.Put(store.Mode, "open"); err != nil {
		t.Fatal(err)
	}
	if err := d.recall(); err == nil {
		t.Error("a mode that is none was taken up")
	}
}

// Only what denies more comes before it is logged.
func TestStrict(t *testing.T) {
	var got []int
	for _, m := range []policy.Mode{policy.Observe, policy.Enforce, policy.Seal} {
		got = append(got, strict(m))
	}
	if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}
