package linux

import (
	"os"
	"path/filepath"
	"testing"

	"weir/test/rewritetest"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "settings")
	look := func(want string, mode os.FileMode) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want || info.Mode().Perm() != mode {
			t.Errorf("%q, mode %v, %v", got, info.Mode(), err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	if err := WriteFileAtomic(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	look("one", 0o600)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := WriteFileAtomic(path, []byte("two")); err != nil {
		t.Fatal(err)
	}
	look("two", 0o640)
}

// Where it cannot be put, what is there stays and nothing is left beside it.
func TestFileFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "settings")
	if err := os.MkdirAll(filepath.Join(path, "kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFileAtomic(path, []byte("one")); err == nil {
		t.Error("a directory was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := WriteFileAtomic(filepath.Join(dir, "none", "settings"), nil); err == nil {
		t.Error("a directory was made")
	}
}

// M6: what is reported written is there after a power cut, in a new directory too.
func TestLastsM6(t *testing.T) {
	dir := t.TempDir()
	if !rewritetest.Synced(t, dir, func() {
		if err := WriteFileAtomic(filepath.Join(dir, "settings"), []byte("one")); err != nil {
			t.Error(err)
		}
	}) {
		t.Error("the directory was not synced after the file had its name")
	}
	if !rewritetest.Synced(t, dir, func() {
		if err := MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
			t.Error(err)
		}
	}) {
		t.Error("the directory was not synced after another was made in it")
	}
	if err := MkdirAll(filepath.Join(dir, "settings"), 0o700); err == nil {
		t.Error("a file passes as a directory")
	}
}

// A link is replaced itself: neither what it leads to nor that file's mode is taken.
func TestFileLink(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "settings"), filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if err := WriteFileAtomic(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
}
