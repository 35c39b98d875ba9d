package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUpToDate: docs/rules.md is what the rules say.
func TestUpToDate(t *testing.T) {
	want, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.md")
	if err := run([]string{file}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go generate ./internal/toolguard: %s", diff)
	}
	if run(nil) == nil || run([]string{"/nonexistent/file"}) == nil {
		t.Error("no error for bad arguments")
	}
}
