package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUpToDate: the keys in docs/policy.md are what the parser and the table say.
func TestUpToDate(t *testing.T) {
	want, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policy.md")
	try := func(text string) error {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return run([]string{file})
	}
	if err := try(string(want)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go generate ./internal/policy: %s", diff)
	}
	for what, text := range map[string]string{
		"a document without marks":    strings.ReplaceAll(string(want), end, ""),
		"other defaults":              strings.Replace(string(want), "\nmode: enforce\n", "\nmode: seal\n", 1),
		"defaults that are no policy": strings.Replace(string(want), "\nmode: enforce\n", "\nmode: none\n", 1),
	} {
		if try(text) == nil {
			t.Errorf("no error for %s", what)
		}
	}
	if run(nil) == nil || run([]string{"/nonexistent/file"}) == nil {
		t.Error("no error for bad arguments")
	}
}
