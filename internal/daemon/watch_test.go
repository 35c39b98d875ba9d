package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
func TestNewest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	last := newestVersion(file)
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
		now := newestVersion(file)
		if now == last {
			t.Errorf("%s: no change", change.name)
		}
		last = now
	}
}
