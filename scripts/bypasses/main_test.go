package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTable: each way out that a test names has a line of its own, and each line has a test.
func TestTable(t *testing.T) {
	named, err := sources("../..")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, row := range table {
		ids = append(ids, row.id)
		if _, tested := named[row.id]; !tested {
			t.Errorf("%s: no test names it", row.id)
		}
		if strings.Contains(row.attempt+row.stops, "|") || !strings.HasSuffix(row.attempt, ".") || !strings.HasSuffix(row.stops, ".") {
			t.Errorf("%s: a cell has a bar, or is no sentence", row.id)
		}
	}
	if !slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(fmt.Sprintf("%4s", a), fmt.Sprintf("%4s", b)) }) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("not in order, or twice: %v", ids)
	}
	for id, where := range named {
		if !slices.Contains(ids, id) {
			t.Errorf("%s has no line in the table; %s names it", id, where)
		}
	}
}

// TestUpToDate: docs/bypasses.md is what the table says.
func TestUpToDate(t *testing.T) {
	want, err := os.ReadFile("../../docs/bypasses.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bypasses.md")
	if err := os.WriteFile(file, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{file}, nil); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go generate ./scripts/bypasses: %s", diff)
	}
}

func TestRead(t *testing.T) {
	line := func(action, test string) string {
		return `{"Action":"` + action + `","Package":"p","Test":"` + test + `"}` + "\n"
	}
	var stream strings.Builder
	for _, e := range []struct{ action, test string }{
		{"pass", "TestB51Question"},
		{"pass", "TestVM/6.12/egress/Test/Attempts/B10/curl"}, {"pass", "TestVM/6.1/egress/Test/Attempts/B10/curl"},
		{"pass", "TestVM/6.12/egress/Test/Attempts/B10"}, {"fail", "TestVM/6.1/egress/Test/Attempts/B51/x"}, {"skip", "TestB06/a|b"},
		{"pass", "TestVM/6.12/names/TestNames/B24_B25_forged"},
	} {
		stream.WriteString(line("run", e.test) + line("output", e.test) + line(e.action, e.test))
	}
	stream.WriteString(line("run", "TestB35Stuck"))
	got, failed, err := read(strings.NewReader(stream.String()))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]outcome{
		"B06": {noVM, `1 of 1 fail: TestB06/a\|b`},
		"B10": {"6.1, 6.12", "2 tests pass"},
		"B24": {"6.12", "1 test passes"}, "B25": {"6.12", "1 test passes"},
		"B35": {noVM, "1 of 1 fail: TestB35Stuck"},
		"B51": {"6.1, no VM", "1 of 2 fail: 6.1 egress/Test/Attempts/B51/x"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Error(diff)
	}
	if len(failed) != 1 {
		t.Errorf("failed: %v", failed)
	}
	if _, _, err := read(strings.NewReader("no JSON")); err == nil {
		t.Error("no error for something else")
	}
}
