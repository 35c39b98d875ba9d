package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/commands"
)

// The document says what the tables say.
func TestDocumentIsUpToDate(t *testing.T) {
	want := new(strings.Builder)
	render(want, commands.Families())
	got, err := os.ReadFile("../../docs/classes.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("docs/classes.md is old, run go generate ./internal/commands (-want +got):\n%s", diff)
	}
}

func TestArguments(t *testing.T) {
	if err := run(nil); err == nil {
		t.Error("no file was accepted")
	}
	if err := run([]string{t.TempDir() + "/missing/classes.md"}); err == nil {
		t.Error("a file that cannot be written was accepted")
	}
}
