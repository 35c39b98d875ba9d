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

// TestTables: each way out and each requirement that a test names has a line of its own, and each line has a test.
func TestTables(t *testing.T) {
	named, err := sources("../..")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[byte][]string{} // ids by their letter
	line := func(id string, tested bool, cells ...string) {
		lines[id[0]] = append(lines[id[0]], id)
		if !tested {
			t.Errorf("%s: no test names it", id)
		}
		for _, cell := range cells {
			if strings.Contains(cell, "|") || !strings.HasSuffix(cell, ".") {
				t.Errorf("%s: a cell has a bar, or is no sentence", id)
			}
		}
	}
	for _, row := range table {
		line(row.id, len(named[row.id]) > 0, row.attempt, row.stops)
	}
	for _, r := range requirements {
		line(r.id, proofs(named[r.id]) != "", r.what)
	}
	for letter, want := range map[byte]int{'G': 26, 'K': 14, 'P': 8, 'M': 6, 'V': 12} { // none is dropped
		if got := len(lines[letter]); got != want {
			t.Errorf("%d requirements begin with %c, want %d", got, letter, want)
		}
	}
	for letter, ids := range lines {
		if !slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(fmt.Sprintf("%4s", a), fmt.Sprintf("%4s", b)) }) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
			t.Errorf("not in order, or twice: %v", ids)
		}
		for id, where := range named {
			if id[0] == letter && !slices.Contains(ids, id) {
				t.Errorf("%s has no line in the table; %s names it", id, where)
			}
		}
	}
}

// TestUpToDate: docs/bypasses.md and docs/requirements.md are what the tables and the tests' names say.
func TestUpToDate(t *testing.T) {
	dir := t.TempDir()
	named, err := sources("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]func(file string) error{
		"bypasses.md":     func(file string) error { return run([]string{file}, nil) },
		"requirements.md": func(file string) error { return save(file, required(named)) },
	} {
		want, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := again(file); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: run go generate ./scripts/bypasses: %s", name, diff)
		}
	}
}

// TestSources: names of tests and of subtests count, in their place; methods, prose, and ids elsewhere in a text do not.
func TestSources(t *testing.T) {
	repo := t.TempDir()
	for _, top := range []string{"cmd", "internal", "test"} {
		if err := os.MkdirAll(filepath.Join(repo, top, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"internal/a/a_test.go": `package a
			// TestG12B51Both: G13.
			func TestG12B51Both(t *testing.T) {
				t.Run("F01_B24_K7_x y", nil)
				t.Run("V2_"+name, nil)
				t.Error("see K8", "V12x", "x_M3")
			}
			func (f *fixture) TestM1() {}
			func helperM2() {}
			var table = []string{"P5: said", "B10"}`,
		"internal/a/a.go": `package a; func TestG1() {}`,
	} {
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := sources(repo)
	if err != nil {
		t.Fatal(err)
	}
	both, sub, table := []place{{"internal/a", "TestG12B51Both"}}, []place{{"internal/a", "TestG12B51Both/F01_B24_K7_x_y"}}, []place{{"internal/a", ""}}
	want := map[string][]place{
		"G12": both, "B51": both, "B24": sub, "K7": sub, "V2": {{"internal/a", "TestG12B51Both/V2_…"}}, "P5": table, "B10": table,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(place{})); diff != "" {
		t.Error(diff)
	}
	if got := proofs(append(got["P5"], append(got["G12"], place{"a", "TestX"}, place{"a", "FuzzX"})...)); got != "`a` `FuzzX`, `TestX`; `internal/a` `TestG12B51Both`" {
		t.Errorf("tests of a row: %s", got)
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
