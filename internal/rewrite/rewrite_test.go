package rewrite

import (
	"os"
	"path/filepath"
	"testing"
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
	if err := File(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	look("one", 0o600)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := File(path, []byte("two")); err != nil {
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
	if err := File(path, []byte("one")); err == nil {
		t.Error("a directory was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := File(filepath.Join(dir, "none", "settings"), nil); err == nil {
		t.Error("a directory was made")
	}
}
